"""What a handle knows of one session: its owner's end, its inbox, who waits for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pydantic_core import PydanticSerializationError, from_json, to_json

from agentcore.errors import (
    ConfigError,
    InboxChanged,
    SequenceConflict,
    SessionNotFound,
)
from agentcore.protocols.store import Appended
from agentcore.stores._jsonl_inbox import Inbox
from agentcore.stores._jsonl_journal import Journal, Place, lost
from agentcore.stores._jsonl_lines import FORMAT, Unsealed, seal, unseal
from agentcore.stores._jsonl_os import failing, put_file
from agentcore.stores._jsonl_read import Reader
from agentcore.stores._jsonl_root import Root
from agentcore.stores._jsonl_walk import last_line
from agentcore.stores._jsonl_watch import Ears
from agentcore.types.inbox import InboxItem
from agentcore.types.json import JsonObject
from agentcore.types.runs import Lease, Receipt

SNAPSHOT: Final = "snapshot.json"
_NOTHING: Final = "nothing was written"

Wake = Callable[[], None]


class Attempt:
    """One `acquire`: should its caller be gone when it succeeds, it is given back."""

    __slots__ = ("_gone", "_lease", "_lock", "_now", "_owner", "_session")

    def __init__(self, session: Session, owner: str, now: Callable[[], float]) -> None:
        self._session = session
        self._owner = owner
        self._now = now
        self._lock = threading.Lock()
        self._lease: Lease | None = None
        self._gone = False

    def run(self) -> Lease:
        """In a thread: become the owner."""
        lease = self._session.acquire(self._owner, self._now())
        with self._lock:
            self._lease = lease
            gone = self._gone
        if gone:
            self._session.release(self._now(), lease)
        return lease

    def abandon(self) -> None:
        """The caller left, cancelled perhaps while the thread went on."""
        with self._lock:
            self._gone = True
            lease = self._lease
        if lease is not None:
            self._session.release(self._now(), lease)


class Session:
    """Knows where things stand; any thread may use it."""

    __slots__ = (
        "_ended", "_guard", "_root", "_waiters", "ears", "inbox", "journal", "lock",
        "pins", "place",
    )  # fmt: skip

    def __init__(self, root: Root, session_id: str) -> None:
        folder = root.folder(session_id)
        self._root = root
        try:
            self.place = Place(session_id, folder, root.scratch, power=root.power)
        except PydanticSerializationError:  # text no journal can hold
            raise SessionNotFound(session_id) from None
        self.lock = threading.Lock()
        """Held while this handle opens, appends to, or lets go of the journal."""
        self.journal: Journal | None = None
        self.pins = 0
        """How many are about to own it."""
        self.inbox = Inbox(self.place)
        self.ears = Ears(self.inbox)
        self._guard = threading.Lock()
        self._waiters: tuple[Wake, ...] = ()
        self._ended: tuple[int, int, int] = (0, 0, 0)
        """Inode and size of the journal, and the last record it then had."""

    @property
    def in_use(self) -> bool:
        """Somebody owns it here, or waits or listens."""
        return bool(self.journal or self.pins or self._waiters or self.ears.listeners)

    # --- ownership --------------------------------------------------------------

    def attempt(self, owner: str, now: Callable[[], float]) -> Attempt:
        """An `acquire` that can be abandoned."""
        return Attempt(self, owner, now)

    def acquire(self, owner: str, at: float) -> Lease:
        """See `RunStore.acquire`."""
        self._root.make()
        with self.lock:
            journal = Journal(self.place, owner, at)
            self.journal = journal
            return journal.lease

    def append(
        self,
        lease: Lease,
        count: int,
        records: bytes,
        now: Callable[[], float],
        expected_seq: int,
        expected_inbox: int | None,
    ) -> Appended:
        """See `RunStore.append`; the records are a JSON array of `count`."""
        with self.lock:
            journal = self.journal
            if journal is None:
                raise lost(lease)
            journal.check(lease)
            if journal.seq != expected_seq:
                raise SequenceConflict(
                    f"session {lease.session_id!r} ends at {journal.seq}, "
                    f"not {expected_seq}"
                )
            with self.unmoved(expected_inbox) as version:
                if count:
                    journal.append(count, records, now())
            return Appended(journal.seq, version)

    def release(self, at: float, lease: Lease | None = None) -> None:
        """Let go of what this handle owns, or only of this lease."""
        with self.lock:
            journal = self.journal
            if journal is None or (lease is not None and journal.lease != lease):
                return
            self.journal = None
            journal.release(at)

    def delete(self) -> None:
        """See `RunStore.delete`."""
        root = self._root
        root.make()
        doing = f"deleting session {self.place.session_id!r}"
        with failing(doing, "it is there whole, or gone: the same call again is safe"):
            with self.place.take_owner_lock(), self.inbox.locked():
                gone = root.set_aside(self.place.folder)
            root.discard(gone)

    @contextmanager
    def unmoved(self, expected: int | None) -> Iterator[int]:
        """Hold the inbox at `expected`, if that is asked for; gives its version.

        Raises:
            InboxChanged: it has moved past it.
        """
        if expected is None:
            yield self.inbox.version()
            return
        with failing("locking the inbox", _NOTHING), self.inbox.locked():
            version = self.inbox.version()
            if version > expected:
                raise InboxChanged(
                    f"the inbox of {self.place.session_id!r} is at {version}, past "
                    f"{expected}"
                )
            yield version

    # --- inbox ------------------------------------------------------------------

    def accept(self, item: InboxItem, encoded: bytes) -> Receipt:
        """See `RunStore.accept`."""
        self._root.make()
        return self.inbox.accept(item, encoded)

    # --- reading ----------------------------------------------------------------

    def reader(self, after: int) -> Reader:
        """Reads what there is now.

        Raises:
            SessionNotFound: there is no such session.
        """
        stat = self._stat()
        journal = self.journal
        # Of its own journal this handle knows what has reached the disk.
        end = stat.st_size if journal is None else min(journal.end, stat.st_size)
        return Reader(self.place, after, end, stat)

    def last_seq(self) -> int:
        """Number of the last record.

        Raises:
            SessionNotFound: there is no such session.
        """
        journal = self.journal
        stat = self._stat()
        if journal is not None:
            return journal.seq
        ended = (stat.st_ino, stat.st_size)
        if self._ended[:2] != ended:
            line = None
            with (
                suppress(FileNotFoundError),  # deleted: the next look will tell
                self.place.journal.open("rb", buffering=0) as file,
            ):
                line = last_line(file.fileno(), self.place.lines, stat.st_size)
            self._ended = (*ended, 0 if line is None else line.last)
        return self._ended[2]

    def _stat(self) -> os.stat_result:
        try:
            return os.stat(self.place.journal)
        except FileNotFoundError:
            raise SessionNotFound(self.place.session_id) from None

    # --- waiting ----------------------------------------------------------------

    @contextmanager
    def waking(self, wake: Wake) -> Iterator[None]:
        """Have `wake` called after every append of this handle."""
        with self._guard:
            self._waiters += (wake,)
        try:
            yield
        finally:
            with self._guard:
                self._waiters = tuple(w for w in self._waiters if w is not wake)

    def wake(self) -> None:
        """Something was written, or the session is gone."""
        for wake in self._waiters:
            wake()

    # --- snapshot ---------------------------------------------------------------

    def save_snapshot(self, seq: int, data: JsonObject) -> None:
        """See `Snapshots.save_snapshot`.

        Raises:
            ConfigError: the data hold what JSON cannot; nothing was written.
        """
        try:
            body = b'{"v":%d,"seq":%d,"data":%s' % (FORMAT, seq, to_json(dict(data)))
        except PydanticSerializationError as error:
            raise ConfigError(f"the snapshot is no JSON: {error}") from None
        place = self.place
        self._root.make()
        with failing("saving a snapshot", _NOTHING):
            put_file(
                place.scratch, place.folder / SNAPSHOT, seal(body), power=place.power
            )

    def load_snapshot(self) -> tuple[int, JsonObject] | None:
        """See `Snapshots.load_snapshot`."""
        found: Any = None
        with (
            failing("loading a snapshot", "nothing was changed"),
            suppress(FileNotFoundError, Unsealed, ValueError),
        ):
            line = (self.place.folder / SNAPSHOT).read_bytes().rstrip(b"\n")
            unseal(line)
            found = from_json(line)
        if found is None or found.get("v") != FORMAT:
            return None
        return found["seq"], found["data"]
