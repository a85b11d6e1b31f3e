"""Who owns which session, and whether that owner lives.

A session's row names its *holder*: one open handle of one process. The holder keeps a
file locked as long as it lives, and writes its expiry into the store every few seconds.
Another process takes a session over when that file can be locked, which is at once
after a kill; else, when the expiry has passed. Nobody guesses by process ids.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from agentcore.errors import LeaseLost, SessionBusy, StoreError, StoreFailed
from agentcore.protocols.store import Appended
from agentcore.stores.sqlite import _flock
from agentcore.stores.sqlite._catalog import Session
from agentcore.types.runs import Lease

TTL: Final = 30.0
RENEW: Final = 10.0
LOOK: Final = 0.1
"""Seconds for which the lock file, once seen, is taken to be there."""


class Held:
    """A session this handle owns."""

    __slots__ = ("epoch", "no", "poisoned", "stands")

    def __init__(self, no: int, epoch: int) -> None:
        self.no = no
        self.epoch = epoch
        self.poisoned: StoreError | None = None
        """A write failed, so nobody knows where the session stands."""
        self.stands: Appended | None = None
        """Where its last append left it; set with the writer's gate held."""


class Leases:
    """The sessions of one handle, its lock file, its expiry.

    Args:
        folder: where the lock files of a store lie.
        now: wall time; processes must agree on it.
    """

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._folder = folder
        self._now = now
        self.held: dict[str, Held] = {}
        self.unsure = False
        """The store may say that this handle holds more than it does."""
        self._holder = ""
        self._path = folder
        self._fd: int | None = None
        self._renewed = 0.0
        self._seen = -LOOK
        """When the lock file was looked at, on the system's monotonic clock."""

    # --- inside a transaction ---------------------------------------------------

    def claim(
        self, connection: sqlite3.Connection, session: Session, owner: str
    ) -> Lease:
        """Own a session that no living owner holds (`refuse_if_owned`)."""
        self._renew(connection)
        epoch = session.epoch + 1
        connection.execute(
            "UPDATE sessions SET epoch = ?, owner = ?, holder = ? WHERE no = ?",
            (epoch, owner, self._holder, session.no),
        )
        self.held[session.id] = Held(session.no, epoch)
        return Lease(session.id, owner, epoch, took_over=session.holder is not None)

    def refuse_if_owned(self, connection: sqlite3.Connection, session: Session) -> None:
        """Raise `SessionBusy` where a living owner holds the session."""
        holder = session.holder
        if holder is not None and self._lives(connection, session.id, holder):
            raise SessionBusy(
                f"session {session.id!r} is held by {session.owner!r}",
                owner=session.owner,
            )

    def check(
        self,
        connection: sqlite3.Connection,
        held: Held,
        epoch: int,
        holder: str | None,
    ) -> None:
        """This handle still owns the session that says so, and for a while.

        Raises:
            LeaseLost: somebody took it over, or may do so any moment.
        """
        if epoch != held.epoch or holder != self._holder:
            raise lost(held)
        if self._fd is None or not _flock.same_file(self._fd, self._path):
            raise lost(held)
        self._seen = monotonic()
        if self._renewal_is_due():
            self._renew(connection)

    @property
    def sure(self) -> str:
        """The name of this handle, if nothing need be looked at but the epoch; or ''.

        The epoch alone keeps a journal whole. The lock file tells a little earlier that
        another owner may come.
        """
        fresh = monotonic() - self._seen < LOOK and not self._renewal_is_due()
        return self._holder if fresh and self._fd is not None else ""

    def _lives(
        self, connection: sqlite3.Connection, session_id: str, holder: str
    ) -> bool:
        if holder == self._holder:
            held = self.held.get(session_id)
            return held is not None and held.poisoned is None
        row = connection.execute(
            "SELECT expiry FROM holders WHERE id = ?", (holder,)
        ).fetchone()
        if row is None or row[0] <= self._now():
            return False
        try:
            return not _flock.remove_if_free(self._folder / holder)
        except OSError:
            return True  # nobody can tell, so its expiry decides

    def release(self, connection: sqlite3.Connection, held: Held) -> None:
        """Let go of a session; does nothing if another owner has it."""
        connection.execute(
            "UPDATE sessions SET owner = NULL, holder = NULL "
            "WHERE no = ? AND epoch = ? AND holder = ?",
            (held.no, held.epoch, self._holder),
        )

    def keep(self, connection: sqlite3.Connection, *, tidy: bool) -> None:
        """Put the expiry off; `tidy`: and let go of what is not held in truth."""
        if self._fd is None:
            return
        if tidy:
            held = {h.no for h in self.held.values() if h.poisoned is None}
            rows = connection.execute(
                "SELECT no FROM sessions WHERE holder = ?", (self._holder,)
            ).fetchall()
            connection.executemany(
                "UPDATE sessions SET owner = NULL, holder = NULL WHERE no = ?",
                [row for row in rows if row[0] not in held],
            )
        self._renew(connection)

    def _renew(self, connection: sqlite3.Connection) -> None:
        if self._fd is None:
            self._register(connection)
        now = self._now()
        connection.execute(
            "INSERT INTO holders VALUES (?, ?) "
            "ON CONFLICT(id) DO UPDATE SET expiry = excluded.expiry",
            (self._holder, now + TTL),
        )
        # Only a promise until the commit; a failed one poisons whoever relied on it.
        self._renewed = now

    # --- outside of one ---------------------------------------------------------

    def of(self, lease: Lease) -> Held:
        """What this handle knows of a lease.

        Raises:
            LeaseLost: it is over, or another handle's.
            StoreFailed: a write under it failed.
        """
        held = self.held.get(lease.session_id)
        if held is None or held.epoch != lease.epoch:
            raise LeaseLost(
                f"{lease.owner!r} does not hold session {lease.session_id!r} here: "
                f"epoch {lease.epoch} is over"
            )
        if held.poisoned is not None:
            raise StoreFailed(
                f"an earlier write to session {lease.session_id!r} failed, so this "
                "owner must not go on; acquire the session anew and read it"
            ) from held.poisoned
        return held

    def drop(self, session_id: str, held: Held) -> None:
        """It is lost."""
        if self.held.get(session_id) is held:
            del self.held[session_id]

    @property
    def locked(self) -> bool:
        """The lock file is there: something is, or was, held."""
        return self._fd is not None

    def seconds_to_renewal(self) -> float | None:
        """When the expiry must be put off; `None` where nothing is held."""
        if self.unsure:
            return 1.0
        if not self.held:
            return None
        return 0.0 if self._renewal_is_due() else self._renewed + RENEW - self._now()

    def _renewal_is_due(self) -> bool:
        # Also when the clock was set back: others go by the new one.
        return not 0 <= self._now() - self._renewed < RENEW

    def close(self, connection: sqlite3.Connection) -> None:
        """Let go of everything, in the store."""
        if self._fd is not None:
            self.held.clear()
            self.keep(connection, tidy=True)
            connection.execute("DELETE FROM holders WHERE id = ?", (self._holder,))

    def unlock(self) -> None:
        """Give up the lock file: whoever comes may take over what is still held."""
        self.held.clear()
        self.unsure = False
        fd, self._fd = self._fd, None
        self._seen = -LOOK
        if fd is None:
            return
        if _flock.same_file(fd, self._path):
            with suppress(OSError):
                self._path.unlink()
        _flock.close(fd)
        self._holder = ""
        with suppress(OSError):  # others have theirs in it
            self._folder.rmdir()

    def _register(self, connection: sqlite3.Connection) -> None:
        """Lock a file of one's own, and sweep up what dead processes left."""
        fd = None
        try:
            while fd is None:
                # Whoever leaves last removes the folder, perhaps just now.
                self._folder.mkdir(exist_ok=True)
                self._holder = f"{os.getpid()}-{os.urandom(8).hex()}"
                self._path = self._folder / self._holder
                with suppress(FileNotFoundError):
                    fd = _flock.create_locked(self._path)
            for path in self._folder.iterdir():
                if path.name != self._holder:
                    _flock.remove_if_free(path)
        except OSError as error:
            if fd is not None:
                _flock.close(fd)
            raise StoreError(
                f"{self._folder}: no lock file can be made there, so no session can be "
                f"owned. Nothing was written: {error}"
            ) from error
        self._fd = fd
        connection.execute("DELETE FROM holders WHERE expiry <= ?", (self._now(),))


def lost(held: Held) -> LeaseLost:
    """What is raised when another owner has, or may have, the session."""
    return LeaseLost(
        f"another owner took the session over: epoch {held.epoch} is over, nothing "
        "was written"
    )
