"""Schedules that showed something, each in as few actions as it takes.

Put here what `explore` finds. One that fails says why (`xfail`, strict), until whoever
mends the engine takes the mark off.
"""

from typing import Any

import anyio
import pytest
from tests.simulation import rules
from tests.simulation.actions import (
    Action,
    Cancel,
    Crash,
    Fail,
    Go,
    Leave,
    Resume,
    Run,
    Steer,
    Withdraw,
)
from tests.simulation.play import Schedule, play

from agentcore import ToolLoopAgent
from agentcore.errors import StoreFailed
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import Gate, ScriptedModel, call
from agentcore.testing._effect_tools import effect_tools
from agentcore.testing.faults import FaultyStore, fails

# Store calls take no time here, so the turnstile has: model, tool, effect, tool, …
IN_THE_CALL: tuple[Action, ...] = (Run(), Go(), Go(), Crash())


@pytest.mark.parametrize("tool", ["rw", "parw"])
@pytest.mark.scenario("run-45")
def test_a_call_killed_after_its_effect_is_never_made_again(tool: str) -> None:
    played = play(Schedule(IN_THE_CALL, (tool,), suspends=False))
    assert len(played.effects) == 1
    (outcome,) = [s.record for s in played.records if s.record.kind == "tool.outcome"]
    assert (outcome.status, outcome.effect) == ("unknown", "unknown")  # type: ignore[union-attr]  # by its kind


@pytest.mark.parametrize("tool", ["ro", "idem", "par"])
def test_a_call_that_may_be_replayed_is_run_again(tool: str) -> None:
    played = play(Schedule(IN_THE_CALL, (tool,), suspends=False))
    assert rules.replays_what_is_safe(played.records) == []


@pytest.mark.parametrize("tool", ["rw", "parw"])
def test_an_unknown_external_effect_pauses_the_run(tool: str) -> None:
    played = play(Schedule(IN_THE_CALL, (tool,), suspends=False))
    assert rules.asks_about_what_is_unknown(played.records) == []


def test_taking_an_interrupted_run_over_is_counted() -> None:
    played = play(Schedule((Run(), Crash()), suspends=False))
    assert rules.counts_its_attempts(played.records) == []


def test_a_caller_who_reads_along_takes_over_from_a_killed_owner() -> None:
    play(Schedule((Run(), Run(), Crash()), suspends=False))


def test_a_cancel_reaches_a_run_whose_owner_was_killed() -> None:
    played = play(Schedule((Run(), Go(), Crash(), Cancel()), ("rw",), suspends=False))
    assert [s.record.kind for s in played.records].count("model.intent") == 1
    assert played.effects == []


def test_a_run_left_in_a_batch_keeps_what_was_done() -> None:
    actions = (Run(), Go(), Go(), Leave())
    played = play(Schedule(actions, ("rw rw",), suspends=False))
    assert len(played.effects) == len(set(played.effects))


def test_an_input_that_settles_a_pause_does_not_overtake_an_earlier_steer() -> None:
    actions = (Run(), Steer(), Go(), Steer())
    played = play(Schedule(actions, ("ask",), suspends=False))
    assert rules.places_in_order(played.records) == []


def test_a_cancel_while_a_run_pauses_does_not_pause_the_next_one() -> None:
    actions = (Run(), Go(), Steer(), Go(), Run(), Go(), Withdraw(), Go(1, 8), Cancel())
    played = play(Schedule(actions, ("ask", "ro"), suspends=True))
    assert rules.pauses_for_its_own_calls(played.records) == []


def test_a_failed_write_while_taking_over_lets_go_of_the_session() -> None:
    actions = (Run(), Go(0, 14), Crash(), Resume(), Go(0, 5), Fail())
    play(Schedule(actions, suspends=True))


async def test_a_cancel_that_cannot_be_stored_stops_the_effect_all_the_same() -> None:
    reached, never = Gate(), Gate()

    async def effect(context: Any) -> None:
        reached.open()
        await never.wait()

    store = FaultyStore(MemoryRunStore(), fails("before:cancel.requested"))
    model = ScriptedModel([call("rw"), "done"])
    agent: ToolLoopAgent = ToolLoopAgent(model, tools=effect_tools(effect), store=store)
    async with agent.start("go", session="s") as run:
        await reached.wait()
        await run.cancel()
        try:
            with anyio.fail_after(1), pytest.raises(StoreFailed):
                await run.result()
        finally:
            never.open()
    store.assert_fired()
