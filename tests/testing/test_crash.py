"""Real processes, killed where a test says, and what the next one finds."""

import time
from pathlib import Path
from typing import Literal

import pytest

from agentcore.errors import ConfigError
from agentcore.testing import Aftermath, CrashTest, assert_journal, journal_lines
from agentcore.types import records as r

STORE = "tests.testing.disk_store:make"
FIRST = "tests.testing.crash_work:first"
AGAIN = "tests.testing.crash_work:again"
DECIDED = "tests.testing.crash_work:decided"
"""Goes on with a run that asks what nobody can say."""


@pytest.mark.scenario("run-10", "run-11")
@pytest.mark.parametrize(
    ("at", "effects"),
    [
        ("before:create", 0),
        ("before:accept", 0),
        ("after:accept", 0),
        ("after:model.intent", 0),
        ("mid:model.outcome", 0),
        ("before:tool.intent", 0),
        ("after:tool.intent", 0),
        ("in:rw", 1),
        ("after:tool.outcome#1", 1),
        ("before:run.ended", 3),
        ("after:run.ended", 3),
    ],
)
def test_a_killed_process_leaves_what_the_next_can_go_on_with(
    tmp_path: Path, at: str, effects: int
) -> None:
    test = CrashTest(STORE, tmp_path)
    test.kill(FIRST, at=at)
    left = test.run()
    assert len(left.effects) == effects
    assert_journal(left.journal("s"), left.effects)

    after = test.run(AGAIN)

    assert_journal(after.journal("s"), after.effects)
    assert after.output.split() in (["completed"], ["paused"])
    kinds = [stored.record.kind for stored in after.journal("s")]
    assert kinds.count("input.accepted") == kinds.count("input.placed") == 1
    before = [stored.record for stored in left.journal("s")]
    assert [s.record for s in after.journal("s")][: len(before)] == before


@pytest.mark.scenario("run-46")
def test_a_result_that_was_written_is_kept_and_its_call_not_made_again(
    tmp_path: Path,
) -> None:
    test = CrashTest(STORE, tmp_path)
    test.kill(FIRST, at="after:tool.outcome")
    left = test.run(AGAIN)
    assert outcome_of(left.effects[0], left).status == "ok"
    assert left.effects.count(left.effects[0]) == 1


def test_of_a_batch_killed_in_the_middle_the_rest_is_run_once(tmp_path: Path) -> None:
    test = CrashTest(STORE, tmp_path)
    test.kill(FIRST, at="before:tool.intent#2")
    assert test.run(AGAIN).output == "paused\n"
    left = test.run(DECIDED)
    assert left.output == "completed\n"
    assert len(left.effects) == len(set(left.effects)) == 3
    # The second intent shares an append with the first outcome, which is lost with it.
    statuses = [outcome_of(key, left).status for key in left.effects]
    assert statuses == ["unknown", "ok", "ok"]


def outcome_of(call_id: str, left: Aftermath) -> r.ToolOutcome:
    (outcome,) = [
        stored.record
        for stored in left.journal("s")
        if isinstance(stored.record, r.ToolOutcome) and stored.record.call_id == call_id
    ]
    return outcome


@pytest.mark.scenario("run-44")
def test_a_call_killed_before_its_effect_is_unknown_and_somebody_is_asked(
    tmp_path: Path,
) -> None:
    test = CrashTest(STORE, tmp_path)
    test.kill(FIRST, at="after:tool.intent")
    left = test.run(AGAIN)
    assert left.output == "paused\n"
    assert left.effects == []
    (outcome,) = [
        stored.record
        for stored in left.journal("s")
        if isinstance(stored.record, r.ToolOutcome)
    ]
    assert (outcome.status, outcome.effect) == ("unknown", "unknown")
    pauses = [
        stored.record.reason
        for stored in left.journal("s")
        if isinstance(stored.record, r.RunPaused)
    ]
    assert pauses == ["confirm_unknown"]


@pytest.mark.scenario("run-45")
def test_a_call_killed_after_its_effect_is_unknown_for_ever(tmp_path: Path) -> None:
    test = CrashTest(STORE, tmp_path, backend="trio")
    test.kill(FIRST, at="in:rw")
    left = test.run(AGAIN)
    outcome = outcome_of(left.effects[0], left)
    assert (outcome.status, outcome.effect) == ("unknown", "unknown")
    assert left.effects.count(outcome.call_id) == 1


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_without_a_kill_the_work_is_simply_done(
    tmp_path: Path, backend: Literal["asyncio", "trio"]
) -> None:
    left = CrashTest(STORE, tmp_path, backend=backend).run(FIRST)
    assert journal_lines(left.journal("s"))[-2].endswith("completed/final")
    assert len(left.effects) == 3
    assert left.journal("another") == []


def test_a_place_that_is_never_reached_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"was to be killed after:run\.ended#2"):
        CrashTest(STORE, tmp_path).kill(FIRST, at="after:run.ended#2")


def test_a_work_that_fails_shows_what_it_printed(tmp_path: Path) -> None:
    test = CrashTest(STORE, tmp_path)
    with pytest.raises(AssertionError, match="a work that fails") as caught:
        test.run("tests.testing.disk_store:broken")
    assert "about to fail" in str(caught.value)


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    test = CrashTest(STORE, tmp_path, patience=0.5)
    with pytest.raises(AssertionError, match="has not ended after"):
        test.run("tests.testing.disk_store:hangs")


def test_a_child_of_a_killed_process_is_ended_too(tmp_path: Path) -> None:
    test = CrashTest(STORE, tmp_path)
    test.kill("tests.testing.crash_work:with_orphan", at="in:rw")
    stat = Path("/proc", (tmp_path / "orphan").read_text(), "stat")
    until = time.monotonic() + 10
    while stat.exists() and stat.read_text().split()[2] != "Z":  # not buried yet
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("at", ["", "somewhere", "before:nothing", "in:"])
def test_a_place_that_is_none_is_refused(tmp_path: Path, at: str) -> None:
    with pytest.raises(ConfigError):
        CrashTest(STORE, tmp_path).kill(FIRST, at=at)


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not 'module:function'"):
        CrashTest("my_store", tmp_path)
