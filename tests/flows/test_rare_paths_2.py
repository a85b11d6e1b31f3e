"""What happens seldom: odd items, odd models, things at the same moment."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.flows.kit import KeptStore, Kit, shown
from typing_extensions import override

from agentcore import Committed, tool
from agentcore._engine import decide as d
from agentcore._engine.cancellation import was_cancelled
from agentcore._engine.feed import Reader
from agentcore._engine.view import LiveView
from agentcore.context.projection import HistoryProjector
from agentcore.errors import Overloaded, StoreError, StoreFailed
from agentcore.journal.apply import fold
from agentcore.journal.state import SessionState
from agentcore.policies.retry import RetryPolicy
from agentcore.protocols.store import Appended
from agentcore.testing import (
    FakeClock,
    FakeExecutor,
    Gate,
    ScriptedModel,
    call,
    step,
    tool_spec,
)
from agentcore.types import inbox as i
from agentcore.types import records as r
from agentcore.types.content import TextPart, ThinkingPart
from agentcore.types.context import ToolContext
from agentcore.types.json import Unknown
from agentcore.types.model import ModelCapabilities, TextDelta
from agentcore.types.policy import Approve, Budget
from agentcore.types.runs import Lease
from agentcore.types.tools import OUTPUT_TOOL, ToolResult


def told(text: str) -> tuple[TextPart, ...]:
    return (TextPart(text),)


def reasons(result: Any) -> str:
    return f"{result.stop.status}/{result.stop.reason}"


# --- cancellations and deadlines ----------------------------------------------------
async def test_where_only_scopes_cancel_a_cancellation_is_taken_for_real(
    anyio_backend: str,
) -> None:
    # trio's cannot be made up by a tool; asyncio's can, and nobody cancelled this task.
    assert was_cancelled() is (anyio_backend == "trio")
    with anyio.CancelScope() as scope:
        scope.cancel()
        assert was_cancelled()
        await anyio.lowlevel.checkpoint()


async def test_a_short_deadline_set_after_a_long_one_comes_first(kit: Kit) -> None:
    @tool(effects="none", timeout=0.03)
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return ""

    gate = kit.gate("wait")
    agent = kit.agent(
        [call("ro", text="wait"), call("hang"), "short", "long"], tools=[kit.ro, hang]
    )
    outputs: list[Any] = []

    async def first() -> None:
        outputs.append((await agent.run("a", session="long")).output)

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await gate.reached()
        with anyio.fail_after(5):
            outputs.append((await agent.run("b", session="short")).output)
        gate.open()
    assert outputs == ["short", "long"]


async def test_words_about_a_call_out_of_time_are_capped_as_its_result_is(
    kit: Kit,
) -> None:
    @tool(effects="none", timeout=0.02, output_cap=10)
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return ""

    agent = kit.agent([call("hang"), "ok"], tools=[hang])
    result = await agent.run("hi", session="s")
    assert result.output == "ok"
    assert await kit.outcomes() == ["call_1 error/none"]
    assert "characters left out" in result.tool_calls[0].text


async def test_a_cancel_in_the_wait_for_a_retry_makes_no_other_attempt(
    kit: Kit,
) -> None:
    class Waking(FakeClock):
        """Whoever sleeps is cancelled, and comes back before it notices."""

        @override
        async def sleep(self, seconds: float) -> None:
            with anyio.CancelScope(shield=True):
                await run.cancel()

    agent = kit.agent(
        [Overloaded("busy"), "never"],
        clock=Waking(),
        retry=RetryPolicy(random=lambda: 0.5),
    )
    async with agent.start("hi", session="s") as run:
        result = await run.result()
    assert reasons(result) == "cancelled/user"
    assert len(kit.requests()) == 1


async def test_a_yes_that_comes_with_a_cancel_starts_nothing(kit: Kit) -> None:
    @tool(approval="ask")
    async def pay(context: ToolContext[Any]) -> str:
        """Pay."""
        kit.effects.add(context.call.id)
        return "paid"

    async def yes(request: Any) -> Approve:
        with anyio.CancelScope(shield=True):
            await run.cancel()
        return Approve()

    agent = kit.agent([call("pay"), "never"], tools=[pay], asks=yes)
    async with agent.start("hi", session="s") as run:
        result = await run.result()
    assert reasons(result) == "cancelled/user"
    assert await kit.outcomes() == ["call_1 not_started/none"]
    assert not kit.effects.read()


async def test_thinking_that_had_streamed_is_kept_when_a_reply_is_stopped(
    kit: Kit,
) -> None:
    gate = Gate()
    agent = kit.agent([step("so", thinking="hm", gate=gate, gate_after=1)])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.cancel()
        await run.result()
    [outcome] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ModelOutcome)
    ]
    assert outcome.status == "aborted"
    assert outcome.content == (ThinkingPart("hm"),)


# --- the inbox ----------------------------------------------------------------------
async def test_items_that_change_nothing_leave_no_record(kit: Kit) -> None:
    store = kit.store
    await kit.agent(["first"]).run("hi", session="s")
    await store.accept("s", Unknown("from.later", {"kind": "from.later", "id": "x"}))
    await store.accept("s", i.Withdraw("w", "nobody"))
    await store.accept("s", i.Redeliver("d", "nobody", "steer"))
    before = await kit.lines()
    result = await kit.agent(["second"]).run("go on", session="s")

    assert result.output == "second"
    added = (await kit.lines())[len(before) :]
    assert {line.split()[0] for line in added} == {
        "input.accepted",
        "input.placed",
        "run.started",
        "model.intent",
        "model.outcome",
        "run.ended",
    }


async def test_an_input_may_be_made_a_steer_while_it_waits(kit: Kit) -> None:
    gate = kit.gate("wait")
    agent = kit.agent([call("ro", text="wait"), "both"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        receipt = await run.follow_up("now, please")
        await kit.store.accept("s", i.Redeliver("d", receipt.item_id, "steer"))
        gate.open()
        result = await run.result()
    assert result.output == "both"
    assert shown(kit.requests()[1].messages)[-1] == "user now, please"


async def test_what_arrives_while_the_end_is_written_is_served_next(kit: Kit) -> None:
    gate = kit.store.hold(r.RunEnded)
    agent = kit.agent(["one", "two"])
    async with agent.start("a", session="s") as run:
        await gate.reached()
        await run.follow_up("b")
        gate.open()
        assert (await run.result()).output == "one"
    assert [line for line in await kit.lines() if line.startswith("run.ended")] == [
        "run.ended completed/final"
    ] * 2


async def test_of_a_paused_run_nothing_is_decided(kit: Kit) -> None:
    gate = kit.gate("wait")
    agent = kit.agent([call("ro", text="wait"), "never"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.pause()
        gate.open()
        await run.result()
    state = fold("s", await kit.records())
    assert d.decide(state, d.Facts(max_attempts=1, output_retries=1)) is d.IDLE


# --- models, policies, executors ----------------------------------------------------
async def test_a_policy_that_turns_out_to_be_async_forbids(kit: Kit) -> None:
    class Policy:
        def decide(self, *_: Any) -> Any:
            async def later() -> None: ...

            return later()

    agent = kit.agent([call("rw"), "ok"], permissions=Policy())
    result = await agent.run("hi", session="s")
    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "must be a plain function" in result.tool_calls[0].text


async def test_a_stream_without_an_end_is_a_broken_one(kit: Kit) -> None:
    class Cut(ScriptedModel):
        @override
        @asynccontextmanager
        async def stream(self, request: Any) -> AsyncIterator[Any]:
            async def deltas() -> AsyncIterator[Any]:
                yield TextDelta("half a ")

            yield deltas()

    agent = kit.agent(Cut([]), retry=RetryPolicy(max_attempts=1))
    result = await agent.run("hi", session="s")
    assert reasons(result) == "failed/model"
    assert "ended without its response" in result.stop.detail


async def test_a_caller_may_lower_how_often_a_tool_is_called(kit: Kit) -> None:
    agent = kit.agent(
        [call("ro"), call("ro"), "ok"], budget=Budget(per_tool={"ro": 5, "rw": 1})
    )
    await agent.run("hi", session="s", budget=Budget(per_tool={"ro": 1, "par": 3}))
    assert await kit.outcomes() == ["call_1 ok/none", "call_2 denied/none"]


async def test_what_a_call_cost_is_on_record(kit: Kit) -> None:
    @tool(effects="none")
    async def dear() -> ToolResult:
        """Cost."""
        return ToolResult(told("bought"), cost_usd=0.5)

    await kit.agent([call("dear"), "ok"], tools=[dear]).run("hi", session="s")
    [outcome] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ToolOutcome)
    ]
    assert outcome.meta["cost_usd"] == 0.5


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ([tool_spec(OUTPUT_TOOL)], "reserved"),
        ([tool_spec("look"), tool_spec("look")], "two tools are named 'look'"),
    ],
    ids=["reserved", "twice"],
)
async def test_names_an_executor_may_not_list_stop_the_run(
    kit: Kit, specs: list[Any], words: str
) -> None:
    class Listing(FakeExecutor):
        @override
        async def list_tools(self, context: Any = None) -> Sequence[Any]:
            return specs

    executor = Listing({})
    agent = kit.agent(["never"], tools=[], executor=executor)
    result = await agent.run("hi", session="s")
    assert reasons(result) == "failed/config"
    assert words in result.stop.detail


async def test_a_model_that_takes_no_tools_is_offered_none(kit: Kit) -> None:
    model = ScriptedModel(["never"], capabilities=ModelCapabilities(tools=False))
    result = await kit.agent(model).run("hi", session="s")
    assert reasons(result) == "failed/config"
    assert "takes no tools" in result.stop.detail


# --- what a tool may look at and do -------------------------------------------------
async def test_a_tool_sees_where_it_is_and_notes_its_processes(kit: Kit) -> None:
    seen: list[Any] = []

    @tool
    async def look(context: ToolContext[Any]) -> str:
        """Look."""
        view = context.view
        seen.extend([view.run_id, view.session_id, view.root_session_id])
        seen.append(dict(view.state))
        await context.record_process(4711, 12.5)
        return "seen"

    await kit.agent([call("look"), "ok"], tools=[look]).run("hi", session="s")
    assert seen == ["run_1", "s", "s", {}]
    [noted] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ToolCheckpoint)
    ]
    assert (noted.call_id, noted.pgid, noted.started) == ("call_1", 4711, 12.5)


def test_before_its_first_run_a_session_has_no_run_to_look_at() -> None:
    view = LiveView(SessionState("s"), HistoryProjector(), FakeClock())
    with pytest.raises(LookupError, match="no run"):
        _ = view.run_id


async def test_a_tool_that_hides_a_failed_store_changes_nothing(kit: Kit) -> None:
    class Failing(KeptStore):
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
            if any(isinstance(record, r.ToolCheckpoint) for record in records):
                raise StoreFailed("disk full")
            return await super().append(
                lease, records, expected_seq=expected_seq, expected_inbox=expected_inbox
            )

    @tool
    async def hide(context: ToolContext[Any]) -> str:
        """Hide."""
        with pytest.raises(StoreError):
            await context.record_process(4711, 12.5)
        return "all is well"

    kit.store = Failing()
    agent = kit.agent([call("hide"), "never"], tools=[hide])
    with pytest.raises(StoreError, match="disk full"):
        await agent.run("hi", session="s")
    assert len(kit.requests()) == 1


async def test_a_call_that_comes_back_while_another_is_written_is_not_missed(
    kit: Kit,
) -> None:
    writing = kit.store.stop(r.ToolOutcome)
    later = kit.gate("later")
    calls = [call("par", text="now"), call("par", text="later")]
    agent = kit.agent([calls, "ok"])
    async with agent.start("hi", session="s") as run:
        await writing.reached()
        later.open()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        writing.open()
        assert (await run.result()).output == "ok"
    assert await kit.outcomes() == ["call_1 ok/none", "call_2 ok/none"]


# --- a slow reader ------------------------------------------------------------------
class Journal:
    """Records to read again; `AsyncIterator` by hand, so there is nothing to close."""

    def __init__(self, first: int, last: int) -> None:
        self.numbers = iter(range(first, last + 1))

    def __aiter__(self) -> "Journal":
        return self

    async def __anext__(self) -> r.StoredRecord:
        for number in self.numbers:
            return r.StoredRecord(number, 1, 0.0, r.OwnerReleased())
        raise StopAsyncIteration


async def test_a_reader_far_behind_reads_the_journal_in_pieces() -> None:
    reader = Reader(lambda after: Journal(after + 1, 5000))
    for first in range(1, 5001, 10):
        reader.commit(first, [r.OwnerReleased()] * 10)
    reader.close()
    seen = [event.seq async for event in reader if isinstance(event, Committed)]
    assert seen == list(range(1, 5001))


async def test_a_journal_that_lost_what_was_committed_is_told_on() -> None:
    reader = Reader(lambda after: Journal(1, 0))
    for first in range(1, 2001, 10):
        reader.commit(first, [r.OwnerReleased()] * 10)
    reader.close()
    with pytest.raises(RuntimeError, match="committed and unreadable"):
        async for _ in reader:
            pass
