"""The lock that works without flock, and what a user sees of a download."""

import io
import threading
import time
from pathlib import Path

import pytest
from typing_extensions import override

from agentcore.providers.local import LocalModelError, TerminalProgress, _files
from agentcore.providers.local._files import one_writer
from agentcore.providers.local._threads import go_on


@pytest.mark.parametrize("flock", [True, False])
def test_only_one_holds_the_lock_and_the_others_get_it_in_turn(
    tmp_path: Path, flock: bool
) -> None:
    inside: list[int] = []
    most: list[int] = []
    waited: list[int] = []

    def work(number: int) -> None:
        with one_writer(
            tmp_path / "lock", go_on, lambda: waited.append(number), flock=flock
        ):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.1)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1]
    assert len(waited) == 2


def test_a_lock_file_left_by_a_dead_process_is_named_after_a_long_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "_EXCLUSIVE_WAIT_S", -1.0)
    (tmp_path / "lock").touch()
    with (
        pytest.raises(LocalModelError, match="delete that file"),
        one_writer(tmp_path / "lock", go_on, lambda: None, flock=False),
    ):
        pass


class Terminal(io.StringIO):
    @override
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_bar_a_source_that_ends_its_line() -> None:
    terminal = Terminal()
    show = TerminalProgress(terminal)
    show(0, 2_000_000, "first")
    show(1_000, 2_000_000, "first")
    show(1_000_000, 2_000_000, "second")
    show(2_000_000, 2_000_000, "second")
    show(2_000_000, 2_000_000, "second")
    shown = terminal.getvalue()
    assert "[............]" not in shown
    assert shown.count("\n") == 2
    assert " 50% 1 of 2 MB  second" in shown
    assert shown.endswith("100% 2 of 2 MB  second\n")


def test_a_log_file_gets_few_whole_lines() -> None:
    log = io.StringIO()
    show = TerminalProgress(log)
    for done in range(0, 2_000_001, 1000):
        show(done, 2_000_000, "hub")
    assert log.getvalue().splitlines() == [
        "model weights:   0% 0 of 2 MB  hub",
        "model weights: 100% 2 of 2 MB  hub",
    ]


def test_a_terminal_that_went_away_does_not_end_the_download() -> None:
    class Gone(io.StringIO):
        @override
        def write(self, text: str) -> int:
            raise BrokenPipeError

    TerminalProgress(Gone())(1, 2, "hub")
