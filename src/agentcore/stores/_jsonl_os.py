"""What the JSONL store asks of the operating system, and all that is not portable.

`flock`, because its lock belongs to the open file: a second handle in the same process
is refused, no other `close` drops it, and it is free the moment its process dies.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from agentcore.errors import ConfigError, StoreFailed

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows; a test hides it in a child process
    fcntl = None  # type: ignore[assignment]  # asked for by `need_flock`

PATIENCE: Final = 10.0
"""Seconds to wait for a lock that is only ever held for one write."""
_PAUSE: Final = 0.001

_locked: set[int] = set()
"""Descriptors of this process that may hold a lock."""
_watching: list[bool] = []


def need_flock() -> None:
    """Refuse where there is no `flock`.

    Raises:
        ConfigError: this platform has none.
    """
    if fcntl is None:
        raise ConfigError(
            "JsonlRunStore needs flock, which this platform does not have; "
            "use a store that needs none, such as MemoryRunStore"
        )


class Lock:
    """An open file to lock; locked until `close`, or until the process dies.

    It is made where it is missing; with `append` it must be there, and what is written
    goes to its end.
    """

    __slots__ = ("fd", "path")

    def __init__(self, path: Path, *, append: bool = False) -> None:
        self.fd = -1  # for `close`, should the next line fail
        _watch_forks()
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_APPEND if append else os.O_CREAT)
        self.path = path
        self.fd = os.open(path, flags, 0o666)
        _locked.add(self.fd)

    def take(self) -> bool:
        """Lock it if nobody else has; false if somebody has."""
        return try_flock(self.fd)

    def wait(self) -> None:
        """Lock it; whoever has it needs it for one write only.

        Raises:
            StoreFailed: still held after ten seconds.
        """
        end = time.monotonic() + PATIENCE
        while not self.take():
            if time.monotonic() > end:
                raise StoreFailed(
                    f"{self.path} has been locked for {PATIENCE:.0f} seconds by a "
                    "process that does not go on; nothing was written"
                )
            time.sleep(_PAUSE)

    def is_current(self) -> bool:
        """The file at the path is still the one that is locked."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self.fd))

    def close(self) -> None:
        """Unlock and close; a second time does nothing."""
        fd, self.fd = self.fd, -1
        if fd in _locked:
            _locked.discard(fd)
            # Said aloud: a copy in a forked child would keep a lock alive.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def try_flock(fd: int) -> bool:
    """Lock an open file, unless somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Undo `try_flock`."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def _watch_forks() -> None:
    if not _watching:
        _watching.append(True)
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """A forked child closes its copies: they would outlive the owner's kill -9."""
    for fd in tuple(_locked):
        with suppress(OSError):
            os.close(fd)
    _locked.clear()


# --- writing --------------------------------------------------------------------


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, in as many turns as it takes."""
    view = memoryview(data)
    while view:
        done = os.write(fd, view)
        if not done:
            raise OSError(errno.EIO, "nothing was written")
        view = view[done:]


def sync(fd: int) -> None:
    """Make a file's content survive a power loss."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:  # macOS: its fsync leaves the data in the drive's cache
        fcntl.fcntl(fd, full)
    else:
        getattr(os, "fdatasync", os.fsync)(fd)


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power loss."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def unique(folder: Path, head: str) -> Path:
    """A name in `folder` that nobody else uses."""
    return folder / f"{head}-{os.urandom(8).hex()}"


def put_file(scratch: Path, target: Path, data: bytes, *, power: bool) -> None:
    """Write a file that is there whole or not at all; it replaces what was there."""
    made = unique(scratch, "file")
    try:
        fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            write_all(fd, data)
            if power:
                sync(fd)
        finally:
            os.close(fd)
        os.rename(made, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise
    if power:
        sync_folder(target.parent)


@contextmanager
def failing(doing: str, safe: str) -> Iterator[None]:
    """Turn the system's error into ours, which says what is safe to do next.

    Raises:
        StoreFailed: the system refused (disk full, no right, input/output error).
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StoreFailed(f"{doing} failed: {why}; {safe}") from error
