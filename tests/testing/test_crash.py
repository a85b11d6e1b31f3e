"""Real processes, killed where a test says, and what the next one finds."""

import time
from pathlib import Path
from typing import Literal

import pytest

from agentcore.errors import ConfigError
from agentcore.testing import CrashTest, assert_journal, journal_lines
from agentcore.types import records as r

STORE = "tests.testing.disk_store:make"
FIRST = "tests.testing.crash_work:first"
AGAIN = "tests.testing.crash_work:again"


@pytest.mark.scenario("run-45", "run-46", "run-51")
@pytest.mark.parametrize(
    ("at", "effects"),
    [
        ("before:create", 0),
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
    before = [stored.record for stored in left.journal("s")]
    assert [s.record for s in after.journal("s")][: len(before)] == before


def test_a_call_killed_after_its_effect_is_unknown_for_ever(tmp_path: Path) -> None:
    test = CrashTest(STORE, tmp_path, backend="trio")
    test.kill(FIRST, at="in:rw")
    left = test.run(AGAIN)
    (outcome,) = [
        stored.record
        for stored in left.journal("s")
        if isinstance(stored.record, r.ToolOutcome)
        and stored.record.call_id == left.effects[0]
    ]
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
