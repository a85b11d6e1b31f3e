"""A `RunStore` in a folder: a journal per session that a person can read with `cat`.

    agentcore-store.json           what this folder is
    sessions/<name>/journal.jsonl  one line per append, each with a checksum
    sessions/<name>/owner.lock     who owns it, locked as long as the owner lives
    sessions/<name>/inbox/         one file per accepted item, its position the name
    blobs/<hash>                   bytes by content

What it keeps to, beyond the protocol:

- Any number of processes of one machine share the folder. Reading and accepting need
  no ownership; who owns a session holds a lock that is free the moment its process
  dies, so the next owner takes over at once (`Lease.took_over`).
- A last line that was cut short by a crash is taken off when the session is acquired
  next, and kept in a file beside the journal. Any other damage is `CorruptRecord`: it
  can be read up to there, and not be written to.
- Constructing it does nothing on disk, and it holds no file open but those of the
  sessions it owns.
- Several threads and event loops may share it. A child made by `os.fork` may not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar

import anyio
from anyio.lowlevel import RunVar

from agentcore._base.clock import SystemClock
from agentcore.errors import (
    ConfigError,
    SessionNotFound,
)
from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import Appended, InboxPage, Listener
from agentcore.stores._common import created
from agentcore.stores._jsonl_journal import Journal, lost
from agentcore.stores._jsonl_lines import Lines
from agentcore.stores._jsonl_listing import Listing
from agentcore.stores._jsonl_os import failing, need_flock
from agentcore.stores._jsonl_read import Stream
from agentcore.stores._jsonl_root import Root
from agentcore.stores._jsonl_session import Session
from agentcore.stores._jsonl_watch import POLL_SECONDS, Lookout, tell
from agentcore.stores._wake import waker
from agentcore.types import codec
from agentcore.types.content import BlobRef
from agentcore.types.inbox import InboxItem
from agentcore.types.json import JsonObject
from agentcore.types.records import Record, StoredRecord
from agentcore.types.runs import (
    Lease,
    Receipt,
    SessionHeader,
    SessionInfo,
    SessionQuery,
)

Durability: TypeAlias = Literal["power", "crash"]
"""`power` survives a power loss, `crash` a kill -9 of the process."""

KEEP: Final = 256
"""Sessions of which a handle remembers where their files end."""
_THREADS: Final = 32

T = TypeVar("T")
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("agentcore_jsonl_threads")


class JsonlRunStore:
    """Sessions in a folder of this machine.

    Args:
        path: the folder; made when the first session is.
        durability: `power` flushes every append and every accepted item to the disk
            before it returns, in a thread. `crash` leaves that to the system: an append
            is one write on the calling thread.
        clock: stamps the records.

    Raises:
        ConfigError: the platform has no `flock`, or no such durability.
    """

    opens_nothing = True  # so runs need not open and close it

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        clock: Clock | None = None,
    ) -> None:
        need_flock()
        if durability not in ("power", "crash"):
            raise ConfigError(f"durability is 'power' or 'crash', not {durability!r}")
        self.durability: Durability = durability
        self.commits_inline: bool = durability == "crash"
        """An append in `crash` never suspends."""
        self._now = (clock or SystemClock()).now
        self._root = Root(Path(path).absolute(), power=durability == "power")
        self._listing = Listing(self._root)
        self._lookout = Lookout()
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}  # last used last
        self._pid = os.getpid()
        self._users = 0

    async def __aenter__(self) -> Self:
        """Close it when the last `async with` ends."""
        self._users += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        """See `close`."""
        self._users -= 1
        if not self._users:
            await self.close()

    async def close(self) -> None:
        """Release every session this handle owns; it can be used again afterwards."""
        self._here()
        for session in tuple(self._sessions.values()):
            session.release(self._now())

    # --- sessions ---------------------------------------------------------------

    async def create(self, header: SessionHeader) -> None:
        """See `RunStore.create`.

        Raises:
            ConfigError: the header holds what JSON cannot; nothing was written.
            NotAStore: the folder holds something else.
            StoreFailed: the system refused.
        """
        self._here()
        records = codec.dump_many([created(header)])
        line = Lines(header.session_id).append(0, 1, self._now(), 1, records)
        await self._run(self._create, header.session_id, line)

    def _create(self, session_id: str, line: bytes) -> None:
        self._root.make()
        self._root.create(session_id, line)

    async def sessions(self, query: SessionQuery) -> Sequence[SessionInfo]:
        """See `RunStore.sessions`; newest by the time its creator's clock said.

        Raises:
            SessionNotFound: there is no session `query.before` to page on from.
        """
        self._here()
        self._root.check()
        with failing("listing the sessions", "nothing was changed"):
            found: list[SessionInfo] = await self._run(self._listing.sessions, query)
        return found

    async def delete(self, session_id: str) -> None:
        """See `RunStore.delete`; who waits for a record gets `SessionNotFound`."""
        session = self._get(session_id)
        await self._run(session.delete)
        with self._lock:
            self._sessions.pop(session_id, None)
        session.wake()

    # --- inbox ------------------------------------------------------------------

    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        """See `RunStore.accept`; the item is a file of its own before this returns.

        Raises:
            InboxFull: 64 unplaced inputs or 1 MiB of them wait already; nothing was
                written, and nothing is ever dropped.
            ConfigError: the item holds what JSON cannot; nothing was written.
        """
        session = self._get(session_id)
        encoded = codec.dump_json(item)
        receipt: Receipt = await self._run(session.accept, item, encoded)
        # Also for a repetition: the first call may have been cancelled before this.
        for listener in session.ears.listeners:
            await tell(listener, session.inbox.version())
        return receipt

    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        """See `RunStore.inbox`.

        Raises:
            SessionNotFound: there is no such session.
            CorruptRecord: an item is damaged.
        """
        session = self._get(session_id)
        version = session.inbox.version()
        if version <= after:  # the usual answer
            return InboxPage(version, ())
        page: InboxPage = await self._run(session.inbox.page, after)
        return page

    # --- ownership --------------------------------------------------------------

    async def acquire(self, session_id: str, owner: str) -> Lease:
        """See `RunStore.acquire`. A torn last line is cut off, and kept in a file.

        Raises:
            CorruptRecord: the journal is damaged before its end; nothing was written.
            SchemaTooNew: a newer version wrote it; nothing was written.
            StoreFailed: the system refused; it is not owned.
        """
        session = self._get(session_id, pin=True)
        attempt = session.attempt(owner, self._now)
        try:
            lease: Lease = await self._run(attempt.run)
        except BaseException:
            attempt.abandon()
            raise
        finally:
            with self._lock:
                session.pins -= 1
        return lease

    async def renew(self, lease: Lease) -> None:
        """See `RunStore.renew`: a lease lasts as long as its process."""
        self._held(lease).check(lease)

    async def release(self, lease: Lease) -> None:
        """See `RunStore.release`: one small write, on the calling thread.

        So nobody who is cancelled keeps a session.
        """
        self._here()
        session = self._sessions.get(lease.session_id)
        if session is not None:
            session.release(self._now(), lease)

    def _held(self, lease: Lease) -> Journal:
        self._here()
        session = self._sessions.get(lease.session_id)
        journal = None if session is None else session.journal
        if journal is None:
            raise lost(lease)
        return journal

    # --- journal ----------------------------------------------------------------

    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        """See `RunStore.append`: one line of the journal.

        Raises:
            ConfigError: a record holds what JSON cannot; nothing was written.
        """
        self._held(lease)
        session = self._sessions[lease.session_id]
        encoded = codec.dump_many(records)
        write = partial(
            session.append, lease, len(records), encoded, self._now,
            expected_seq, expected_inbox,
        )  # fmt: skip
        done: Appended = write() if self.commits_inline else await self._run(write)
        session.wake()
        return done

    def read(self, session_id: str, after: int = 0) -> AsyncIterator[StoredRecord]:
        """See `RunStore.read`; lines that are appended later do not show."""
        return Stream(self._get(session_id).reader(after), self._run)

    # --- blobs ------------------------------------------------------------------

    async def put_blob(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """See `RunStore.put_blob`."""
        self._here()
        name: str = await self._run(self._put_blob, data)
        return BlobRef(name, len(data), media_type)

    def _put_blob(self, data: bytes) -> str:
        self._root.make()
        return self._root.put_blob(data)

    async def get_blob(self, ref: BlobRef) -> bytes:
        """See `RunStore.get_blob`.

        Raises:
            CorruptRecord: they are no longer the bytes that were put.
        """
        self._here()
        self._root.check()
        data: bytes = await self._run(self._root.get_blob, ref)
        return data

    # --- watching (the protocol `Watch`) ----------------------------------------

    @contextmanager
    def on_accept(self, session_id: str, listener: Listener) -> Iterator[None]:
        """See `Watch.on_accept`; call it on an event loop.

        What another process accepts is looked for twenty times a second, and told on
        the event loop of the listener. A listener's error is logged.

        Raises:
            SessionNotFound: there is no such session.
        """
        ears = self._get(session_id).ears
        with self._lookout.listening(ears, listener):
            yield

    async def wait(self, session_id: str, after: int) -> None:
        """See `Watch.wait`; what other processes write is seen within 50 ms.

        Raises:
            SessionNotFound: there is no such session, or it was deleted meanwhile.
        """
        while True:
            event = anyio.Event()
            session = self._get(session_id)
            with session.waking(waker(event)):
                if session.last_seq() > after:
                    return
                with anyio.move_on_after(POLL_SECONDS):
                    await event.wait()

    # --- snapshots (the protocol `Snapshots`) -----------------------------------

    async def save_snapshot(self, session_id: str, seq: int, data: JsonObject) -> None:
        """See `Snapshots.save_snapshot`; one file, replaced in one step."""
        session = self._get(session_id)
        await self._run(session.save_snapshot, seq, data)

    async def load_snapshot(self, session_id: str) -> tuple[int, JsonObject] | None:
        """See `Snapshots.load_snapshot`; one that is damaged counts as none."""
        session = self._get(session_id)
        found: tuple[int, JsonObject] | None = await self._run(session.load_snapshot)
        return found

    # --- inside -----------------------------------------------------------------

    def _here(self) -> None:
        if os.getpid() != self._pid:
            raise ConfigError(
                "this JsonlRunStore was made before a fork, and its sessions belong to "
                "the parent; make a new one in the child"
            )

    def _get(self, session_id: str, *, pin: bool = False) -> Session:
        """The session, which exists; with `pin`, it is not forgotten meanwhile."""
        self._here()
        self._root.check()
        with self._lock:
            session = self._sessions.pop(session_id, None)
            if session is None:
                session = Session(self._root, session_id)
                self._forget_one()
            self._sessions[session_id] = session
            if not session.place.journal.exists():
                if not session.in_use:
                    del self._sessions[session_id]
                raise SessionNotFound(session_id)
            session.pins += pin
        return session

    def _forget_one(self) -> None:
        if len(self._sessions) >= KEEP:
            idle = (k for k, session in self._sessions.items() if not session.in_use)
            oldest = next(idle, None)
            if oldest is not None:
                del self._sessions[oldest]

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        """Run what may wait for the disk in a thread."""
        try:
            limiter = _limiter.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(_THREADS)
            _limiter.set(limiter)
        return await anyio.to_thread.run_sync(function, *args, limiter=limiter)
