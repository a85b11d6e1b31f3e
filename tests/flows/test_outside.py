"""Looking on, cancelling and shutting down, without owning the session."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit

from agentcore import Committed, tool
from agentcore.errors import ConfigError, SessionNotFound
from agentcore.testing import FakeClock, Gate, call, step
from agentcore.types import records as r

SCENARIO = pytest.mark.scenario


# --- attach -------------------------------------------------------------------------
@SCENARIO("run-6")
async def test_who_attaches_sees_every_record_from_any_point_on(kit: Kit) -> None:
    await kit.agent([call("rw", text="a"), "done"]).run("hi", session="s")
    records = await kit.records()
    agent = kit.agent([])
    for after in (0, 3, len(records) - 1, len(records)):
        async with agent.attach("s", after=after) as run:
            seen = [event async for event in run]
            result = await run.result()
        assert seen == [Committed(s.seq, s.record) for s in records[after:]]
        assert result.output == "done"


async def test_who_attaches_to_a_live_run_sees_it_to_its_end(kit: Kit) -> None:
    gate = kit.gate("x")
    agent = kit.agent([call("ro", text="x"), "one", "two"])
    seen: list[Committed] = []

    async def look_on() -> None:
        async with kit.agent([]).attach("s") as watching:
            seen.extend([event async for event in watching])
            assert (await watching.result()).output == "two"

    async with agent.start("hi", session="s") as run:
        await gate.reached()
        async with anyio.create_task_group() as group:
            group.start_soon(look_on)
            async with kit.agent([]).attach("s") as other:
                await other.follow_up("more", input_id="f")
            gate.open()
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert [event.record for event in seen] == [s.record for s in await kit.records()]
    assert (await run.result()).output == "one"


async def test_a_slow_onlooker_loses_nothing_of_a_long_session(kit: Kit) -> None:
    agent = kit.agent(["ok"] * 60)
    for number in range(60):
        await agent.run(f"{number}", session="s")
    async with agent.attach("s") as run:
        seen = [event.seq async for event in run]
    assert len(seen) > 256
    assert seen == list(range(1, len(seen) + 1))


async def test_a_run_can_be_cancelled_and_steered_by_who_attached(kit: Kit) -> None:
    gate = kit.gate("x")
    agent = kit.agent([call("ro", text="x"), "never"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        async with kit.agent([]).attach("s") as other:
            await other.steer("faster", input_id="st")
            await other.cancel("enough")
            with pytest.raises(ConfigError, match="only who runs a session"):
                await other.pause()
        result = await run.result()
    assert (result.stop.status, result.stop.detail) == ("cancelled", "enough")


async def test_attaching_to_nothing_is_refused(kit: Kit) -> None:
    agent = kit.agent([])
    with pytest.raises(SessionNotFound):
        async with agent.attach("nobody"):
            pass
    bad: list[Any] = [-1, True, "3"]
    for after in bad:
        with pytest.raises(ConfigError, match="after"):
            agent.attach("s", after=after)
    with pytest.raises(ConfigError, match="needs an agent with a store"):
        kit.agent([], store=None).attach("s")
    await agent.submit("hi", session="s")
    async with agent.attach("s") as run:
        assert [type(e.record) async for e in run] == [r.SessionCreated]
        with pytest.raises(ConfigError, match="no run yet"):
            await run.result()


# --- cancel without an owner --------------------------------------------------------
async def test_a_cancel_of_a_run_that_nobody_drives_ends_it_at_once(kit: Kit) -> None:
    gate = kit.gate("x")
    agent = kit.agent([call("ro", text="x"), "never"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.follow_up("later", input_id="f")
    receipt = await agent.cancel(session="s", reason="enough")

    assert receipt.note == ""
    async with agent.attach("s") as seen:
        stop = (await seen.result()).stop
    assert (stop.status, stop.reason, stop.detail) == ("cancelled", "user", "enough")
    assert "input.parked f" in await kit.lines()
    assert (await agent.cancel(session="s")).note == "already_ended"
    assert len(kit.requests()) == 1


@SCENARIO("run-39")
async def test_a_cancel_while_a_decision_is_due_settles_it(kit: Kit) -> None:
    @tool(approval="ask")
    async def pay() -> str:
        """Pay."""
        return "paid"

    agent = kit.agent([call("pay")], tools=[pay], asks="pause")
    await agent.run("hi", session="s")
    await agent.cancel(session="s")

    assert await kit.outcomes() == ["call_1 not_started/none"]
    assert (await kit.lines())[-1] == "run.ended cancelled/user"


# --- shutdown -----------------------------------------------------------------------
@SCENARIO("run-42")
async def test_a_shutdown_pauses_everything_and_loses_nothing(kit: Kit) -> None:
    clock = FakeClock(autojump=True)
    gates = [Gate() for _ in range(3)]
    model = [step("never said", gate=gate, gate_after=1) for gate in gates]
    agent = kit.agent([*model, "a", "b", "c"], clock=clock)
    results: list[Any] = []

    async def run(session: str) -> None:
        results.append(await agent.run("hi", session=session))

    async with anyio.create_task_group() as group:
        for name in "abc":
            group.start_soon(run, name)
        for gate in gates:
            await gate.reached()
        await agent.shutdown()
        assert len(results) == 3 or await _soon(results)

    assert {(x.stop.status, x.stop.reason) for x in results} == {("paused", "host")}
    for name in "abc":
        assert (await agent.resume(name)).stop.status == "completed"


async def _soon(results: list[Any]) -> bool:
    while len(results) < 3:  # noqa: ASYNC110 - three tasks on their last steps
        await anyio.sleep(0.001)
    return True


async def test_a_shutdown_lets_those_go_who_wait_for_another_owner(kit: Kit) -> None:
    gate = kit.gate("x")
    owner = kit.agent([call("ro", text="x"), "done", "later"])
    waiting = kit.agent(["never"])
    results: list[Any] = []

    async def wait() -> None:
        results.append(await waiting.run("me too", session="s", input_id="w"))

    async with owner.start("hi", session="s") as run:
        await gate.reached()
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await waiting.shutdown()
        gate.open()
        assert (await run.result()).output == "done"
    assert [(x.stop.status, x.stop.reason) for x in results] == [("paused", "host")]
    assert (await kit.lines()).count("run.ended completed/final") == 2


async def test_a_shutdown_of_an_agent_at_rest_does_nothing(kit: Kit) -> None:
    agent = kit.agent(["done"])
    await agent.shutdown()
    assert (await agent.run("hi", session="s")).output == "done"
    await agent.shutdown()
