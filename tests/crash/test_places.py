"""Kills where the matrix has no cell: in a tool, in a pause, in a recovery."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.crash.kit import (
    GO,
    STORES,
    Cell,
    S,
    WarmCrashTest,
    Zygote,
    judge,
    judge_effects,
    kinds,
    records,
)

from agentcore.testing import Aftermath, assert_journal
from agentcore.types import records as r

Make = Callable[[str], Cell]
SCENARIO = pytest.mark.scenario
STORE = pytest.mark.parametrize("store", STORES)
STOPPED = "after:cancel.requested"
MOST_WRITES = 60


def outcome_of(after: Aftermath, tool: str) -> r.ToolOutcome:
    """Of the first call of a tool."""
    planned = next(p for p in records(after, r.ToolPlanned) if p.name == tool)
    found = [o for o in records(after, r.ToolOutcome) if o.call_id == planned.call_id]
    (outcome,) = found
    assert isinstance(outcome, r.ToolOutcome)
    return outcome


# --- in a tool ------------------------------------------------------------------------
@STORE
@pytest.mark.parametrize(
    "tool",
    [
        pytest.param("rw", marks=SCENARIO("run-45")),
        pytest.param("group", marks=SCENARIO("run-45")),
        pytest.param("pay", marks=SCENARIO("run-45")),
    ],
)
def test_a_call_killed_after_its_effect_is_unknown_and_never_made_again(
    cell: Make, store: str, tool: str
) -> None:
    here = cell(store)
    after = here.go_on(here.kill(f"in:{tool}"))
    judge(after)
    judge_effects(after)
    outcome = outcome_of(after, tool)
    assert (outcome.status, outcome.effect) == ("unknown", "unknown")
    assert after.effects.count(outcome.call_id) == 1


@STORE
@pytest.mark.parametrize(
    "tool",
    [
        pytest.param("idem", marks=SCENARIO("run-47")),
        "ro",
        "talk",
        "par",
    ],
)
def test_a_call_that_is_safe_is_made_again_and_has_one_outcome(
    cell: Make, store: str, tool: str
) -> None:
    here = cell(store)
    after = here.go_on(here.kill(f"in:{tool}"))
    judge(after)
    judge_effects(after)
    outcome = outcome_of(after, tool)
    assert outcome.status == "ok"
    assert after.effects.count(outcome.call_id) == 2


@SCENARIO("run-58")
@STORE
def test_of_two_calls_that_were_open_both_are_unknown(cell: Make, store: str) -> None:
    here = cell(store)
    left = here.kill("in:parw#2")
    assert len(left.effects) == len(set(left.effects)) == 5
    after = here.go_on(left)
    judge(after)
    judge_effects(after)
    calls = {p.call_id for p in records(after, r.ToolPlanned) if p.name == "parw"}
    outcomes = [o for o in records(after, r.ToolOutcome) if o.call_id in calls]
    assert [o.status for o in outcomes] == ["unknown", "unknown"]


@STORE
@pytest.mark.parametrize("at", ["after:tool.intent", "in:par", "in:parw"])
def test_what_is_safe_is_made_again_beside_a_call_nobody_knows_of(
    cell: Make, store: str, at: str
) -> None:
    mixed = "tests.crash.work:mixed"
    here = cell(store)
    after = here.go_on(here.kill(at, work=mixed), work=mixed)
    judge(after)
    judge_effects(after)
    assert outcome_of(after, "par").status == "ok"
    assert outcome_of(after, "parw").status == "unknown"


@SCENARIO("run-44")
@STORE
def test_a_call_killed_before_its_effect_is_not_made(cell: Make, store: str) -> None:
    here = cell(store)
    left = here.kill("after:tool.intent")
    assert left.effects == []
    seen = here.test.run("tests.crash.work:look")
    assert seen.output.split() == ["paused", "unknown_call"]
    assert seen.effects == []
    after = here.go_on(left)
    judge(after)
    outcome = outcome_of(after, "rw")
    assert (outcome.status, outcome.effect) == ("unknown", "unknown")
    assert outcome.call_id not in after.effects


@SCENARIO("run-46", "run-49")
@STORE
def test_a_result_that_was_written_is_kept_and_the_rest_runs_once(
    cell: Make, store: str
) -> None:
    here = cell(store)
    left = here.kill("before:tool.intent#3")
    after = here.go_on(left)
    judge(after)
    # The outcome of `idem` shares the append that was lost; of `rw` nothing was.
    assert outcome_of(after, "rw").status == "ok"
    again = outcome_of(after, "idem").call_id
    assert {key for key in after.effects if after.effects.count(key) > 1} == {again}


# --- what was said --------------------------------------------------------------------
@SCENARIO("run-10", "run-11")
@STORE
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["create", "accept#1", "acquire"])
def test_an_input_is_in_the_run_once_wherever_the_kill_was(
    cell: Make, store: str, when: str, what: str
) -> None:
    here = cell(store)
    left = here.kill(f"{when}:{what}")
    assert records(left, r.RunStarted) == []
    after = here.go_on(left)
    judge(after)
    assert len(after.effects) == len(set(after.effects)) == 10


@SCENARIO("run-19")
@STORE
def test_a_steer_that_was_acknowledged_is_in_the_next_request(
    cell: Make, store: str
) -> None:
    here = cell(store)
    left = here.kill("after:accept#2", work="tests.crash.work:steered")
    after = here.go_on(left)
    judge(after)
    journal = [stored.record for stored in after.journal(S)]
    (placed,) = [
        n
        for n, record in enumerate(journal)
        if isinstance(record, r.InputPlaced) and record.input_id == "i2"
    ]
    requests = [n for n, one in enumerate(journal) if isinstance(one, r.ModelIntent)]
    answers = [n for n, one in enumerate(journal) if isinstance(one, r.ToolPlanned)]
    assert placed < requests[-3]
    assert placed < answers[0]


# --- in a request ---------------------------------------------------------------------
@SCENARIO("run-51")
@STORE
def test_a_reply_that_is_half_written_is_unknown_and_asked_for_again(
    cell: Make, store: str
) -> None:
    here = cell(store)
    left = here.kill("mid:model.outcome")
    assert left.effects == []
    after = here.go_on(left)
    judge(after)
    if store.startswith("jsonl"):
        (torn,) = here.test.folder.glob("store/sessions/*/torn-at-*.bin")
        assert b"model.outcome" in torn.read_bytes()
    first, second = records(after, r.ModelOutcome)[:2]
    assert (first.status, second.status) == ("unknown", "ok")
    assert records(after, r.UsageRecorded)[0].estimated
    assert [one.attempt for one in records(after, r.ModelIntent)][:2] == [1, 2]


@SCENARIO("run-53")
@STORE
def test_what_was_streamed_is_on_record_and_in_no_prompt(
    cell: Make, store: str
) -> None:
    here = cell(store)
    after = here.go_on(here.kill("after:model.partial"))
    judge(after)  # the model of the work looks into every request
    lost = next(o for o in records(after, r.ModelOutcome) if o.status == "unknown")
    assert "word word" in str(lost.content)


# --- in a pause -----------------------------------------------------------------------
@SCENARIO("run-50")
@STORE
@pytest.mark.parametrize("at", ["after:run.paused", "after:owner.released"])
def test_what_waits_for_an_approval_goes_on_waiting(
    cell: Make, store: str, at: str
) -> None:
    here = cell(store)
    left = here.kill(at)
    seen = here.test.run("tests.crash.work:look")
    assert seen.output.split() == ["paused", "approval_request"]
    assert_journal(seen.journal(S), seen.effects)
    assert seen.effects == left.effects
    after = here.go_on(left)
    judge(after)
    assert len(after.effects) == len(set(after.effects)) == 10


# --- in a cancel ----------------------------------------------------------------------
@SCENARIO("run-40")
@STORE
@pytest.mark.parametrize("when", ["before", "mid", "after"])
def test_a_cancel_that_was_accepted_is_finished_by_the_next_owner(
    cell: Make, store: str, when: str
) -> None:
    here = cell(store)
    left = here.kill(f"{when}:cancel.requested", work="tests.crash.work:stopped")
    after = here.go_on(left)
    judge(after, "cancelled")
    judge_effects(after)
    outcome = outcome_of(after, "long")
    assert (outcome.status, outcome.effect) == ("unknown", "unknown")
    assert outcome_of(after, "rw").status == "not_started"
    assert len(records(after, r.ModelIntent)) == 1
    assert len(after.effects) == 1


# --- in a recovery --------------------------------------------------------------------
@pytest.mark.parametrize(
    ("store", "first", "when"),
    [
        ("sqlite_crash", "in:rw", "before"),
        ("jsonl_crash", "in:rw", "after"),
        ("sqlite_crash", "in:idem", "mid"),
        ("jsonl_crash", "in:idem", "mid"),
        ("sqlite_crash", STOPPED, "after"),
        ("jsonl_crash", STOPPED, "before"),
        ("jsonl_crash", STOPPED, "mid"),
    ],
)
def test_a_kill_at_any_write_of_a_recovery_costs_nothing_either(
    zygote: Zygote, tmp_path: Path, store: str, first: str, when: str
) -> None:
    cancelled = first == STOPPED
    work = "tests.crash.work:stopped" if cancelled else GO
    what = "append" if when == "mid" else "write"
    for number in range(1, MOST_WRITES + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        here = Cell(WarmCrashTest(zygote, store, folder))
        here.kill(first, work=work)
        try:
            left = here.kill(f"{when}:{what}#{number}")
        except AssertionError as ended:
            if "ended with 0" not in str(ended):
                raise
            break  # the recovery has no such write
        after = here.go_on(left)
        judge(after, "cancelled" if cancelled else "completed")
        judge_effects(after, kills=2)
    assert 3 < number < MOST_WRITES


@SCENARIO("run-54")
@STORE
def test_a_run_that_is_killed_on_every_resume_ends_and_keeps_what_was_said(
    cell: Make, store: str
) -> None:
    here = cell(store)
    left = here.kill("after:accept#3", *["after:resume.attempted"] * 3)
    assert kinds(left)["resume.attempted"] == 3
    after = here.go_on(left)
    judge(after, "failed")
    (ended,) = records(after, r.RunEnded)
    assert ended.stop.reason == "resume_loop"
    assert [one.input_id for one in records(after, r.InputPlaced)] == ["i1"]
    assert [one.input_id for one in records(after, r.InputAccepted)] == ["i1", "i2"]
