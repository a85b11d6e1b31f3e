"""The store of a run nobody can look at again: it checks and counts, and keeps nothing.

A run without a store and without a reader has a journal like any other, but once a
record is folded into the state there is nobody left who could read it. Keeping it would
only feed the garbage collector: with a thousand such runs in flight that is a quarter
of their time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from agentcore._base.canonical import digest
from agentcore.errors import (
    InboxChanged,
    LeaseLost,
    SequenceConflict,
    SessionBusy,
    SessionNotFound,
    StoreError,
)
from agentcore.protocols.store import Appended, InboxPage
from agentcore.types.content import BlobRef
from agentcore.types.inbox import InboxItem
from agentcore.types.records import (
    SCHEMA_VERSION,
    Record,
    SessionCreated,
    StoredRecord,
)
from agentcore.types.runs import (
    Lease,
    Receipt,
    SessionHeader,
    SessionInfo,
    SessionQuery,
)


class UnkeptStore:
    """One private session, from its creation to the end of its only owner."""

    __slots__ = ("_blobs", "_epoch", "_inbox", "_owner", "_seq", "_session_id")

    commits_inline = True
    keeps_nothing = True  # so nobody can prove a prompt digest, and none is made

    def __init__(self) -> None:
        self._session_id = ""
        self._seq = 0
        self._epoch = 0
        self._owner = ""
        self._inbox: list[InboxItem] = []
        self._blobs: dict[str, bytes] | None = None

    async def create(self, header: SessionHeader) -> None:
        """See `RunStore.create`."""
        self._session_id = header.session_id
        self._seq = 1

    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        """See `RunStore.accept`. Nobody else can send an item a second time."""
        self._known(session_id)
        self._inbox.append(item)
        return Receipt(getattr(item, "id", ""), len(self._inbox))

    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        """See `RunStore.inbox`."""
        self._known(session_id)
        items = self._inbox[after:]
        return InboxPage(len(self._inbox), list(enumerate(items, after + 1)))

    async def acquire(self, session_id: str, owner: str) -> Lease:
        """See `RunStore.acquire`."""
        self._known(session_id)
        if self._owner:
            raise SessionBusy("the run has an owner", owner=self._owner)
        self._owner = owner
        self._epoch += 1
        return Lease(session_id, owner, self._epoch)

    async def renew(self, lease: Lease) -> None:
        """See `RunStore.renew`."""

    async def release(self, lease: Lease) -> None:
        """See `RunStore.release`."""
        self._owner = ""

    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        """See `RunStore.append`; the records are counted and let go."""
        version = len(self._inbox)
        if not self._owner or lease.epoch != self._epoch:
            raise LeaseLost("the run's owner has let go")
        if expected_seq != self._seq:
            raise SequenceConflict(f"the journal ends at {self._seq}")
        if expected_inbox is not None and version > expected_inbox:
            raise InboxChanged(f"the inbox is at {version}, past {expected_inbox}")
        self._seq += len(records)
        return Appended(self._seq, version)

    async def read(
        self, session_id: str, after: int = 0
    ) -> AsyncIterator[StoredRecord]:
        """See `RunStore.read`: only the creation is still known."""
        self._known(session_id)
        if after < 1:
            created = SessionCreated(session_id, SCHEMA_VERSION)
            yield StoredRecord(1, 0, 0.0, created)

    async def put_blob(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """See `RunStore.put_blob`."""
        if self._blobs is None:
            self._blobs = {}
        name = digest(data)
        self._blobs[name] = data
        return BlobRef(name, len(data), media_type)

    async def get_blob(self, ref: BlobRef) -> bytes:
        """See `RunStore.get_blob`."""
        data = (self._blobs or {}).get(ref.hash)
        if data is None:
            raise StoreError(f"no blob {ref.hash!r} in this store")
        return data

    async def sessions(self, query: SessionQuery) -> Sequence[SessionInfo]:
        """See `RunStore.sessions`: a private session is in no list."""
        return ()

    async def delete(self, session_id: str) -> None:
        """See `RunStore.delete`."""
        self._known(session_id)
        if self._owner:
            raise SessionBusy("the run has an owner", owner=self._owner)
        self._session_id = ""

    def _known(self, session_id: str) -> None:
        if session_id != self._session_id:
            raise SessionNotFound(session_id)
