"""The contract of a journal's storage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

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


class Appended(NamedTuple):
    """Where the journal and the inbox stand after an append."""

    seq: int
    """Sequence number of the last record."""
    inbox_version: int
    """Position of the last accepted inbox item; 0 for none."""


class InboxPage(NamedTuple):
    """The inbox after a position."""

    version: int
    items: Sequence[tuple[int, InboxItem]]
    """Position and item, in order."""


class RunStore(Protocol):
    """Keeps sessions: a journal each, an inbox each, and blobs by content.

    `accept` and `read` need no ownership; `append` does. An append is all or nothing.

    A store whose `append` never suspends may say so with `commits_inline = True`: the
    engine then need not shield it from cancellation.
    """

    async def create(self, header: SessionHeader) -> None:
        """Start a session; its `session.created` is record 1 with epoch 0.

        Raises:
            SessionExists: it is there already; two creators cannot both succeed.
        """
        ...

    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        """Take an item into the inbox; durable when this returns.

        Idempotent by `item.id`: the same item again gives the first receipt with
        `duplicate=True` and writes nothing.

        Raises:
            SessionNotFound: create it first; nothing was written.
            InputConflict: the id was used with other content; nothing was written.
            StoreFailed: it may or may not be durable; the same call again is safe.
        """
        ...

    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        """The items after a position, and the version of the inbox."""
        ...

    async def acquire(self, session_id: str, owner: str) -> Lease:
        """Become the one owner; the epoch rises by one.

        Raises:
            SessionBusy: a living owner holds it.
            SessionNotFound: there is no such session.
        """
        ...

    async def renew(self, lease: Lease) -> None:
        """Keep the lease.

        Raises:
            LeaseLost: another owner took over; start no further effect.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Let go. Releasing a lost lease does nothing."""
        ...

    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        """Write records after `expected_seq`, all or none, durable when this returns.

        Raises:
            LeaseLost: the lease's epoch is no longer the newest; nothing was written.
            SequenceConflict: the journal ends elsewhere; nothing was written.
            InboxChanged: the inbox moved past `expected_inbox`; nothing was written.
            StoreFailed: it may or may not be written; the handle is poisoned.
        """
        ...

    def read(self, session_id: str, after: int = 0) -> AsyncIterator[StoredRecord]:
        """The records after `after`, in order, as far as they were durable at the call.

        Raises:
            SessionNotFound: there is no such session.
            CorruptRecord: raised after the last valid record.
        """
        ...

    async def put_blob(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """Keep bytes by content; equal bytes are stored once. Durable on return."""
        ...

    async def get_blob(self, ref: BlobRef) -> bytes:
        """The bytes of a blob.

        Raises:
            StoreError: the store does not have it.
        """
        ...

    async def sessions(self, query: SessionQuery) -> Sequence[SessionInfo]:
        """The sessions a query asks for, newest first."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove a session and the blobs nothing else names.

        Raises:
            SessionBusy: somebody owns it.
            SessionNotFound: there is no such session.
        """
        ...


@runtime_checkable
class AppendsNow(Protocol):
    """A store whose appends need not suspend, most of the time.

    The engine asks for it first: what does not suspend cannot be cut in two by a
    cancellation, so it needs no task of its own. It is taken only from the class that
    defines `append`, or one derived from it; a wrapper offers its own.
    """

    def append_now(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended | None:
        """`RunStore.append` on the spot, or `None`: it would have to wait.

        After `None` nothing was written or changed; the same goes to `append`. It is
        called on an event loop's thread, so it must not wait for a lock or a disk.

        Raises:
            LeaseLost, SequenceConflict, InboxChanged, StoreFailed: as `append`.
        """
        ...


Listener = Callable[[int], Awaitable[None]]
"""Called with the inbox version (or sequence number) after something was written."""


@runtime_checkable
class Watch(Protocol):
    """A store that tells when something happened, instead of being polled."""

    def on_accept(
        self, session_id: str, listener: Listener
    ) -> AbstractContextManager[None]:
        """Await `listener` in every `accept` of the session, after it is durable."""
        ...

    async def wait(self, session_id: str, after: int) -> None:
        """Return as soon as the journal holds a record after `after`."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """A store that keeps a snapshot beside the journal: a cache of the fold."""

    async def save_snapshot(self, session_id: str, seq: int, data: JsonObject) -> None:
        """Keep the fold up to `seq`."""
        ...

    async def load_snapshot(self, session_id: str) -> tuple[int, JsonObject] | None:
        """The newest snapshot, if there is one."""
        ...
