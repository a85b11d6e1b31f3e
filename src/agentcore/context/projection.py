"""The history a model sees: a pure function of the journal, folded forward.

`add` takes records in order and never looks back, so a step costs the same whatever
the length of the history. Messages are only ever appended (a view of them stays valid),
and their digest is chained: that of a prefix is reproducible from the journal alone
(invariant I4).

What is shown: placed inputs, accepted replies with the results of their calls (a batch
appears as a whole, in source order, once every call has its outcome), host notes. What
is not: failed, aborted and empty attempts. Replies cut by the length limit are joined
with their continuations, here and nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, overload

from typing_extensions import override

from agentcore.types import records as r
from agentcore.types.codec import dump_json
from agentcore.types.content import TextPart, ToolCallPart, ToolResultPart, join_text
from agentcore.types.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    host_note,
)
from agentcore.types.policy import Happened

_INTERRUPTED: Final = "the previous run was stopped before it finished"
_UNKNOWN_EFFECT: Final = (
    "It is not known whether this call had an effect; verify before repeating it."
)
_CONFIRMED: Final = {
    "happened": "it did happen.",
    "did_not_happen": "it did not happen; it had no effect.",
    "leave_unknown": "nobody knows whether it happened.",
}


class History(Sequence[Message]):
    """A read-only window on an append-only list of messages.

    It costs the same to make whatever its length.
    """

    __slots__ = ("_items", "_start", "_stop")

    def __init__(self, items: list[Message], start: int, stop: int) -> None:
        self._items = items
        self._start = start
        self._stop = stop

    @override
    def __len__(self) -> int:
        return self._stop - self._start

    @override
    def __iter__(self) -> Iterator[Message]:
        return islice(self._items, self._start, self._stop)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    @override
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return self._items[self._start : self._stop][index]
        size = self._stop - self._start
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError("message index out of range")
        return self._items[self._start + index]

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    @override
    def __hash__(self) -> int:
        return hash(tuple(self))

    @override
    def __repr__(self) -> str:
        return f"History({list(self)!r})"


class HistoryProjector:
    """The projector every agent uses: everything, verbatim, in order."""

    __slots__ = (
        "_accepted",
        "_batch",
        "_chain",
        "_check",
        "_dropped",
        "_hashed",
        "_held",
        "_messages",
        "_open",
        "_partial",
        "_requested",
        "_side_request",
    )

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._accepted: dict[str, r.InputAccepted] = {}
        self._batch: dict[str, ToolResultPart | r.ToolPlanned] = {}
        self._open = 0
        self._held: tuple[Message, ...] = ()
        """Notes that wait for the end of a batch."""
        self._partial: list[Any] | None = None
        self._side_request = ""
        self._dropped = ""
        self._requested = False
        self._chain: hashlib.blake2b | None = None  # made when a digest is asked for
        self._hashed = 0
        self._check = ""

    @property
    def takes(self) -> Mapping[type, object]:
        """The record types that change anything here."""
        return self._TAKES

    def add(self, record: r.Record) -> None:
        """Take the next record."""
        take = self._TAKES.get(type(record))
        if take is not None:
            take(self, record)

    @property
    def messages(self) -> History:
        """The history so far."""
        return History(self._shown(), 0, len(self._shown()))

    def window(self, start: int, stop: int | None = None) -> History:
        """The messages from number `start` up to `stop`, by default to the end."""
        shown = self._shown()
        return History(shown, start, len(shown) if stop is None else stop)

    @property
    def count(self) -> int:
        """How many messages there are."""
        return len(self._messages)

    @property
    def digest(self) -> str:
        """Chained hash of the messages."""
        messages = self._messages
        chain = self._chain
        if chain is None:
            chain = self._chain = hashlib.blake2b(digest_size=16)
        for message in messages[self._hashed :]:
            chain.update(_fragment(message))
        self._hashed = len(messages)
        if self._partial:
            chain = chain.copy()
            chain.update(_fragment(AssistantMessage(tuple(self._partial))))
        return chain.hexdigest()

    def _shown(self) -> list[Message]:
        if not self._partial:
            return self._messages
        return [*self._messages, AssistantMessage(_joined(self._partial))]

    # --- one method a record ------------------------------------------------------

    def _accept(self, record: r.InputAccepted) -> None:
        self._accepted[record.input_id] = record

    def _place(self, record: r.InputPlaced) -> None:
        self._close_partial()
        accepted = self._accepted.pop(record.input_id)
        spoken = accepted.source == "user"
        self._messages.append(
            UserMessage(accepted.content, "user" if spoken else "host")
        )

    def _drop(self, record: r.InputWithdrawn) -> None:
        self._accepted.pop(record.input_id, None)

    def _intend(self, record: r.ModelIntent) -> None:
        self._requested = True
        self._dropped = ""
        if record.purpose != "main":
            self._side_request = record.req_id

    def _reply(self, record: r.ModelOutcome) -> None:
        if record.req_id == self._side_request:
            return
        if record.status == "ok":
            content = record.content
            if self._partial:
                content = _joined([*self._partial, *content])
                self._partial = None
            self._messages.append(AssistantMessage(content, record.model))
        elif record.status == "length":
            self._partial = [*(self._partial or ()), *record.content]
            if any(type(part) is ToolCallPart for part in record.content):
                self._close_partial()
        else:
            # Calls of an attempt that is not shown are not shown either.
            self._dropped = record.req_id

    def _close_partial(self) -> None:
        if self._partial:
            content = _joined(self._partial)
            self._partial = None
            self._messages.append(AssistantMessage(content))

    def _plan(self, record: r.ToolPlanned) -> None:
        if record.req_id == self._dropped:
            return
        self._batch[record.call_id] = record
        self._open += 1

    def _outcome(self, record: r.ToolOutcome) -> None:
        planned = self._batch.get(record.call_id)
        if planned is None:
            return
        if type(planned) is not r.ToolPlanned:
            raise ValueError(f"call {record.call_id} has two outcomes")
        content = record.content
        if record.status == "unknown":
            content = (*content, TextPart(_UNKNOWN_EFFECT))
        self._batch[record.call_id] = ToolResultPart(
            record.call_id,
            planned.name,
            content,
            record.status,
            planned.provider_call_id,
        )
        self._open -= 1
        if not self._open:
            results: Any = tuple(self._batch.values())
            self._messages.append(ToolMessage(results))
            self._batch = {}
            if self._held:
                self._messages += self._held
                self._held = ()

    def _confirm(self, record: r.ApprovalDecided) -> None:
        """A person says what became of a call that a crash made unknown."""
        words = _CONFIRMED.get(record.decision.kind)
        if words is None:
            return
        note = f"The user says of {self._name_of(record.call_id)}: {words}"
        if isinstance(record.decision, Happened):
            note = f"{note} {join_text(record.decision.content)}".rstrip()
        if self._batch:
            self._held = (*self._held, host_note(note))
        else:
            self._messages.append(host_note(note))

    def _name_of(self, call_id: str) -> str:
        last: Any = next(
            (m for m in reversed(self._messages) if type(m) is ToolMessage), None
        )
        results = (*self._batch.values(), *(last.results if last is not None else ()))
        names = (part.name for part in results if part.call_id == call_id)
        return f"the call of {next(names, 'a tool')!r} whose effect was unknown"

    def _reject(self, record: r.OutputRejected) -> None:
        if type(self._messages[-1]) is not ToolMessage and not self._batch:
            self._messages.append(host_note(record.errors))

    def _look(self, record: r.EvidenceStarted) -> None:
        self._check = record.check

    def _find(self, record: r.EvidenceRecorded) -> None:
        if record.repair:
            note = f"The check {self._check!r} failed: {record.output}".rstrip()
            self._messages.append(host_note(f"{note}\nRepair it, then answer again."))

    def _start(self, record: r.RunStarted) -> None:
        self._requested = False

    def _end(self, record: r.RunEnded) -> None:
        self._close_partial()
        if record.stop.status == "cancelled" and self._requested:
            self._messages.append(host_note(_INTERRUPTED))

    _TAKES: ClassVar[dict[type, Callable[[HistoryProjector, Any], None]]] = {
        r.InputAccepted: _accept,
        r.InputPlaced: _place,
        r.InputWithdrawn: _drop,
        r.ModelIntent: _intend,
        r.ModelOutcome: _reply,
        r.ToolPlanned: _plan,
        r.ToolOutcome: _outcome,
        r.ApprovalDecided: _confirm,
        r.OutputRejected: _reject,
        r.EvidenceStarted: _look,
        r.EvidenceRecorded: _find,
        r.RunStarted: _start,
        r.RunEnded: _end,
    }


def _joined(parts: list[Any]) -> tuple[Any, ...]:
    """The parts with neighbouring texts made one."""
    joined: list[Any] = []
    for part in parts:
        if joined and type(part) is TextPart and type(joined[-1]) is TextPart:
            joined[-1] = TextPart(joined[-1].text + part.text)
        else:
            joined.append(part)
    return tuple(joined)


def _fragment(message: Message) -> bytes:
    """The bytes a message adds to the digest: framed, so that no two look alike."""
    pieces = _pieces(message)
    if pieces is None:
        data = dump_json(message)
        return b"%d:%b" % (len(data), data)
    return "\x1f".join(pieces).encode() + b"\x1e"


def _pieces(message: Message) -> list[str] | None:
    """The fields of the commonest messages as texts; `None`: use the codec."""
    pieces = [message.kind]
    if type(message) is ToolMessage:
        for result in message.results:
            pieces += (result.call_id, result.name, result.status)
            if not _add_texts(pieces, result.content):
                return None
        return pieces
    if isinstance(message, (UserMessage, AssistantMessage)):
        return pieces if _add_texts(pieces, message.content) else None
    return None


def _add_texts(pieces: list[str], parts: Sequence[Any]) -> bool:
    for part in parts:
        if type(part) is TextPart:
            pieces += (str(len(part.text)), part.text)
        elif type(part) is ToolCallPart:
            size = str(len(part.arguments))
            pieces += (part.call_id, part.name, size, part.arguments)
        else:
            return False
    return True
