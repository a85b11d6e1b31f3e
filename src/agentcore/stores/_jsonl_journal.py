"""The end of a journal as its one owner holds it: open, append, let go.

The lock on `owner.lock` says who owns the session. Every append asks again (O4 of the
run semantics): is the locked file still the one at its path, is the journal still the
one that was opened, and does it end where this owner left it? Check and write happen
under a lock on the journal itself, so that even an owner whose lock file was deleted
under it cannot write behind the next one.
"""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from pydantic_core import from_json, to_json

from agentcore.errors import (
    AgentCoreError,
    LeaseLost,
    SchemaTooNew,
    SessionBusy,
    SessionNotFound,
    StoreError,
)
from agentcore.stores._jsonl_lines import Line, Lines
from agentcore.stores._jsonl_os import (
    Lock,
    failing,
    put_file,
    sync,
    try_flock,
    unlock,
    write_all,
)
from agentcore.stores._jsonl_walk import Walk
from agentcore.types import codec
from agentcore.types.records import SCHEMA_VERSION, SessionCreated
from agentcore.types.runs import Lease

JOURNAL: Final = "journal.jsonl"
OWNER_LOCK: Final = "owner.lock"
_REOPEN: Final = (
    "what was being written may or may not be there: read the journal and acquire the "
    "session again"
)
_NOT_WRITTEN: Final = "nothing was written; reading still works"

_log = logging.getLogger(__name__)


class Place:
    """Where a session lies, and how its lines look."""

    __slots__ = ("folder", "journal", "lines", "power", "scratch", "session_id")

    def __init__(
        self, session_id: str, folder: Path, scratch: Path, *, power: bool
    ) -> None:
        self.session_id = session_id
        self.folder = folder
        self.journal = folder / JOURNAL
        self.scratch = scratch
        """On the same file system: what is renamed into place is written here."""
        self.power = power
        self.lines = Lines(session_id)

    def take_owner_lock(self) -> Lock:
        """Lock the session for one owner.

        Raises:
            SessionBusy: a living owner has it.
            SessionNotFound: there is no such session.
            StoreFailed: the system refused.
        """
        path = self.folder / OWNER_LOCK
        while True:
            with failing(f"locking {path}", _NOT_WRITTEN), ExitStack() as stack:
                if not self.journal.exists():
                    raise SessionNotFound(self.session_id)
                try:
                    lock = stack.enter_context(Lock(path))
                except FileNotFoundError:
                    raise SessionNotFound(self.session_id) from None
                if not lock.take():
                    raise self._busy(lock)
                if lock.is_current():  # else it was deleted before it was locked
                    stack.pop_all()
                    return lock

    def _busy(self, lock: Lock) -> SessionBusy:
        holder: dict[str, object] = {}
        with suppress(ValueError):  # it has just been locked, and not been signed
            holder = from_json(os.pread(lock.fd, 4096, 0))
        owner = holder.get("owner")
        return SessionBusy(
            f"session {self.session_id!r} is held by {owner!r}, "
            f"process {holder.get('pid')}",
            owner=owner if isinstance(owner, str) else None,
        )


class Journal:
    """A journal in the hands of its owner. Its methods do not wait for one another."""

    __slots__ = ("_failed", "_fd", "_lock", "_place", "end", "lease", "seq")

    def __init__(self, place: Place, owner: str, at: float) -> None:
        """Own the session; see `RunStore.acquire`.

        Raises:
            CorruptRecord: the journal is damaged before its end; nothing was written.
            StoreFailed: the system refused; the session is not owned.
        """
        self._place = place
        self._failed: StoreError | None = None
        self._fd: Lock | None = None
        self._lock = place.take_owner_lock()
        try:
            with failing(f"opening {place.journal}", _NOT_WRITTEN):
                os.ftruncate(self._lock.fd, 0)
                signed = to_json({"owner": owner, "pid": os.getpid()})
                os.pwrite(self._lock.fd, signed + b"\n", 0)
                self._fd = Lock(place.journal, append=True)
                self._fd.wait()
                self.lease = self._open(owner, at)
                unlock(self._fd.fd)
        except BaseException:
            self.close()
            raise

    def _open(self, owner: str, at: float) -> Lease:
        place, fd = self._place, self.fd
        size = os.fstat(fd).st_size
        walk = Walk(place.journal, place.lines, size)
        newest = Line(0, 0, 0, 0.0, b"")
        while not walk.done:
            for line in walk.step(fd):
                if line.seq == 1 and line.size:
                    _check_schema(place.session_id, line)
                if line.mark:
                    newest = line
        if walk.error is not None:
            raise walk.error
        if walk.offset < size:
            self._cut(walk.offset, size)
        self.seq, self.end = walk.seq or 0, walk.offset
        took_over = newest.mark == "acquired"
        lease = Lease(place.session_id, owner, walk.epoch + 1, took_over)
        self._write(place.lines.mark(lease.epoch, self.seq + 1, at, "acquired", owner))
        return lease

    def _cut(self, offset: int, size: int) -> None:
        """Take off a torn last line; its bytes are kept in a file of their own."""
        place = self._place
        torn = os.pread(self.fd, size - offset, offset)
        kept = place.folder / f"torn-at-{offset}.bin"
        number = 1
        while kept.exists():
            number += 1
            kept = place.folder / f"torn-at-{offset}-{number}.bin"
        put_file(place.scratch, kept, torn, power=place.power)
        os.ftruncate(self.fd, offset)
        if place.power:
            sync(self.fd)
        _log.warning(
            "session %r: the last write was cut short; its %d bytes are kept in %s",
            place.session_id,
            len(torn),
            kept,
        )

    @property
    def fd(self) -> int:
        """The journal's descriptor."""
        return self._fd.fd if self._fd is not None else -1

    def check(self, lease: Lease) -> None:
        """The lease is this owner's, and nothing has gone wrong since.

        Raises:
            LeaseLost: it is over.
            StoreFailed: a write failed before.
        """
        if self._failed is not None:
            raise self._failed
        if lease.epoch != self.lease.epoch or lease.owner != self.lease.owner:
            raise lost(lease)
        with failing(f"looking at {self._place.journal}", _NOT_WRITTEN):
            if not self._lock.is_current():
                self._failed = lost(lease, "its lock file was replaced")
                raise self._failed

    def append(self, count: int, records: bytes, at: float) -> None:
        """Write one line; call `check` before.

        Raises:
            LeaseLost: somebody else has written; nothing was written.
            StoreFailed: it may or may not be written; nothing more can be.
        """
        lines, epoch = self._place.lines, self.lease.epoch
        line = lines.append(epoch, self.seq + 1, at, count, records)
        self._fenced(line, flush=self._place.power)
        self.seq += count

    def release(self, at: float) -> None:
        """Let go, on record where that is still possible."""
        lease = self.lease
        try:
            self.check(lease)
            mark = self._place.lines.mark(
                lease.epoch, self.seq + 1, at, "released", lease.owner
            )
            # Not flushed: should it be lost, the next owner merely takes over.
            self._fenced(mark, flush=False)
            os.ftruncate(self._lock.fd, 0)
        except (StoreError, OSError) as error:
            _log.warning(
                "session %r was not released on record: %s", lease.session_id, error
            )
        finally:
            self.close()

    def close(self) -> None:
        """Unlock, and leave no descriptor behind."""
        for lock in (self._fd, self._lock):  # the right to write goes last
            if lock is not None:
                lock.close()
        if self._failed is None and hasattr(self, "lease"):
            self._failed = lost(self.lease, "it was released")

    def _fenced(self, line: bytes, *, flush: bool) -> None:
        fd, lease = self.fd, self.lease
        try:
            with failing(f"writing {self._place.journal}", _REOPEN):
                if not try_flock(fd):
                    raise lost(lease, "somebody else is opening its journal")
                try:
                    self._fence()
                    self._write(line, flush=flush)
                finally:
                    unlock(fd)
        except StoreError as error:
            self._failed = error
            raise

    def _fence(self) -> None:
        lease = self.lease
        try:
            found = os.stat(self._place.journal)
        except FileNotFoundError:
            raise lost(lease, "its journal is gone") from None
        mine = os.path.samestat(found, os.fstat(self.fd))
        if not mine or found.st_size != self.end:
            raise lost(lease, "its journal was written by somebody else")

    def _write(self, line: bytes, *, flush: bool = False) -> None:
        try:
            write_all(self.fd, line)
        except OSError:
            # Without its newline nobody has read it: it is as good as never begun.
            with suppress(OSError):
                os.ftruncate(self.fd, self.end)
            raise
        if flush:
            sync(self.fd)
        self.end += len(line)


def lost(lease: Lease, why: str = "it is over") -> LeaseLost:
    """The error of a lease that no longer counts."""
    return LeaseLost(
        f"{lease.owner!r} no longer holds session {lease.session_id!r} "
        f"(epoch {lease.epoch}): {why}"
    )


def _check_schema(session_id: str, line: Line) -> None:
    try:
        created = codec.RECORDS.load_many(line.records)[0]
    except AgentCoreError:  # the reader will say what is wrong with it
        return
    if isinstance(created, SessionCreated) and created.schema_version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"session {session_id!r} has records of schema {created.schema_version}; "
            f"this agentcore knows {SCHEMA_VERSION}"
        )
