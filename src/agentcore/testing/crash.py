"""Kill a real process where it hurts, open its store again, and see what is left.

    test = CrashTest("my_store:make_store", tmp_path)
    test.kill("my_work:first", at="in:rw")     # a process runs it and is killed there
    left = test.run("my_work:again")           # another one goes on
    assert_journal(left.journal("s"), left.effects)

`make_store(folder)` gives the store; each work is an async function of a `CrashCase`.
They are named `module:function`, because each runs in a process of its own: its module
must be importable there, and imports agentcore as any program does.

A place to die is one of `agentcore.testing.faults` (`before:tool.intent#2`,
`after:accept`, `mid:append` where the store is `Torn`), or `in:rw#2`: after the second
effect of the tool `rw`, and before it returns.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from agentcore.errors import ConfigError
from agentcore.protocols.tools import Tool
from agentcore.testing._effect_tools import effect_tools
from agentcore.testing._fault import Fault, kill_myself, kills
from agentcore.testing._places import place_of
from agentcore.testing.effects import EffectLog
from agentcore.testing.faults import FaultyStore
from agentcore.types.codec import RECORDS
from agentcore.types.context import ToolContext
from agentcore.types.records import StoredRecord

_IN_TOOL: Final = re.compile(r"in:([^#]+)(?:#([1-9][0-9]*))?")
_LOOK_SECONDS: Final = 0.005
_KILLED: Final = -9


class CrashCase:
    """What a work gets, in the process it runs in."""

    def __init__(self, store: Any, folder: Path, at: str) -> None:
        tool = _IN_TOOL.fullmatch(at)
        faults: list[Fault] = [kills(at)] if at and tool is None else []
        self.store: FaultyStore = FaultyStore(store, *faults)
        """The store under test; an agent's `store=`."""
        self.folder: Path = folder
        """Where the store and everything else of this test lives."""
        self.effects: EffectLog = EffectLog(folder / "effects.log")
        """The call id of every effect, on disk, outside of the session."""
        self._dies_in = tool[1] if tool else ""
        self._dies_at = int(tool[2] or 1) if tool else 0
        self._made = 0

    @property
    def tools(self) -> list[Tool]:
        """`ro`, `idem`, `rw`, `par` and `parw` (`effect_tools`), on the effect log."""
        return effect_tools(self.effect)

    def effect(self, context: ToolContext[Any]) -> None:
        """Call this in a tool of your own, where its effect is."""
        self.effects.add(context.call.id)
        if context.call.name == self._dies_in:
            self._made += 1
            if self._made == self._dies_at:
                kill_myself()


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What a fresh process found in the store when its work was done."""

    journals: dict[str, list[StoredRecord]] = field(default_factory=dict)
    """Every session's journal."""
    effects: list[str] = field(default_factory=list)
    """The call id of every effect so far, of all processes."""
    output: str = ""
    """What the process printed."""

    def journal(self, session: str) -> list[StoredRecord]:
        """The journal of a session; empty where there is no such session."""
        return self.journals.get(session, [])


class CrashTest:
    """Runs works in processes of their own, over one store on disk.

    Nothing stays behind: when a process has ended, so has everything in its process
    group, and what it wrote lies in `folder`.

    Args:
        store: `module:function` of what makes the store, called with the folder.
        folder: An empty folder for store and effect log, such as pytest's `tmp_path`.
        backend: The event loop the works run on.
        patience: Seconds after which a process that has not ended fails the test.
    """

    def __init__(
        self,
        store: str,
        folder: str | os.PathLike[str],
        *,
        backend: Literal["asyncio", "trio"] = "asyncio",
        patience: float = 60.0,
    ) -> None:
        self.folder: Path = Path(folder)
        self._store = _checked(store)
        self._backend = backend
        self._patience = patience

    def kill(self, work: str, *, at: str) -> None:
        """Run a work in a process that is killed at a place.

        Raises:
            ConfigError: `at` is no place.
            AssertionError: it never came there; the message holds what it printed.
        """
        if _IN_TOOL.fullmatch(at) is None:
            place_of(at)
        code, output = self._process(work, at, None)
        if code != _KILLED:
            raise AssertionError(
                f"{work} was to be killed {at}, and ended with {code} before:\n{output}"
            )

    def run(self, work: str = "") -> Aftermath:
        """Run a work, or nothing, in a fresh process, and see what is in the store.

        Raises:
            AssertionError: it failed; the message holds what it printed.
        """
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "journals"
            code, output = self._process(work, "", found)
            if code != 0:
                raise AssertionError(
                    f"{work or 'reading'} ended with {code}:\n{output}"
                )
            journals = read_journals(found)
        effects = EffectLog(self.folder / "effects.log").read()
        return Aftermath(journals, effects, output)

    def _process(self, work: str, at: str, found: Path | None) -> tuple[int, str]:
        told = {
            "store": self._store,
            "work": _checked(work) if work else "",
            "folder": str(self.folder),
            "at": at,
            "backend": self._backend,
            "found": str(found or ""),
            "path": sys.path,
        }
        command = [sys.executable, "-m", "agentcore.testing._crash_child"]
        # A file, not a pipe: a pipe stays open as long as any grandchild lives.
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(  # noqa: S603 - this Python, and our own module
                [*command, json.dumps(told)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                self._wait(process, work)
            finally:
                _end(process)
            output.seek(0)
            return process.returncode, output.read().decode(errors="replace")

    def _wait(self, process: subprocess.Popen[bytes], work: str) -> None:
        until = time.monotonic() + self._patience
        while not _has_ended(process):
            if time.monotonic() > until:
                raise AssertionError(f"{work} has not ended after {self._patience} s")
            time.sleep(_LOOK_SECONDS)


def read_journals(path: Path) -> dict[str, list[StoredRecord]]:
    """What the child wrote: a line a record."""
    journals: dict[str, list[StoredRecord]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        session, seq, epoch, at, record = json.loads(line)
        stored = StoredRecord(seq, epoch, at, RECORDS.load(record))
        journals.setdefault(session, []).append(stored)
    return journals


def _checked(name: str) -> str:
    if not re.fullmatch(r"[\w.]+:[\w.]+", name):
        raise ConfigError(f"{name!r} is not 'module:function'")
    return name


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has; its number is kept from others until its group is ended too."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
