"""Leaving early pauses; nothing is lost, and resume goes on where it was."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit, shown

from agentcore import tool
from agentcore.errors import ConfigError, SessionNotFound
from agentcore.testing import FakeClock, Gate, call, step
from agentcore.types import records as r

SCENARIO = pytest.mark.scenario
PAUSED = "run.paused host"
DONE = "run.ended completed/final"


@SCENARIO("run-42")
async def test_leaving_while_a_tool_runs_settles_it_and_resume_goes_on(
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

    agent = kit.agent([call("shielded"), "done", "and f"], tools=[shielded])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await working.wait()
        await run.follow_up("f", input_id="f")

    assert (await kit.lines())[-1] == PAUSED
    assert (await kit.records())[-1].record.kind == "owner.released"
    assert await kit.outcomes() == ["call_1 ok/done"]
    assert not any("parked" in line for line in await kit.lines())

    result = await agent.resume("s")
    assert result.output == "done"
    assert shown(kit.requests()[1].messages)[-1] == "tool call_1=ok"
    starts = [line for line in await kit.lines() if line.startswith("run.")]
    assert starts == ["run.started", PAUSED, "run.unpaused", DONE, "run.started", DONE]


async def test_leaving_before_anything_happened_loses_nothing(kit: Kit) -> None:
    agent = kit.agent(["done"])
    async with agent.start("hi", session="s", input_id="i1"):
        pass

    result = await agent.resume("s")
    assert result.output == "done"
    assert shown(kit.requests()[-1].messages)[0] == "user hi"


async def test_leaving_in_the_middle_of_a_reply_keeps_it_and_asks_again(
    kit: Kit,
) -> None:
    gate = Gate()
    half = step("never said", gate=gate, gate_after=1)
    agent = kit.agent([half, "done"], clock=FakeClock(autojump=True))
    async with agent.start("hi", session="s"):
        await gate.reached()
    assert "model.outcome aborted" in await kit.lines()

    assert (await agent.resume("s")).output == "done"
    assert shown(kit.requests()[1].messages) == ["user hi"]


async def test_an_error_of_the_caller_pauses_the_run_and_comes_out_as_it_is(
    kit: Kit,
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "done"])

    async def fail() -> None:
        async with agent.start("hi", session="s"):
            await gate.reached()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()
    assert (await kit.lines())[-1] == PAUSED
    assert (await agent.resume("s")).output == "done"


@pytest.mark.parametrize(
    "kind", [r.RunStarted, r.ModelIntent, r.ModelOutcome, r.ToolIntent, r.ToolOutcome]
)
async def test_leaving_around_any_append_can_be_resumed(
    kit: Kit, kind: type[Any]
) -> None:
    gate = kit.store.hold(kind)
    calls = [call("par", text="a"), call("rw", text="b")]
    # If the first request was already cut short, the script goes on with the next.
    agent = kit.agent([calls, "done", "done"], clock=FakeClock(autojump=True))
    async with agent.start("hi", session="s"), anyio.create_task_group() as tasks:
        await gate.reached()
        tasks.start_soon(_open_later, gate)
    ended = (await kit.lines())[-1]
    assert ended in (PAUSED, DONE)
    if ended == PAUSED:
        result = await agent.resume("s")
        assert result.stop.status == "completed"
    assert len(kit.effects) == len(set(kit.effects.read()))


async def _open_later(gate: Gate) -> None:
    await anyio.sleep(0.01)
    gate.open()


async def test_a_run_can_be_paused_and_resumed_again_and_again(kit: Kit) -> None:
    agent = kit.agent([*[call("ro", text=f"{n}") for n in range(8)], "done"])
    gates = [kit.gate(f"{n}") for n in range(8)]
    run: Any = agent.start("hi", session="s")
    for gate in gates:
        async with run:
            await gate.reached()
        run = agent.resume("s")
    result = await run

    assert result.output == "done"
    assert (await kit.lines()).count(PAUSED) == 8


async def test_leaving_again_and_again_in_the_middle_of_a_reply_is_no_failure(
    kit: Kit,
) -> None:
    gates = [Gate() for _ in range(8)]
    half = [step("never said", gate=gate, gate_after=1) for gate in gates]
    clock = FakeClock()
    agent = kit.agent([*half, "done"], clock=clock)
    run: Any = agent.start("hi", session="s")
    for gate in gates:
        async with run:
            await gate.reached()
        run = agent.resume("s")

    assert (await run).output == "done"
    assert clock.sleeps == []  # nor is there anything to wait for


async def test_a_pause_lets_the_batch_end(kit: Kit) -> None:
    gate = kit.gate("a")
    agent = kit.agent([[call("rw", text="a"), call("rw", text="b")], "done"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.pause()
        gate.open()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("paused", "host")
    assert await kit.outcomes() == ["call_1 ok/done", "call_2 ok/done"]
    assert (await kit.lines())[-1] == PAUSED
    assert (await agent.resume("s")).output == "done"


async def test_a_new_message_resumes_what_the_host_paused(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "first", "second"])
    async with agent.start("a", session="s", input_id="a"):
        await gate.reached()

    result = await agent.run("b", session="s", input_id="b")
    assert result.output == "second"
    assert [line for line in await kit.lines() if line.startswith("run.")] == [
        "run.started",
        PAUSED,
        "run.unpaused",
        DONE,
        "run.started",
        DONE,
    ]


async def test_the_same_message_again_resumes_its_own_paused_run(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "first"])
    async with agent.start("a", session="s", input_id="a"):
        await gate.reached()

    assert (await agent.run("a", session="s", input_id="a")).output == "first"
    assert (await kit.lines()).count("run.started") == 1


async def test_resuming_an_idle_session_returns_its_last_result(kit: Kit) -> None:
    agent = kit.agent(["done"])
    first = await agent.run("hi", session="s")

    assert await agent.resume("s") == first


async def test_resume_of_an_unknown_session_is_an_error(kit: Kit) -> None:
    with pytest.raises(SessionNotFound):
        await kit.agent([]).resume("nope")


async def test_resume_needs_a_store(kit: Kit) -> None:
    with pytest.raises(ConfigError, match="store"):
        kit.agent([], store=None).resume("s")


async def test_an_ephemeral_run_left_early_is_over(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang")])
    async with agent.start("hi", ephemeral=True) as run:
        await gate.reached()
        await run.pause()
        gate.open()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "host")


async def test_a_pause_before_the_run_began_is_a_paused_run(kit: Kit) -> None:
    agent = kit.agent(["earlier", "done"])
    await agent.run("earlier", session="s")
    async with agent.start("hi", session="s") as run:
        await run.pause()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("paused", "host")
    assert len(kit.requests()) == 1
    assert (await agent.resume("s")).output == "done"


async def test_a_message_parked_by_a_cancel_of_the_run_before_it_gets_its_result(
    kit: Kit,
) -> None:
    first, gate = kit.gate("first"), kit.gate("again")
    agent = kit.agent([call("ro", text="first"), call("ro", text="again")])
    async with agent.start("a", session="s", input_id="a"):
        await first.reached()
    async with agent.start("b", session="s", input_id="b") as run:
        await gate.reached()
        await run.cancel()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert "input.parked b" in await kit.lines()
