"""The one place that knows of `flock`: a lock that ends with the process that holds it.

`flock` and not POSIX `lockf`: a second handle in the same process is kept out as well,
and closing another descriptor of the file does not let go. Where there is none (off
POSIX) nothing is locked, `LOCKS` is false, and only the expiry of a lease counts.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

LOCKS: Final = sys.platform != "win32"

_open: set[int] = set()
_watching = False


def create_locked(path: Path) -> int | None:
    """Make a file that nobody else has and lock it; a descriptor, or `None`: taken."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(path, flags, 0o644)
    except FileExistsError:
        return None
    # Somebody who sweeps up may have locked and removed it in between.
    if not (_lock(fd) and same_file(fd, path)):
        os.close(fd)
        return None
    _keep_from_children(fd)
    return fd


def close(fd: int) -> None:
    """Let go."""
    _open.discard(fd)
    os.close(fd)


def same_file(fd: int, path: Path) -> bool:
    """The path still leads to the file that is held."""
    if not LOCKS:
        return True
    try:
        found = os.stat(path)
    except OSError:
        return False
    held = os.fstat(fd)
    return (found.st_ino, found.st_dev) == (held.st_ino, held.st_dev)


def remove_if_free(path: Path) -> bool:
    """Remove a lock file whose process is gone; true if there is none any more.

    Raises:
        OSError: it cannot be looked at, so nobody knows.
    """
    if not LOCKS:
        return False
    try:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        return True
    try:
        if not _lock(fd):
            return False
        with suppress(FileNotFoundError):
            path.unlink()
        return True
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    if sys.platform == "win32":
        return True
    import fcntl  # noqa: PLC0415 - not there on Windows

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _keep_from_children(fd: int) -> None:
    """A forked child gets a copy of the descriptor, which would outlive this process.

    Closing the copy does not unlock.
    """
    global _watching  # noqa: PLW0603 - a hook of `os` cannot be taken back
    _open.add(fd)
    if not _watching and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_close_all)
        _watching = True


def _close_all() -> None:
    for fd in _open:
        with suppress(OSError):
            os.close(fd)
    _open.clear()
