"""A `RunStore` in memory: the fastest there is, and it survives nothing.

What it keeps to, beyond the protocol:

- A lease is held until it is released. No other process can exist, so nobody ever takes
  a session over: `Lease.took_over` is always false.
- An append is one list entry; records are never copied or wrapped before they are read.
- Only the sessions used last stay as objects. Idle ones beyond `keep` are packed into a
  few hundred bytes and come back on their next use.
- It may be shared by several threads and event loops: a lock guards every step and is
  never held across an `await`. Whoever waits is woken in their own loop; a listener of
  `on_accept` is awaited where `accept` was called.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import anyio

from agentcore._base.canonical import digest
from agentcore._base.clock import SystemClock
from agentcore.errors import (
    ConfigError,
    InboxChanged,
    LeaseLost,
    SequenceConflict,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StoreError,
)
from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import Appended, InboxPage, Listener
from agentcore.stores._common import created, item_key
from agentcore.stores._memory_session import Batch, Session
from agentcore.stores._wake import waker
from agentcore.types import codec
from agentcore.types.content import BlobRef
from agentcore.types.inbox import InboxItem
from agentcore.types.records import (
    Record,
    StoredRecord,
)
from agentcore.types.runs import (
    Lease,
    Receipt,
    SessionHeader,
    SessionInfo,
    SessionQuery,
)

KEEP: Final = 64
"""Idle sessions that stay unpacked."""

_log = logging.getLogger(__name__)
_new: Callable[..., Appended] = tuple.__new__  # half the time of the named call


class MemoryRunStore:
    """Sessions in this process's memory; they end with it.

    Args:
        clock: stamps the records.
        keep: how many idle sessions stay unpacked; at least one.
    """

    commits_inline = True  # an append never suspends, so no cancel can cut it in two

    def __init__(self, *, clock: Clock | None = None, keep: int = KEEP) -> None:
        self._now = (clock or SystemClock()).now
        self._keep = max(keep, 1)  # the one in use is never packed
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}  # in the order of creation
        self._idle: dict[str, Session] = {}  # unpacked and unowned, last used last
        self._blobs: dict[str, bytes] = {}
        self._abandoned: set[str] = set()  # sessions whose owner crashed, in a test

    # --- sessions ------------------------------------------------------------------

    async def create(self, header: SessionHeader) -> None:
        """See `RunStore.create`."""
        session_id = header.session_id
        record = created(header)
        with self._lock:
            if session_id in self._sessions:
                raise SessionExists(session_id)
            at = self._now()
            session = Session(session_id, header.parent_session_id, at)
            session.batches = [(1, 0, at, (record,))]
            session.seq = 1
            self._sessions[session_id] = session
            self._touch(session)

    async def sessions(self, query: SessionQuery) -> Sequence[SessionInfo]:
        """See `RunStore.sessions`; newest by creation, whatever the clock said.

        Raises:
            SessionNotFound: there is no session `query.before` to page on from.
        """
        found: list[SessionInfo] = []
        with self._lock:
            before = query.before
            if before is not None:
                self._get(before)
            for session_id, session in reversed(self._sessions.items()):
                if before is not None:
                    before = None if session_id == before else before
                elif _asked_for(session, query):
                    if len(found) >= query.limit:
                        break
                    found.append(session.info())
        return found

    async def delete(self, session_id: str) -> None:
        """See `RunStore.delete`; who waits for a record gets `SessionNotFound`."""
        with self._lock:
            session = self._get(session_id)
            if session.owner is not None:
                raise _busy(session)
            named = self._blobs.keys() & session.blob_hashes()
            del self._sessions[session_id]
            self._abandoned.discard(session_id)
            self._idle.pop(session_id, None)
            for other in self._sessions.values():
                if not named:
                    break
                named -= other.blob_hashes()
            for blob in named:
                del self._blobs[blob]
            waiters = session.waiters
        for wake in waiters:
            wake()

    # --- inbox ---------------------------------------------------------------------

    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        """See `RunStore.accept`.

        Raises:
            InboxFull: 64 unplaced inputs or 1 MiB of them wait already; nothing was
                written, and nothing is ever dropped.
            ConfigError: the item holds what JSON cannot; nothing was written.
        """
        encoded = codec.dump_json(item)
        item_id = item_key(item)
        with self._lock:
            session = self._open(session_id)
            receipt = session.accept(item, item_id, encoded)
            listeners, version = session.listeners, session.accepted
        # Also for a repetition: the first call may have been cancelled before this.
        for listener in listeners:
            await _tell(listener, version)
        return receipt

    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        """See `RunStore.inbox`.

        Raises:
            SessionNotFound: there is no such session.
        """
        with self._lock:
            session = self._get(session_id)
            if session.accepted <= after:  # the usual answer, without unpacking
                return InboxPage(session.accepted, ())
            items = self._open(session_id).inbox[after:]
            return InboxPage(session.accepted, tuple(enumerate(items, after + 1)))

    # --- ownership -----------------------------------------------------------------

    async def acquire(self, session_id: str, owner: str) -> Lease:
        """See `RunStore.acquire`."""
        with self._lock:
            session = self._get(session_id)
            if session.owner is not None:
                raise _busy(session)
            session.unpack()
            self._idle.pop(session_id, None)
            session.owner = owner
            session.epoch += 1
            took_over = session_id in self._abandoned
            self._abandoned.discard(session_id)
            return Lease(session_id, owner, session.epoch, took_over)

    async def renew(self, lease: Lease) -> None:
        """See `RunStore.renew`."""
        with self._lock:
            self._held(lease)

    async def release(self, lease: Lease) -> None:
        """See `RunStore.release`."""
        with self._lock, suppress(LeaseLost):
            session = self._held(lease)
            session.owner = None
            self._touch(session)

    def _abandon(self, lease: Lease) -> None:
        """Let the next owner take over; the testing kit's way to play a crash."""
        with self._lock, suppress(LeaseLost):
            session = self._held(lease)
            session.owner = None
            self._abandoned.add(lease.session_id)
            self._touch(session)

    def _held(self, lease: Lease) -> Session:
        session = self._sessions.get(lease.session_id)
        if session is None or session.epoch != lease.epoch or session.owner is None:
            raise LeaseLost(
                f"{lease.owner!r} no longer holds session {lease.session_id!r}: "
                f"epoch {lease.epoch} is over"
            )
        return session

    # --- journal -------------------------------------------------------------------

    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        """See `RunStore.append`. Nothing is encoded: the records stay as they are."""
        with self._lock:
            session = self._sessions.get(lease.session_id)
            if session is None or session.epoch != lease.epoch or not session.owner:
                session = self._held(lease)
            seq, version = session.seq, session.accepted
            if seq != expected_seq:
                raise SequenceConflict(
                    f"session {lease.session_id!r} ends at {seq}, not {expected_seq}"
                )
            if expected_inbox is not None and version > expected_inbox:
                raise InboxChanged(
                    f"the inbox of {lease.session_id!r} is at {version}, past "
                    f"{expected_inbox}"
                )
            if records:
                at = session.at = self._now()
                batch = (seq + 1, lease.epoch, at, tuple(records))
                # An owned session is unpacked.
                session.batches.append(batch)  # type: ignore[union-attr]  # see above
                seq = session.seq = seq + len(records)
                if session.queue is not None:
                    session.queue.follow(records)
            waiters = session.waiters
        if waiters:
            for wake in waiters:
                wake()
        return _new(Appended, (seq, version))

    def read(self, session_id: str, after: int = 0) -> AsyncIterator[StoredRecord]:
        """See `RunStore.read`; later appends do not show."""
        with self._lock:
            session = self._open(session_id)
            batches = session.unpack()
            return _records(batches, len(batches), after)

    # --- blobs ---------------------------------------------------------------------

    async def put_blob(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """See `RunStore.put_blob`."""
        name = digest(data)
        with self._lock:
            self._blobs.setdefault(name, bytes(data))
        return BlobRef(name, len(data), media_type)

    async def get_blob(self, ref: BlobRef) -> bytes:
        """See `RunStore.get_blob`."""
        with self._lock:
            data = self._blobs.get(ref.hash)
        if data is None:
            raise StoreError(f"no blob {ref.hash} in this store")
        return data

    # --- watching (the protocol `Watch`) ---------------------------------------------

    @contextmanager
    def on_accept(self, session_id: str, listener: Listener) -> Iterator[None]:
        """See `Watch.on_accept`. A listener's error is logged: the item is durable.

        Raises:
            SessionNotFound: there is no such session.
        """
        with self._lock:
            session = self._get(session_id)
            session.listeners += (listener,)
        try:
            yield
        finally:
            with self._lock:
                session.listeners = _without(session.listeners, listener)

    async def wait(self, session_id: str, after: int) -> None:
        """See `Watch.wait`.

        Raises:
            SessionNotFound: there is no such session, or it was deleted meanwhile.
        """
        while True:
            event = anyio.Event()
            wake = waker(event)
            with self._lock:
                session = self._get(session_id)
                if session.seq > after:
                    return
                session.waiters += (wake,)
            try:
                await event.wait()
            finally:
                with self._lock:
                    session.waiters = _without(session.waiters, wake)

    # --- idle sessions (all with the lock held) --------------------------------------

    def _get(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    def _open(self, session_id: str) -> Session:
        """The session, unpacked and the last one to be packed again."""
        session = self._get(session_id)
        session.unpack()
        if session.owner is None:
            self._touch(session)
        return session

    def _touch(self, session: Session) -> None:
        idle = self._idle
        idle.pop(session.session_id, None)
        idle[session.session_id] = session
        if len(idle) > self._keep:
            oldest = idle.pop(next(iter(idle)))
            # What JSON cannot hold cannot be packed; it stays as it is.
            with suppress(ConfigError):
                oldest.pack(blobs=bool(self._blobs))


async def _records(
    batches: list[Batch], count: int, after: int
) -> AsyncIterator[StoredRecord]:
    for index in range(count):
        seq, epoch, at, records = batches[index]
        if seq + len(records) <= after + 1:
            continue
        for record in records:
            if seq > after:
                yield StoredRecord(seq, epoch, at, record)
            seq += 1


def _asked_for(session: Session, query: SessionQuery) -> bool:
    parent = query.parent_session_id
    return (
        session.session_id.startswith(query.prefix)
        and (parent is None or session.parent == parent)
        and not (query.roots_only and session.parent is not None)
    )


def _busy(session: Session) -> SessionBusy:
    return SessionBusy(
        f"session {session.session_id!r} is held by {session.owner!r}",
        owner=session.owner,
    )


async def _tell(listener: Listener, version: int) -> None:
    try:
        await listener(version)
    except Exception:  # noqa: BLE001 - the item is durable, the receipt must go out
        _log.exception("a listener of accept failed")


def _without(items: tuple[Any, ...], item: object) -> tuple[Any, ...]:
    return tuple(kept for kept in items if kept is not item)
