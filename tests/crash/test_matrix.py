"""Every kind of record a run writes, with a kill before, after and in the middle of it.

Each cell is two real processes on one store: one that is killed, and one that goes on.
"""

from collections.abc import Callable

import pytest
from tests.crash.kit import GO, STORES, Cell, judge, judge_effects, kinds

Make = Callable[[str], Cell]
KINDS = (
    "owner.acquired",
    "input.accepted",
    "run.started",
    "input.placed",
    "tools.advertised",
    "usage.reserved",
    "model.intent",
    "model.partial",
    "model.outcome",
    "usage.recorded",
    "tool.planned",
    "tool.intent",
    "tool.progress",
    "tool.outcome",
    "approval.requested",
    "run.paused",
    "approval.decided",
    "run.unpaused",
    "state.changed",
    "run.ended",
    "owner.released",
)
BY_THE_STORE = {"session.created"}


def test_the_matrix_has_every_kind_the_run_writes(cell: Make) -> None:
    after = cell("jsonl_crash").test.run(GO)
    judge(after)
    assert set(kinds(after)) == {*KINDS, *BY_THE_STORE}
    assert len(after.effects) == len(set(after.effects)) == 10


# Around a write, how long it takes to the disk makes no difference; in it, it does.
CELLS = [
    (store, kind, when)
    for store in STORES
    for kind in KINDS
    for when in ("before", "mid", "after")
    if when == "mid" or store.endswith("crash")
]


@pytest.mark.scenario("run-63")
@pytest.mark.parametrize(("store", "kind", "when"), CELLS)
def test_a_kill_at_a_record_costs_nothing(
    cell: Make, store: str, kind: str, when: str
) -> None:
    here = cell(store)
    left = here.kill(f"{when}:{kind}")
    assert kinds(left)[kind] == (0 if when != "after" else max(1, kinds(left)[kind]))
    after = here.go_on(left)
    judge(after)
    judge_effects(after)
