"""What a store consists of, and what takes several of its parts."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from anyio import to_thread

from agentcore.errors import (
    ConfigError,
    CorruptRecord,
    LeaseLost,
    StoreError,
    StoreFailed,
)
from agentcore.stores.sqlite import _catalog as catalog
from agentcore.stores.sqlite import _journal as journal
from agentcore.stores.sqlite._file import StoreFile
from agentcore.stores.sqlite._leases import Held, Leases, lost
from agentcore.stores.sqlite._reader import Readers
from agentcore.stores.sqlite._watching import Watching
from agentcore.stores.sqlite._writer import BUSY, Operation, Writer
from agentcore.types.runs import Lease

_MUCH: Final = 1000
_REMEMBERED: Final = 4096
_log = logging.getLogger("agentcore")


class Parts:
    """Everything a store opens; it knows nothing of the store itself."""

    def __init__(self, file: StoreFile, now: Callable[[], float]) -> None:
        self.pid: int | None = None
        """The process that opened it."""
        self.file = file
        self._inline = file.durability == "crash"
        path = file.path
        self.leases = Leases(path.with_name(path.name + ".locks"), now)
        self.readers = Readers(file)
        self.writer = Writer(file, self._chores)
        self.watching = Watching(file, self.readers)
        self._verified: dict[int, int] = {}
        """Session number, and the record up to which its journal was found whole."""

    # --- ownership --------------------------------------------------------------

    def verify(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Test what was appended since this store looked last.

        Raises:
            SessionNotFound: there is no such session.
            CorruptRecord: its journal is damaged.
        """
        no, end = journal.end_of(connection, session_id)
        journal.verify(connection, no, self._verified.get(no, 0), end)
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        self._verified[no] = end

    def has_much_to_verify(
        self, connection: sqlite3.Connection, session_id: str
    ) -> bool:
        """Too much to be done with the lock held.

        Raises:
            SessionNotFound: there is no such session.
        """
        no, end = journal.end_of(connection, session_id)
        return end - self._verified.get(no, 0) > _MUCH

    def acquire(
        self, connection: sqlite3.Connection, session_id: str, owner: str
    ) -> Lease:
        """Own a session, inside a transaction.

        Raises:
            SessionBusy, SessionNotFound, CorruptRecord: nothing was written.
        """
        session = catalog.find(connection, session_id)
        self.leases.refuse_if_owned(connection, session)
        self.verify(connection, session_id)
        return self.leases.claim(connection, session, owner)

    def renew(self, connection: sqlite3.Connection, held: Held) -> None:
        """Keep a lease, inside a transaction.

        Raises:
            LeaseLost: another owner took over.
        """
        row = connection.execute(
            "SELECT epoch, holder FROM sessions WHERE no = ?", (held.no,)
        ).fetchone()
        if row is None:
            raise lost(held)
        self.leases.check(connection, held, *row)
        self.leases.keep(connection, tidy=False)

    def let_go(self, session_id: str, error: StoreError | None = None) -> None:
        """Release as soon as the file can be written; nobody waits for it."""
        if error is not None:
            _log.warning("session %r is released later: %s", session_id, error)
        self.leases.held.pop(session_id, None)
        self.leases.unsure = True
        self.writer.kick()

    def _chores(self) -> float | None:
        leases = self.leases
        tidy, leases.unsure = leases.unsure, False
        if not tidy and leases.seconds_to_renewal() != 0:
            return leases.seconds_to_renewal()
        try:
            self.writer.wait(partial(leases.keep, tidy=tidy))
        except StoreError as error:
            leases.unsure = leases.unsure or tidy
            _log.warning("the leases in %s were not renewed: %s", self.file.path, error)
            return 1.0
        return leases.seconds_to_renewal()

    # --- how what is asked is done ----------------------------------------------

    async def write(
        self,
        operation: Operation,
        *,
        undo: Callable[[], None] | None = None,
        large: bool = False,
    ) -> Any:
        """Write; `large`: never on the calling thread. `undo`: see `Writer.soon`."""
        self.check_process()
        writer = self.writer
        if self._inline and not large:
            done = writer.now(operation)
            if done is not BUSY:
                return done
        return await writer.soon(operation, undo)

    async def write_held(self, lease: Lease, operation: Operation) -> Any:
        """A write that only the owner may do, and that nobody may guess about."""
        held = self.leases.of(lease)
        try:
            return await self.write(operation)
        except StoreError as error:
            self._note(lease, held, error)
            raise

    def can_write_now(self) -> bool:
        """A write may be done on the calling thread, if nobody else is at it."""
        return self._inline and self.writer.is_free()

    def write_held_now(
        self, lease: Lease, held: Held, operation: Operation, *, single: bool = False
    ) -> Any:
        """`write_held` on this thread, or `BUSY`; `single`: see `Writer.single`."""
        self.check_process()
        writer = self.writer
        try:
            return writer.single(operation) if single else writer.now(operation)
        except StoreError as error:
            self._note(lease, held, error)
            raise

    def _note(self, lease: Lease, held: Held, error: StoreError) -> None:
        """What a failed write means for the lease."""
        if isinstance(error, LeaseLost):
            self.leases.drop(lease.session_id, held)
        elif isinstance(error, (StoreFailed, CorruptRecord)):
            held.poisoned = error

    async def read(self, operation: Operation, *, large: bool = False) -> Any:
        """Read on the calling thread, or in another if it is `large` or must wait."""
        self.check_process()
        readers = self.readers
        if not large:
            done = readers.now(operation)
            if done is not BUSY:
                return done
        return await to_thread.run_sync(readers.wait, operation)

    def check_process(self) -> None:
        """What one process opened, a child of it must not use.

        Raises:
            ConfigError: it was opened before a fork.
        """
        process = os.getpid()
        if process == self.pid:
            return
        if self.pid is None:  # not open
            self.pid = process
        else:
            raise ConfigError(
                f"{self.file.path}: this store was opened before the process forked. "
                "Make a new SqliteRunStore in the child; the parent's goes on"
            )

    # --- the end ----------------------------------------------------------------

    def close(self) -> None:
        """Let go of everything; waits for what is being written."""
        self.watching.close()
        self.writer.close()
        try:
            if self.leases.locked:
                self.writer.wait(self.leases.close)
        except StoreError as error:
            # The lock file goes all the same, so others take over what we held.
            _log.warning("%s was not closed in order: %s", self.file.path, error)
        self.leases.unlock()
        self.writer.close()
        self.readers.close()
        self._verified.clear()
        self.file.forget()
        self.pid = None

    def close_if_ours(self) -> None:
        """For a store that nobody closed; a forked child leaves it to its parent."""
        if os.getpid() == self.pid:
            self.close()
