"""A `CrashTest` whose processes come from a warm parent, and how cells are judged."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from typing_extensions import override

from agentcore.testing import Aftermath, CrashTest, assert_journal
from agentcore.types import records as r
from agentcore.types.records import StoredRecord

S: Final = "s"
GO: Final = "tests.crash.work:go"
STORES: Final = ("sqlite_crash", "sqlite_power", "jsonl_crash", "jsonl_power")
AT_ONCE: Final = 10.0
"""Seconds: less than a third of what a lease that nobody renews would last."""


def _ours() -> dict[str, str]:
    """This environment, but for coverage: a process that is killed says nothing."""
    return {k: v for k, v in os.environ.items() if k != "COVERAGE_PROCESS_START"}


class Zygote:
    """The warm parent: forks a process whenever it is told."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**_ours(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def run(self, told: dict[str, Any], patience: float) -> int:
        """Run a process to its end; its exit code, negative where it was killed."""
        self._tell(told)
        child = int(self._hear(patience))
        try:
            code = int(self._hear(patience))
        except TimeoutError:
            os.killpg(child, signal.SIGKILL)
            self._hear(patience)
            raise AssertionError(f"it has not ended after {patience} s") from None
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it left running
        return code

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(AT_ONCE)
        self._process.stdout.close()

    def _tell(self, told: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()

    def _hear(self, patience: float) -> str:
        # It answers a line at a time, so nothing waits in the buffer of this side.
        stdout = self._process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], patience)[0]:
            raise TimeoutError
        return stdout.readline()


class WarmCrashTest(CrashTest):
    """A `CrashTest` that does not wait for the imports of each process."""

    def __init__(
        self,
        zygote: Zygote,
        store: str,
        folder: Path,
        backend: Literal["asyncio", "trio"] = "asyncio",
    ) -> None:
        super().__init__(
            f"tests.crash.work:{store}", folder, backend=backend, patience=AT_ONCE * 2
        )
        self._zygote = zygote

    @override
    def _process(self, work: str, at: str, found: Path | None) -> tuple[int, str]:
        output = self.folder / "output"
        told = {
            "store": self._store,
            "work": work,
            "folder": str(self.folder),
            "at": at,
            "backend": self._backend,
            "found": str(found or ""),
            "path": sys.path,
            "output": str(output),
        }
        code = self._zygote.run(told, self._patience)
        return code, output.read_text(encoding="utf-8", errors="replace")


@dataclass
class Cell:
    """One store, killed at one or more places, and gone on with."""

    test: CrashTest

    def kill(self, *places: str, work: str = GO) -> Aftermath:
        """Kill a process at each place in turn; what the last one left."""
        for at in places:
            self.test.kill(work, at=at)
        return self.test.run()

    def go_on(self, left: Aftermath, work: str = GO) -> Aftermath:
        """Another process ends the run; what was there stays, and nothing waits."""
        begun = time.monotonic()
        after = self.test.run(work)
        assert time.monotonic() - begun < AT_ONCE
        before = left.journal(S)
        assert after.journal(S)[: len(before)] == before
        assert_journal(after.journal(S), after.effects)
        _takeover(before, after.journal(S)[len(before) :])
        return after


def _takeover(before: Sequence[StoredRecord], later: Sequence[StoredRecord]) -> None:
    owners = [s for s in before if isinstance(s.record, r.OwnerAcquired)]
    if not owners or isinstance(before[-1].record, r.OwnerReleased):
        return
    new = later[0]
    assert isinstance(new.record, r.OwnerAcquired)
    assert new.record.reason == "takeover"
    assert new.epoch > before[-1].epoch


def kinds(left: Aftermath) -> Counter[str]:
    return Counter(stored.record.kind for stored in left.journal(S))


def records(left: Aftermath, kind: type[Any]) -> list[Any]:
    found = [stored.record for stored in left.journal(S)]
    return [record for record in found if isinstance(record, kind)]


def judge(after: Aftermath, status: str = "completed") -> None:
    """A run that ended: all input is in it, and every call has its one outcome."""
    (ended,) = records(after, r.RunEnded)
    assert ended.stop.status == status
    assert len(records(after, r.RunStarted)) == 1
    accepted = [one.input_id for one in records(after, r.InputAccepted)]
    placed = [one.input_id for one in records(after, r.InputPlaced)]
    assert len(accepted) == len(set(accepted))
    if status == "completed":
        assert sorted(placed) == sorted(accepted) == ["i1", "i2"]
    planned = [one.call_id for one in records(after, r.ToolPlanned)]
    outcomes = [one.call_id for one in records(after, r.ToolOutcome)]
    assert len(set(planned)) == len(planned)
    assert sorted(outcomes) == sorted(planned)


def judge_effects(after: Aftermath, kills: int = 1) -> None:
    """At most once where it matters, else at most once more for each kill."""
    safe = {one.call_id for one in records(after, r.ToolIntent) if one.replay == "safe"}
    for key, times in Counter(after.effects).items():
        assert times <= (1 + kills if key in safe else 1), key
