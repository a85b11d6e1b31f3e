"""Cancelling: what had started is settled honestly, and nothing more starts."""

import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio import get_cancelled_exc_class
from tests.flows.kit import Kit, shown
from typing_extensions import override

from agentcore import tool
from agentcore.errors import Overloaded, SessionBusy, SessionNotFound
from agentcore.testing import FakeClock, FakeExecutor, Gate, call, step
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.context import ToolContext
from agentcore.types.policy import Approve, Decision
from agentcore.types.tools import ToolSpec

SCENARIO = pytest.mark.scenario
CANCELLED = "run.ended cancelled/user"


class SlowListing(FakeExecutor):
    """Waits at a gate before it tells which tools there are."""

    def __init__(self, gate: Gate) -> None:
        super().__init__({"ro": "text"})
        self.gate = gate

    @override
    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        await self.gate.wait()
        return await super().list_tools(context)


# --- at each phase ------------------------------------------------------------------
@SCENARIO("run-27")
async def test_a_cancel_before_the_request_costs_nothing(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent(["never"], tools=[], executor=SlowListing(gate))
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        await run.cancel()
        gate.open()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert result.usage.requests == 0
    assert kit.requests() == []
    assert await kit.lines(ledger=True) == [
        "input.accepted i1",
        "run.started",
        "input.placed i1",
        "cancel.requested user",
        CANCELLED,
    ]


async def test_a_cancel_right_after_the_start_sends_no_request(kit: Kit) -> None:
    async with kit.agent(["never"]).start("hi", session="s") as run:
        await run.cancel()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert kit.requests() == []
    assert result.usage.total_tokens == 0


@SCENARIO("run-28")
async def test_text_streamed_before_a_cancel_is_kept_and_not_shown_as_said(
    kit: Kit,
) -> None:
    gate = Gate()
    half = step(chunks=["abc"], calls=[call("rw", text="a")], gate=gate, gate_after=3)
    agent = kit.agent([half, "fresh"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.cancel()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    [outcome] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ModelOutcome)
    ]
    assert outcome.status == "aborted"
    assert [getattr(part, "text", None) for part in outcome.content] == ["abc"]
    assert not [line for line in await kit.lines() if line.startswith("tool.")]
    assert kit.effects.read() == []

    await agent.run("again", session="s")
    prompt = shown(kit.requests()[-1].messages)
    assert prompt[0] == "user hi"
    assert prompt[1].startswith("note ")
    assert prompt[2:] == ["user again"]
    assert "abc" not in "".join(prompt)


@SCENARIO("run-29")
async def test_a_call_streamed_whole_before_a_cancel_is_on_record_and_never_run(
    kit: Kit,
) -> None:
    gate = Gate()
    whole = step(calls=[call("rw"), call("rw")], gate=gate, gate_after=4)
    agent = kit.agent([whole, "fresh"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.cancel()
        await run.result()

    assert await kit.outcomes() == ["call_1 not_started/none"]
    assert "tool.planned call_1" in await kit.lines()
    assert kit.effects.read() == []
    assert (await agent.run("again", session="s")).output == "fresh"


async def test_a_cancel_while_the_last_delta_is_on_its_way_starts_no_call(
    kit: Kit,
) -> None:
    gate = Gate()
    agent = kit.agent([step(calls=[call("rw")], gate=gate, gate_after=99)])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        async with anyio.create_task_group() as tasks:
            gate.open()
            tasks.start_soon(run.cancel)
        await run.result()

    assert kit.effects.read() == []
    assert await kit.outcomes() == ["call_1 not_started/none"]


@SCENARIO("run-30")
async def test_a_cancel_after_the_first_of_three_calls_leaves_two_not_started(
    kit: Kit,
) -> None:
    written = kit.store.hold(r.ToolOutcome)
    calls = [call("rw", text=text) for text in "abc"]
    agent = kit.agent([calls])
    async with (
        agent.start("hi", session="s") as run,
        anyio.create_task_group() as tasks,
    ):
        await written.reached()
        tasks.start_soon(run.cancel)
        await anyio.wait_all_tasks_blocked()
        written.open()
        await run.result()

    assert sorted(await kit.outcomes()) == [
        "call_1 ok/done",
        "call_2 not_started/none",
        "call_3 not_started/none",
    ]
    assert kit.effects.read() == ["call_1"]


@SCENARIO("run-31")
async def test_a_blocking_tool_that_cannot_be_stopped_has_an_unknown_effect(
    kit: Kit,
) -> None:
    started, release = Gate(), threading.Event()

    @tool
    def stubborn() -> str:
        """Block."""
        started.open()
        release.wait(10)
        return "late"

    async with kit.agent([call("stubborn")], tools=[stubborn]).start(
        "hi", session="s"
    ) as run:
        await started.wait()
        await run.cancel()
        with anyio.fail_after(5):
            result = await run.result()
    release.set()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert await kit.outcomes() == ["call_1 unknown/unknown"]


@SCENARIO("run-32")
async def test_a_tool_that_returns_in_spite_of_the_cancel_keeps_its_result(
    kit: Kit,
) -> None:
    working = Gate()

    @tool
    async def shielded() -> str:
        """Finish what was begun."""
        with anyio.CancelScope(shield=True):
            working.open()
            await anyio.sleep(0.02)
        return "paid"

    agent = kit.agent([call("shielded"), "I see"], tools=[shielded])
    async with agent.start("hi", session="s") as run:
        await working.wait()
        await run.cancel()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert await kit.outcomes() == ["call_1 ok/done"]
    await agent.run("and?", session="s")
    assert shown(kit.requests()[-1].messages)[2] == "tool call_1=ok"


@SCENARIO("run-33")
async def test_a_hanging_tool_without_effects_is_cancelled_cleanly(kit: Kit) -> None:
    gate = kit.gate("hang")
    async with kit.agent([call("ro", text="hang")]).start("hi", session="s") as run:
        await gate.reached()
        await run.cancel()
        await run.result()

    assert await kit.outcomes() == ["call_1 cancelled/none"]


@pytest.mark.parametrize("name", ["rw", "idem"])
async def test_a_hanging_tool_with_effects_is_unknown(kit: Kit, name: str) -> None:
    gate = kit.gate("hang")
    async with kit.agent([call(name, text="hang")]).start("hi", session="s") as run:
        await gate.reached()
        await run.cancel()
        await run.result()

    assert await kit.outcomes() == ["call_1 unknown/unknown"]


@SCENARIO("run-35")
async def test_a_cancel_in_the_wait_for_a_retry_makes_no_more_attempts(
    kit: Kit,
) -> None:
    clock = FakeClock()
    agent = kit.agent([Overloaded("busy", retry_after=20.0), "never"], clock=clock)
    async with agent.start("hi", session="s") as run:
        await clock.sleeping()
        await run.cancel()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert len(kit.requests()) == 1
    assert "model.outcome error" in await kit.lines()


@SCENARIO("run-43")
async def test_each_of_three_calls_ends_as_far_as_it_had_come(kit: Kit) -> None:
    hang = kit.gate("hang")
    calls = [call("par", text="a"), call("par", text="hang"), call("ro", text="c")]
    async with kit.agent([calls]).start("hi", session="s") as run:
        async for event in run:
            if isinstance(getattr(event, "record", None), r.ToolOutcome):
                break
        await hang.reached()
        await run.cancel()
        await run.result()

    assert await kit.outcomes() == [
        "call_1 ok/none",
        "call_2 cancelled/none",
        "call_3 not_started/none",
    ]


async def test_a_cancel_while_an_approval_is_asked_for_leaves_the_call_not_started(
    kit: Kit,
) -> None:
    asked = Gate()

    async def ask(request: Any) -> Decision:
        asked.open()
        await anyio.sleep_forever()
        return Approve()

    @tool(approval="ask")
    async def pay() -> str:
        """Pay."""
        kit.effects.add("paid")
        return "paid"

    async with kit.agent([call("pay")], tools=[pay], asks=ask).start(
        "hi", session="s"
    ) as run:
        await asked.wait()
        await run.cancel()
        await run.result()

    assert await kit.outcomes() == ["call_1 not_started/none"]
    assert kit.effects.read() == []


@pytest.mark.parametrize("door", ["handle", "agent"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "kind", [r.RunStarted, r.ModelIntent, r.ModelOutcome, r.ToolIntent, r.ToolOutcome]
)
async def test_a_cancel_around_any_append_ends_the_run_and_starts_nothing_more(
    kit: Kit, kind: type[Any], when: str, door: str
) -> None:
    gate = kit.store.stop(kind) if when == "before" else kit.store.hold(kind)
    calls = [call("par", text="a"), call("par", text="b"), call("rw", text="c")]
    agent = kit.agent([calls, call("rw", text="d"), "done"])
    async with (
        agent.start("hi", session="s") as run,
        anyio.create_task_group() as tasks,
    ):
        await gate.reached()
        started = len(kit.effects)
        if door == "handle":
            tasks.start_soon(run.cancel)
        else:
            tasks.start_soon(lambda: agent.cancel(session="s"))
        await anyio.wait_all_tasks_blocked()
        gate.open()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert (await kit.lines())[-1] == CANCELLED
    assert len(kit.effects) == started


# --- inputs around a cancel ---------------------------------------------------------
@SCENARIO("run-37")
async def test_a_cancel_parks_what_waits_until_it_is_released(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("never", gate=gate), "one", "two"])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        await run.steer("s1", input_id="s1")
        await run.follow_up("f1", input_id="f1")
        await run.cancel()
        await run.result()
    assert (await kit.lines())[-3:] == ["input.parked s1", "input.parked f1", CANCELLED]

    await agent.resume("s")
    assert len(kit.requests()) == 1

    await agent.release("s")
    await agent.resume("s")
    assert [shown(request.messages)[-1] for request in kit.requests()[1:]] == [
        "user s1",
        "user f1",
    ]


async def test_what_is_said_after_a_cancel_is_a_run_of_its_own(kit: Kit) -> None:
    working = Gate()
    release = Gate()

    @tool
    async def shielded() -> str:
        """Finish what was begun."""
        with anyio.CancelScope(shield=True):
            working.open()
            await release.wait()
        return "done"

    agent = kit.agent([call("shielded"), "new answer"], tools=[shielded])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await working.wait()
        await run.steer("before", input_id="s1")
        await run.cancel()
        await run.follow_up("after", input_id="f1")
        release.open()
        assert (await run.result()).stop.status == "cancelled"

    ended = [line for line in await kit.lines() if line.startswith("run.ended")]
    assert ended == [CANCELLED, "run.ended completed/final"]
    assert "input.parked s1" in await kit.lines()
    assert shown(kit.requests()[-1].messages)[-1] == "user after"


# --- receipts -----------------------------------------------------------------------
@SCENARIO("run-38")
@pytest.mark.parametrize("door", ["handle", "agent"])
async def test_a_second_cancel_changes_nothing_and_a_third_comes_too_late(
    kit: Kit, door: str
) -> None:
    working, release = Gate(), Gate()

    @tool
    async def shielded() -> str:
        """Finish what was begun."""
        with anyio.CancelScope(shield=True):
            working.open()
            await release.wait()
        return "done"

    agent = kit.agent([call("shielded")], tools=[shielded])
    async with agent.start("hi", session="s") as run:

        async def cancel() -> Any:
            if door == "handle":
                return await run.cancel()
            return await agent.cancel(session="s")

        await working.wait()
        first = await cancel()
        second = await cancel()
        release.open()
        await run.result()
        third = await cancel()

    assert second.item_id == first.item_id
    assert third.note == "already_ended"
    assert (await kit.lines()).count("cancel.requested user") == 1


async def test_a_cancel_of_an_idle_session_says_that_nothing_was_running(
    kit: Kit,
) -> None:
    agent = kit.agent(["ok", "still here"])
    await agent.run("hi", session="s")
    before = await kit.lines()

    assert (await agent.cancel(session="s")).note == "already_ended"
    assert await kit.lines() == before
    assert (await agent.run("again", session="s")).output == "still here"


async def test_a_cancel_of_an_unknown_session_is_an_error(kit: Kit) -> None:
    with pytest.raises(SessionNotFound):
        await kit.agent([]).cancel(session="nope")


async def test_who_cancelled_is_on_record(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang")])
    async with agent.start("hi", session="s", actor=Actor("ann")) as run:
        await gate.reached()
        await agent.cancel(session="s", actor=Actor("bob"))
        await run.result()

    [cancel] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.CancelRequested)
    ]
    assert cancel.actor == Actor("bob")


# --- ownership and leftovers --------------------------------------------------------
@SCENARIO("run-61")
async def test_a_session_has_one_owner_at_a_time(kit: Kit) -> None:
    gate = kit.gate("hang")
    async with kit.agent([call("ro", text="hang"), "done"]).start(
        "hi", session="s"
    ) as run:
        await gate.reached()
        with pytest.raises(SessionBusy) as busy:
            await kit.store.acquire("s", "somebody else")
        assert busy.value.owner
        gate.open()
        await run.result()

    lease = await kit.store.acquire("s", "somebody else")
    await kit.store.release(lease)


@SCENARIO("peers-T2")
async def test_swallowing_the_cancel_saves_no_run_and_loses_no_finished_result(
    kit: Kit,
) -> None:
    swallowing = Gate()

    @tool(parallel=True)
    async def swallow() -> str:
        """Do not want to stop."""
        try:
            swallowing.open()
            await anyio.sleep_forever()
        except get_cancelled_exc_class():
            pass
        await anyio.sleep(30)
        return "went on"

    agent = kit.agent(
        [[call("parw", text="a"), call("swallow")], "fresh"], tools=[kit.parw, swallow]
    )
    async with agent.start("hi", session="s") as run:
        await swallowing.wait()
        async for event in run:
            if isinstance(getattr(event, "record", None), r.ToolOutcome):
                break
        await run.cancel()
        with anyio.fail_after(1):
            result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert await kit.outcomes() == ["call_1 ok/done", "call_2 unknown/unknown"]
    await agent.run("again", session="s")
    assert kit.effects.read() == ["call_1"]


@SCENARIO("peers-T3")
async def test_a_cancelled_run_leaves_no_tool_behind(kit: Kit) -> None:
    started, seen = Gate(), []

    @tool
    async def long() -> str:
        """Take long."""
        started.open()
        try:
            await anyio.sleep(30)
        except get_cancelled_exc_class():
            seen.append("cancelled")
            raise
        return "never"

    before = len(anyio.get_running_tasks())
    async with kit.agent([call("long")], tools=[long]).start("hi", session="s") as run:
        await started.wait()
        with anyio.fail_after(1):
            await run.cancel()
            await run.result()

    assert seen == ["cancelled"]
    assert len(anyio.get_running_tasks()) == before


async def test_cancelling_the_callers_own_scope_is_felt_by_the_caller(
    kit: Kit,
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("rw", text="hang"), "went on"])
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def stop() -> None:
                await gate.reached()
                scope.cancel()

            tasks.start_soon(stop)
            await agent.run("hi", session="s")

    assert scope.cancelled_caught
    assert await kit.outcomes() == ["call_1 unknown/unknown"]
    assert (await kit.lines())[-1] == "run.paused host"
    await agent.resume("s")
    assert (await kit.lines())[-1] == "run.ended completed/final"
