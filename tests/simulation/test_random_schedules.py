"""Whatever happens to a session in whatever order, its journal keeps every rule.

Hypothesis draws schedules and shrinks a failing one to a few actions; the failure shows
it as `play(Schedule(…))`, to be pasted into `test_found.py`, with the journal. These
runs draw the same schedules every time; for others:

    python -m tests.simulation.explore --seed 7 --examples 5000
"""

import logging
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.simulation.play import Schedule, play
from tests.simulation.schedules import schedules

QUIET = 600
ROUGH = 1_500
STEPS = 10_000
"""Steps of runs (replies of the model) that both are to take together, at least."""

taken: dict[str, int] = {}


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """The engine logs every fault that is injected."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def explored(
    examples: int, *phases: Phase
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=phases or (Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def count(kind: str, schedule: Schedule) -> None:
    taken[kind] = taken.get(kind, 0) + play(schedule).replies


@explored(QUIET)
@given(schedules(rough=False))
def test_no_order_of_runs_cancels_and_inputs_breaks_a_rule(schedule: Schedule) -> None:
    count("quiet", schedule)


@explored(ROUGH)
@given(schedules(rough=True))
def test_no_crash_and_no_failed_write_breaks_a_rule(schedule: Schedule) -> None:
    count("rough", schedule)


def test_enough_steps_were_taken() -> None:
    if taken.keys() != {"quiet", "rough"}:
        pytest.skip("the random schedules were not all run")
    assert sum(taken.values()) >= STEPS, taken


@pytest.mark.parametrize("suspends", [True, False])
@explored(20, Phase.generate)
@given(data=st.data())
def test_a_schedule_is_played_the_same_way_every_time(
    suspends: bool, data: st.DataObject
) -> None:
    schedule = data.draw(schedules(rough=True))
    schedule = Schedule(schedule.actions, schedule.replies, suspends)
    first, again = play(schedule), play(schedule)
    assert [s.record.kind for s in first.records] == [
        s.record.kind for s in again.records
    ]
    assert first.effects == again.effects
