"""A `RunStore` in one SQLite file: the embedded default.

Any number of processes on one machine may share the file, and any number of event loops
and threads one `SqliteRunStore`. What it keeps to, beyond the protocol:

- A write is one transaction that checks owner, end of the journal and inbox version.
- `durability="power"`, the default, syncs the disk before a call returns, in a thread
  that serves everything that waits with one sync. `"crash"` survives the end of the
  process at any moment, not the loss of power; it writes on the calling thread as long
  as nobody else holds the lock.
- After a failed write nobody knows where the session stands, so its lease is of no use
  any more (`StoreFailed`). Acquire the session anew and read it.
- A killed owner's session can be acquired at once, a stopped one's after 30 seconds.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from anyio import to_thread
from pydantic_core import from_json, to_json

from agentcore._base.canonical import digest
from agentcore._base.clock import SystemClock
from agentcore.errors import (
    ConfigError,
    CorruptRecord,
    StoreError,
    StoreFailed,
)
from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import Appended, InboxPage, Listener
from agentcore.stores._common import created
from agentcore.stores.sqlite import _appends as appends
from agentcore.stores.sqlite import _catalog as catalog
from agentcore.stores.sqlite import _inbox as inbox
from agentcore.stores.sqlite import _journal as journal
from agentcore.stores.sqlite._file import Durability, StoreFile
from agentcore.stores.sqlite._parts import Parts
from agentcore.stores.sqlite._writer import BUSY
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

_LARGE: Final = 64 * 1024
"""Bytes beyond which even a read goes to a thread."""


class SqliteRunStore:
    """Sessions in one file.

    It opens at the first use; closed, it opens again. The last of those who entered it
    with `async with` closes it. An agent enters it while it has runs: enter it yourself
    to keep it open between them. Whoever uses it without entering calls `close`.

    Args:
        path: the file; it is made if it is missing, its folder is not.
        durability: `power` or `crash`; see the module.
        clock: stamps the records and the leases; processes must agree on its time.

    Raises:
        ConfigError: the path or the durability cannot be meant.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        clock: Clock | None = None,
    ) -> None:
        if durability not in ("power", "crash"):
            raise ConfigError(
                f"durability must be 'power' or 'crash', not {durability!r}"
            )
        if os.fspath(path) in ("", ":memory:"):
            raise ConfigError("a store in memory is MemoryRunStore()")
        self.path: Path = Path(path).absolute()
        self._now = (clock or SystemClock()).now
        self._parts = parts = Parts(StoreFile(self.path, durability), self._now)
        self._lock = threading.Lock()
        self._entered = 0
        weakref.finalize(self, parts.close_if_ours)

    async def __aenter__(self) -> Self:
        with self._lock:
            self._entered += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._entered -= 1
            last = not self._entered
        if last:
            await self.close()

    async def close(self) -> None:
        """Let go of every session, and of the file. The next use opens it again."""
        self._parts.check_process()
        await to_thread.run_sync(self._parts.close)

    # --- sessions ---------------------------------------------------------------------

    async def create(self, header: SessionHeader) -> None:
        """See `RunStore.create`."""
        at = self._now()
        batch = journal.batch_of([created(header)], at)
        parent = header.parent_session_id

        def operation(connection: Any) -> None:
            no = catalog.create(connection, header.session_id, parent, at)
            journal.write(connection, no, 0, 0, batch)

        await self._parts.write(operation)

    async def sessions(self, query: SessionQuery) -> Sequence[SessionInfo]:
        """See `RunStore.sessions`; newest by creation, whatever the clock said.

        Raises:
            SessionNotFound: there is no session `query.before` to page on from.
        """
        found: list[SessionInfo] = await self._parts.read(
            partial(catalog.listed, query=query), large=True
        )
        return found

    async def delete(self, session_id: str) -> None:
        """See `RunStore.delete`; who waits for a record gets `SessionNotFound`.

        The file keeps its size; what comes later is written where this was.
        """
        leases = self._parts.leases

        def operation(connection: Any) -> None:
            session = catalog.find(connection, session_id)
            leases.refuse_if_owned(connection, session)
            catalog.delete(connection, session.no)

        await self._parts.write(operation, large=True)
        self._parts.watching.wake(session_id)

    # --- inbox ------------------------------------------------------------------------

    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        """See `RunStore.accept`.

        Raises:
            InboxFull: 64 unplaced inputs or 1 MiB of them wait already; nothing was
                written, and nothing is ever dropped.
            ConfigError: the item holds what JSON cannot; nothing was written.
        """
        data = codec.dump_json(item)
        mail = inbox.Mail(session_id, item, data, journal.blobs_in(data))
        watching = self._parts.watching
        taken = partial(watching.taken, session_id)
        try:
            receipt: Receipt = await self._parts.write(
                partial(inbox.accept, mail=mail, taken=taken)
            )
        except StoreFailed:
            watching.unsure(session_id)
            raise
        # Also for a repetition: the first call may have been cancelled before this.
        await watching.tell(session_id, receipt.position)
        return receipt

    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        """See `RunStore.inbox`.

        Raises:
            SessionNotFound: there is no such session.
            CorruptRecord: an item is damaged.
        """
        page: InboxPage = await self._parts.read(
            partial(inbox.page, session_id=session_id, after=after)
        )
        return page

    # --- ownership --------------------------------------------------------------------

    async def acquire(self, session_id: str, owner: str) -> Lease:
        """See `RunStore.acquire`.

        Raises:
            CorruptRecord: its journal is damaged, so nobody may write to it.
        """
        parts = self._parts
        much = partial(parts.has_much_to_verify, session_id=session_id)
        if await self._parts.read(much):  # before the lock; the rest is done under it
            await self._parts.read(
                partial(parts.verify, session_id=session_id), large=True
            )
        operation = partial(parts.acquire, session_id=session_id, owner=owner)
        try:
            lease: Lease = await self._parts.write(
                operation, undo=partial(parts.let_go, session_id)
            )
        except StoreFailed:
            parts.let_go(session_id)
            raise
        parts.writer.attend()  # so that the lease is renewed
        return lease

    async def renew(self, lease: Lease) -> None:
        """See `RunStore.renew`. The store does it by itself while it is open."""
        held = self._parts.leases.of(lease)
        operation = partial(self._parts.renew, held=held)
        await self._parts.write_held(lease, operation)

    async def release(self, lease: Lease) -> None:
        """See `RunStore.release`. What the file cannot take now is tried again."""
        self._parts.check_process()
        parts = self._parts
        held = parts.leases.held.get(lease.session_id)
        if held is None or held.epoch != lease.epoch:
            return
        del parts.leases.held[lease.session_id]
        try:
            await self._parts.write(partial(parts.leases.release, held=held))
        except StoreError as error:
            parts.let_go(lease.session_id, error)

    # --- journal ----------------------------------------------------------------------

    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        """See `RunStore.append`.

        Raises:
            ConfigError: a record holds what JSON cannot; nothing was written.
        """
        expected = (expected_seq, expected_inbox)
        at = self._now()
        return await appends.append(self._parts, lease, records, at, expected)

    def append_now(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended | None:
        """See `AppendsNow.append_now`.

        `None` with `durability="power"`, while the file is not open, and while somebody
        else writes to it.

        Raises:
            ConfigError: a record holds what JSON cannot; nothing was written.
        """
        expected = (expected_seq, expected_inbox)
        at = self._now()
        return appends.append_now(self._parts, lease, records, at, expected)

    def read(self, session_id: str, after: int = 0) -> AsyncIterator[StoredRecord]:
        """See `RunStore.read`; later appends do not show.

        It goes in pages, and holds nothing back between them.
        """
        self._parts.check_process()
        # Where it is not open yet, the first step sees how far the journal goes.
        known = self._parts.readers.now(partial(journal.end_of, session_id=session_id))
        return self._records(session_id, after, known)

    async def _records(
        self, session_id: str, after: int, known: Any
    ) -> AsyncIterator[StoredRecord]:
        if known is BUSY:
            known = await self._parts.read(
                partial(journal.end_of, session_id=session_id)
            )
        no, end = known
        cursor = journal.Cursor(no, after)
        last = after
        while last < end:
            page: journal.Page = await self._parts.read(partial(cursor.page, end=end))
            for row in page.rows:
                last = row.last
                for stored in row.decoded():
                    if stored.seq > after:
                        yield stored
            if page.fault is not None:
                # Gone is not damaged.
                await self._parts.read(partial(catalog.find, session_id=session_id))
                raise page.fault

    async def verify(self, session_id: str) -> None:
        """Test a session's whole journal.

        Raises:
            SessionNotFound: there is no such session.
            CorruptRecord: it is damaged; the message says from where on.
        """
        async for _ in self.read(session_id):
            pass

    # --- blobs ------------------------------------------------------------------------

    async def put_blob(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """See `RunStore.put_blob`."""
        name = digest(data)
        await self._parts.write(
            partial(catalog.put_blob, name=name, data=bytes(data)),
            large=len(data) > _LARGE,
        )
        return BlobRef(name, len(data), media_type)

    async def get_blob(self, ref: BlobRef) -> bytes:
        """See `RunStore.get_blob`.

        Raises:
            CorruptRecord: the bytes are not those that were put.
        """
        data: bytes | None = await self._parts.read(
            partial(catalog.get_blob, name=ref.hash), large=ref.size > _LARGE
        )
        if data is None:
            raise StoreError(f"no blob {ref.hash} in this store")
        if digest(data) != ref.hash:
            raise CorruptRecord(f"blob {ref.hash} is damaged")
        return data

    # --- watching (the protocol `Watch`) --------------------------------------------

    def on_accept(
        self, session_id: str, listener: Listener
    ) -> AbstractContextManager[None]:
        """See `Watch.on_accept`; items of other processes are told as well.

        Those are told in a thread with an event loop of its own, a few milliseconds
        late, and several at once as one. A listener's error is logged: the item is
        durable.

        Raises:
            SessionNotFound: there is no such session.
        """
        self._parts.check_process()
        return self._parts.watching.listening(session_id, listener)

    async def wait(self, session_id: str, after: int) -> None:
        """See `Watch.wait`.

        Raises:
            SessionNotFound: there is no such session, or it was deleted meanwhile.
        """
        self._parts.check_process()
        await self._parts.watching.wait(session_id, after)

    # --- snapshots (the protocol `Snapshots`) ----------------------------------------

    async def save_snapshot(self, session_id: str, seq: int, data: JsonObject) -> None:
        """See `Snapshots.save_snapshot`; it takes the place of the one before."""
        encoded = to_json(data)
        await self._parts.write(
            partial(
                catalog.save_snapshot, session_id=session_id, seq=seq, data=encoded
            ),
            large=len(encoded) > _LARGE,
        )

    async def load_snapshot(self, session_id: str) -> tuple[int, JsonObject] | None:
        """See `Snapshots.load_snapshot`; a damaged one is none."""
        found = await self._parts.read(
            partial(catalog.load_snapshot, session_id=session_id)
        )
        return None if found is None else (found[0], from_json(found[1]))
