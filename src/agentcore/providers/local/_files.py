"""Files of the model cache: where they lie, their hash, safe replacement, one writer.

Nothing here knows what the files contain or where they come from.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agentcore.providers.local._errors import LocalModelError
from agentcore.providers.local._threads import Check

try:
    import fcntl
except ImportError:  # Windows
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

_CHUNK_BYTES = 1 << 20
_LOCK_POLL_S = 0.2
_EXCLUSIVE_WAIT_S = 3600.0


def user_models_folder() -> Path:
    """Return `agentcore/models` in the user's cache folder; creates nothing."""
    # The cache folder is a convention of the desktop, not configuration of the host,
    # and a host that wants another one passes `cache=`.
    base = os.environ.get("XDG_CACHE_HOME", "")  # noqa: TID251 - see above
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "agentcore" / "models"


def file_size(path: Path) -> int:
    """Return the size of `path` in bytes, 0 when there is no such file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def sha256_of(path: Path, check: Check) -> str:
    """Return the hexadecimal sha256 of the file, calling `check` once per MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            check()
    return digest.hexdigest()


def publish(part: Path, path: Path) -> None:
    """Give the finished `part` its final name; a crash leaves one of the two whole."""
    # Opened for writing because Windows flushes only files open that way.
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)
    with contextlib.suppress(OSError):  # a folder cannot be opened on Windows
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove(path: Path) -> None:
    """Remove a file or a folder tree; a missing one is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def one_writer(
    lock: Path, check: Check, waiting: Callable[[], None], *, flock: bool = HAS_FLOCK
) -> Iterator[None]:
    """Hold `lock` against all other processes and threads; wait while they have it.

    `waiting` is called once when there is somebody to wait for. With `flock` the kernel
    frees the lock of a dead holder. Without it the mere existence of the file is the
    lock, and one left by a dead process stays: after an hour of waiting this raises
    `LocalModelError` that names the file to delete.
    """
    take = _take_flock if flock else _take_exclusive
    deadline = time.monotonic() + _EXCLUSIVE_WAIT_S
    told = False
    while (held := take(lock)) is None:
        if not told:
            waiting()
            told = True
        if not flock and time.monotonic() > deadline:
            message = (
                f"Another process seems to hold {lock} for an hour. "
                "If no download is running, delete that file and try again."
            )
            raise LocalModelError(message)
        check()
        time.sleep(_LOCK_POLL_S)
    try:
        yield
    finally:
        os.close(held)
        if not flock:
            lock.unlink(missing_ok=True)


def _take_flock(lock: Path) -> int | None:
    # The file is never deleted: a waiter could then hold a lock on the old inode while
    # a newcomer locks a new one.
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    except BaseException:
        os.close(held)
        raise
    return held


def _take_exclusive(lock: Path) -> int | None:
    try:
        return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return None
