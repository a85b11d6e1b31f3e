"""What the flow tests share: tools with an effect log, a journal in short lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Self

from anyio.lowlevel import checkpoint
from typing_extensions import override

from agentcore import ToolLoopAgent, tool
from agentcore._engine.attachments import Attachments
from agentcore.context.projection import HistoryProjector
from agentcore.protocols.model import Model
from agentcore.protocols.store import Appended, InboxPage
from agentcore.protocols.tools import Tool
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    CountingIds,
    EffectLog,
    Gate,
    ScriptedModel,
    assert_valid,
    check_digests,
    check_pairing,
)
from agentcore.testing._playing import PlayingModel
from agentcore.types import records as r
from agentcore.types.context import ToolContext
from agentcore.types.inbox import InboxItem
from agentcore.types.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    host_note,
)
from agentcore.types.model import ModelRequest
from agentcore.types.runs import Lease, Receipt, SessionQuery

_LEFT_OUT = ("session.created", "owner.acquired", "owner.released", "tools.advertised")
_LEDGER = ("usage.reserved", "usage.recorded")


class KeptStore(MemoryRunStore):
    """A memory store that also keeps what each append held."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[tuple[r.Record, ...]] = []
        self.holds: dict[type[Any], Gate] = {}
        """Where an append that holds such a record waits, once it is written."""
        self.stops: dict[type[Any], Gate] = {}
        """Where it waits before it is written."""

    def hold(self, kind: type[Any]) -> Gate:
        """Keep the next append that holds a record of this kind from returning."""
        self.commits_inline = False
        return self.holds.setdefault(kind, Gate())

    def stop(self, kind: type[Any]) -> Gate:
        """Keep the next append that holds a record of this kind from being written."""
        self.commits_inline = False
        return self.stops.setdefault(kind, Gate())

    @override
    async def append(
        self,
        lease: Lease,
        records: Sequence[r.Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        records = tuple(records)
        await _pass(self.stops, records)
        done = await super().append(
            lease, records, expected_seq=expected_seq, expected_inbox=expected_inbox
        )
        self.appends.append(records)
        await _pass(self.holds, records)
        return done

    def append_with(self, kind: type[r.Record]) -> list[str]:
        """The lines of the first append that holds a record of this kind."""
        for records in self.appends:
            if any(type(record) is kind for record in records):
                return [line(record) for record in records]
        raise AssertionError(f"no append holds a {kind}")


async def _pass(gates: dict[type[Any], Gate], records: Sequence[r.Record]) -> None:
    for record in records:
        gate = gates.pop(type(record), None)
        if gate is not None:
            await gate.wait()


class SuspendingStore(KeptStore):
    """As stores on a disk do, it lets others run in the middle of every method."""

    commits_inline = False

    @override
    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        await checkpoint()
        receipt = await super().accept(session_id, item)
        await checkpoint()
        return receipt

    @override
    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        await checkpoint()
        page = await super().inbox(session_id, after)
        await checkpoint()
        return page

    @override
    async def append(
        self,
        lease: Lease,
        records: Sequence[r.Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        records = tuple(records)
        await checkpoint()
        done = await super().append(
            lease, records, expected_seq=expected_seq, expected_inbox=expected_inbox
        )
        await checkpoint()
        return done

    @override
    async def release(self, lease: Lease) -> None:
        await checkpoint()
        await super().release(lease)


class Kit:
    """A store, tools and agents of one test; `verify` checks all they left behind."""

    def __init__(self, folder: Path, store: KeptStore) -> None:
        self.store = store
        self.ids = CountingIds()
        self.effects = EffectLog(folder / "effects")
        """The id of every call that had its effect."""
        self.gates: dict[str, Gate] = {}
        """Where a call of this text waits, after its effect."""
        self.raises: dict[str, Exception] = {}
        """What a call of this text raises, after its effect."""
        self.models: list[PlayingModel] = []
        self.ro = self._tool("ro", effects="none", replay="safe")
        self.idem = self._tool("idem", effects="local", replay="safe")
        self.rw = self._tool("rw", effects="external", replay="never")
        self.par = self._tool("par", effects="none", replay="safe", parallel=True)
        self.parw = self._tool("parw", parallel=True)

    @property
    def tools(self) -> list[Tool]:
        """All five."""
        return [self.ro, self.idem, self.rw, self.par, self.parw]

    def _tool(self, name: str, **options: Any) -> Tool:
        async def run(context: ToolContext[Any], text: str = "") -> str:
            """Do something."""
            self.effects.add(context.call.id)
            gate = self.gates.get(text)
            if gate is not None:
                await gate.wait()
            if text in self.raises:
                raise self.raises[text]
            return f"{name} {text}"

        return tool(name=name, **options)(run)

    def gate(self, text: str) -> Gate:
        """The gate at which calls of this text wait."""
        return self.gates.setdefault(text, Gate())

    def agent(
        self, model: Model | Sequence[Any], **settings: Any
    ) -> ToolLoopAgent[Any, Any]:
        """An agent with the kit's tools, store and ids, unless the settings differ."""
        playing = ScriptedModel(model) if isinstance(model, Sequence) else model
        if isinstance(playing, PlayingModel):
            self.models.append(playing)
        settings = {
            "tools": self.tools,
            "store": self.store,
            "ids": self.ids,
            **settings,
        }
        return ToolLoopAgent(playing, **settings)

    # --- reading ------------------------------------------------------------------

    async def records(self, session: str = "s", after: int = 0) -> list[r.StoredRecord]:
        """The journal."""
        return [stored async for stored in self.store.read(session, after)]

    async def lines(self, session: str = "s", *, ledger: bool = False) -> list[str]:
        """The journal in short, without session and owner records."""
        hidden = _LEFT_OUT if ledger else (*_LEFT_OUT, *_LEDGER)
        return [
            line(stored.record)
            for stored in await self.records(session)
            if stored.record.kind not in hidden
        ]

    async def outcomes(self, session: str = "s") -> list[str]:
        """The lines of all tool outcomes, in journal order."""
        return [
            entry.removeprefix("tool.outcome ")
            for entry in await self.lines(session)
            if entry.startswith("tool.outcome ")
        ]

    def requests(self) -> list[ModelRequest]:
        """Everything the models of this test were asked, in order by model."""
        return [request for model in self.models for request in model.requests]

    # --- what holds after every test ----------------------------------------------

    async def verify(self) -> None:
        """Invariants of every journal, pairing and digest of every request."""
        for request in self.requests():
            assert check_pairing(request.messages) == []
            assert one_batch_a_reply(request.messages)
        for info in await self.store.sessions(SessionQuery(limit=10_000)):
            records = await self.records(info.session_id)
            assert_valid(records)
            assert check_digests(records, HistoryProjector) == []
            await self._verify_prompts(info.session_id, records)

    async def _verify_prompts(
        self, session: str, records: list[r.StoredRecord]
    ) -> None:
        """What was sent is the projection of the journal up to `head_seq`."""
        sent = {
            (request.request_id, request.attempt): list(request.messages)
            for request in self.requests()
            if request.session_id == session
        }
        projector = HistoryProjector()
        shown: dict[int, list[Message]] = {}
        for stored in records:
            record = stored.record
            if isinstance(record, r.ModelIntent):
                prepared = record.prepared
                added = prepared if isinstance(prepared, dict) else {}
                messages = shown[record.head_seq][added.get("history_start", 0) :]
                if "nudge" in added:
                    messages = [*messages, host_note(str(added["nudge"]))]
                expected = await filled(self.store, messages)
                got = sent.get((record.req_id, record.attempt), expected)
                assert list(got) == expected
            projector.add(record)
            shown[stored.seq] = list(projector.messages)


async def filled(store: KeptStore, messages: Sequence[Message]) -> list[Message]:
    """The messages with the bytes that a model is sent."""
    attachments = Attachments(store)
    if not attachments.needed(messages, 0, len(messages)):
        return list(messages)
    return list(await attachments.fill(messages, 0))


def one_batch_a_reply(messages: Sequence[Message]) -> bool:
    """The results of a reply stand in one message, in the order of its calls."""
    asked = [
        [call.call_id for call in message.tool_calls]
        for message in messages
        if isinstance(message, AssistantMessage) and message.tool_calls
    ]
    given = [
        [result.call_id for result in message.results]
        for message in messages
        if isinstance(message, ToolMessage)
    ]
    return asked == given


def line(record: r.Record) -> str:
    """A record in a few words."""
    return f"{record.kind} {_detail(record)}".rstrip()


def _detail(record: r.Record) -> str:
    match record:
        case r.ToolOutcome():
            return f"{record.call_id} {record.status}/{record.effect}"
        case r.ToolPlanned() | r.ToolIntent() | r.ApprovalRequested():
            return record.call_id
        case r.ToolLateResult() | r.QuestionAsked() | r.QuestionAnswered():
            return record.call_id
        case r.ApprovalDecided():
            return f"{record.call_id} {record.decision.kind}"
        case r.RunEnded():
            return f"{record.stop.status}/{record.stop.reason}"
        case _:
            return _short(record)


def _short(record: r.Record) -> str:
    match record:
        case r.InputAccepted():
            return record.input_id + (" steer" if record.delivery == "steer" else "")
        case r.InputPlaced() | r.InputParked() | r.InputReleased():
            return record.input_id
        case r.InputWithdrawn():
            return record.input_id
        case r.RunPaused():
            return record.reason
        case r.CancelRequested():
            return record.cause
        case r.ModelIntent():
            return f"#{record.attempt}" if record.attempt > 1 else ""
        case r.ModelOutcome():
            return record.status
        case _:
            return ""


def shown(messages: Sequence[Message]) -> list[str]:
    """A history in short: `user hi`, `assistant text [call_1]`, `tool call_1=ok`."""
    return [_shown(message) for message in messages]


def _shown(message: Message) -> str:
    match message:
        case UserMessage(source="host"):
            return f"note {message.text}"
        case UserMessage():
            return f"user {message.text}"
        case AssistantMessage():
            calls = "".join(f" [{call.call_id}]" for call in message.tool_calls)
            return f"assistant {message.text}{calls}"
        case ToolMessage():
            return "tool" + "".join(
                f" {result.call_id}={result.status}" for result in message.results
            )
        case _:
            return message.kind


class Events:
    """Collects the events of a run while a test goes on."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        self.stream = stream
        self.seen: list[Any] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self.stream)
        self.seen.append(event)
        return event
