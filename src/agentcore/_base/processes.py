"""Process groups of children: told apart by their start time, ended for good.

Linux only, where `/proc` tells when a process started; elsewhere nothing is known of a
group that another process left, and nothing is signalled on a guess.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio

_PROC: Final = Path("/proc")
_TICK_SECONDS: Final = 0.02
GRACE_SECONDS: Final = 2.0
"""Between TERM and KILL."""


def start_time(pid: int) -> float | None:
    """When a process started, in clock ticks since boot; `None`: it is not there.

    With the id it names one process of this boot, however often ids are reused.
    """
    found = _stat(pid)
    return found[1] if found is not None else None


async def end_group(
    pgid: int, started: float | None, *, grace: float = GRACE_SECONDS
) -> bool:
    """End a process group that a dead owner left, and wait until it is gone.

    `started` is the start time of its leader as `start_time` gave it. Returns false if
    the id belongs to somebody else by now, who is left alone.
    """
    if not _is_ours(pgid, started):
        return False
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        _signal(pgid, number)
        with anyio.move_on_after(patience):
            while any(members(pgid)):  # noqa: ASYNC110 - no event tells of its end
                await anyio.sleep(_TICK_SECONDS)
            return True
    return True


def _is_ours(pgid: int, started: float | None) -> bool:
    """An id is not given to another while any process of its group is alive."""
    leader = start_time(pgid)
    if leader is not None:
        return started is None or leader == started
    times = [start_time(pid) for pid in members(pgid)]
    born = [time for time in times if time is not None]
    return bool(born) and (started is None or min(born) >= started)


def members(pgid: int) -> Iterator[int]:
    """The ids of the living processes of a group; a zombie has ended."""
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if entry.name.isdigit():
            found = _stat(int(entry.name))
            if found is not None and found[0] == pgid:
                yield int(entry.name)


def _stat(pid: int) -> tuple[int, float] | None:
    """Process group and start time of a living process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name, in parentheses, may hold anything; what follows has fixed places.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else (int(fields[2]), float(fields[19]))


def _signal(pgid: int, number: int) -> None:
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return  # it ended by itself
