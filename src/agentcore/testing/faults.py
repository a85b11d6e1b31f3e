"""A store that fails where a test says, and whose process can die there.

    store = FaultyStore(MemoryRunStore(), crashes("after:tool.intent#2"))
    with store.process():
        await agent.run("Hi", session="s")   # ends at the second intent
    assert store.crashed

`FaultyStore` wraps any `RunStore`. Seen from the storage it is one process: after a
crash it writes nothing more, and its leases are given up without `owner.released`, so
that another handle on the same storage can take over.

A place is `before:`, `mid:` or `after:`, then a method (`append`, `accept` …), `write`
for any method that writes, or a kind of record (`tool.intent`), then `#n` for the n-th
that is written (1 if left out). A call that is refused does not count.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Final, Self

from agentcore.errors import ConfigError
from agentcore.protocols.store import (
    Appended,
    InboxPage,
    Listener,
    RunStore,
    Snapshots,
    Watch,
)
from agentcore.testing._fault import (
    Crashed,
    Fault,
    Torn,
    crashes,
    delays,
    fails,
    holds,
    kill_myself,
    kills,
    turns_clock,
)
from agentcore.testing._process import Abandon, Pause, Process
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

__all__ = [
    "Crashed",
    "Fault",
    "FaultyStore",
    "Torn",
    "crashes",
    "delays",
    "fails",
    "holds",
    "kill_myself",
    "kills",
    "turns_clock",
]


class FaultyStore(Process):
    """A `RunStore` over another one, with faults, as one process that can crash.

    Args:
        store: What keeps the data. Where it is a `Watch` or keeps `Snapshots`, so is
            this; whatever else it has is reached through this, too.
        *faults: Each strikes once, in the order they are given where a place is shared.
        pause: Awaited before and after every call, with `before:append` and so on; a
            test that wants other interleavings lets others run here, and may raise.
        abandon: Gives up a lease of a dead handle in the storage. A `MemoryRunStore`
            needs none; without one, a lease stays until the storage itself notices.

    Raises:
        ConfigError: a fault is to strike in the middle of an append, and the store is
            not `Torn`.
    """

    def __new__(cls, store: Any, *_: Any, **__: Any) -> Self:
        """Choose the abilities the wrapped store has."""
        made: Self = object.__new__(_class_for(cls, store))
        return made

    def __init__(
        self,
        store: RunStore,
        *faults: Fault,
        pause: Pause | None = None,
        abandon: Abandon | None = None,
    ) -> None:
        self.inner: Any = store
        """The wrapped store."""
        super().__init__(faults, pause, abandon or getattr(store, "_abandon", None))
        torn = [str(fault) for fault in faults if fault.place.when == "mid"]
        if torn and not isinstance(store, Torn):
            raise ConfigError(
                f"{', '.join(torn)}: {type(store).__name__} has no `append_torn` (Torn)"
            )

    @property
    def commits_inline(self) -> bool:
        """As the wrapped store, unless something may wait here."""
        inline = bool(getattr(self.inner, "commits_inline", False))
        return inline and not self._may_wait()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the wrapped store has."""
        if name == "inner":  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    # --- RunStore --------------------------------------------------------------------

    async def create(self, header: SessionHeader) -> None:
        """See `RunStore.create`."""
        await self._call("create", lambda: self.inner.create(header))

    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        """See `RunStore.accept`."""
        return await self._call("accept", lambda: self.inner.accept(session_id, item))

    async def inbox(self, session_id: str, after: int = 0) -> InboxPage:
        """See `RunStore.inbox`."""
        return await self._call("inbox", lambda: self.inner.inbox(session_id, after))

    async def acquire(self, session_id: str, owner: str) -> Lease:
        """See `RunStore.acquire`."""
        return await self._call(
            "acquire", lambda: self.inner.acquire(session_id, owner)
        )

    async def renew(self, lease: Lease) -> None:
        """See `RunStore.renew`."""
        await self._call("renew", lambda: self.inner.renew(lease))

    async def release(self, lease: Lease) -> None:
        """See `RunStore.release`."""
        await self._call("release", lambda: self._release(lease))

    async def _release(self, lease: Lease) -> None:
        await self.inner.release(lease)
        if self._leases.get(lease.session_id) == lease:
            del self._leases[lease.session_id]

    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        """See `RunStore.append`."""
        expected: dict[str, Any] = {
            "expected_seq": expected_seq,
            "expected_inbox": expected_inbox,
        }
        return await self._call(
            "append",
            lambda: self.inner.append(lease, records, **expected),
            records,
            lambda: self.inner.append_torn(lease, records, **expected),
        )

    async def read(
        self, session_id: str, after: int = 0
    ) -> AsyncIterator[StoredRecord]:
        """See `RunStore.read`."""

        async def begin() -> AsyncIterator[StoredRecord]:
            return self.inner.read(session_id, after)  # type: ignore[no-any-return]

        async for stored in await self._call("read", begin):
            self._alive()
            yield stored

    async def put_blob(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """See `RunStore.put_blob`."""
        return await self._call(
            "put_blob", lambda: self.inner.put_blob(data, media_type=media_type)
        )

    async def get_blob(self, ref: BlobRef) -> bytes:
        """See `RunStore.get_blob`."""
        return await self._call("get_blob", lambda: self.inner.get_blob(ref))

    async def sessions(self, query: SessionQuery) -> Sequence[SessionInfo]:
        """See `RunStore.sessions`."""
        return await self._call("sessions", lambda: self.inner.sessions(query))

    async def delete(self, session_id: str) -> None:
        """See `RunStore.delete`."""
        await self._call("delete", lambda: self.inner.delete(session_id))

    # --- lifetime --------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the wrapped store, where it is to be opened."""
        if hasattr(self.inner, "__aenter__"):
            await self.inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it again, after a crash too: a test leaves nothing open."""
        if hasattr(self.inner, "__aexit__"):
            await self.inner.__aexit__(exc_type, exc, traceback)


class _Watched(FaultyStore):
    """Over a store that is a `Watch`."""

    @contextmanager
    def on_accept(self, session_id: str, listener: Listener) -> Iterator[None]:
        """See `Watch.on_accept`. Whoever accepts outlives a crash of the listener's."""

        async def heard(version: int) -> None:
            if self.crashed:
                return
            try:
                await listener(version)
            except Crashed:
                if not self.crashed:
                    raise

        listening: AbstractContextManager[None] = self.inner.on_accept(
            session_id, heard
        )
        with listening:
            yield

    async def wait(self, session_id: str, after: int) -> None:
        """See `Watch.wait`."""
        self._alive()
        await self.inner.wait(session_id, after)
        self._alive()


class _WithSnapshots(FaultyStore):
    """Over a store that keeps `Snapshots`."""

    async def save_snapshot(self, session_id: str, seq: int, data: JsonObject) -> None:
        """See `Snapshots.save_snapshot`."""
        await self._call(
            "save_snapshot", lambda: self.inner.save_snapshot(session_id, seq, data)
        )

    async def load_snapshot(self, session_id: str) -> tuple[int, JsonObject] | None:
        """See `Snapshots.load_snapshot`."""
        return await self._call(
            "load_snapshot", lambda: self.inner.load_snapshot(session_id)
        )


class _WatchedWithSnapshots(_Watched, _WithSnapshots):
    """Over a store with both."""


_BY_ABILITIES: Final[dict[tuple[bool, bool], type[FaultyStore]]] = {
    (False, False): FaultyStore,
    (True, False): _Watched,
    (False, True): _WithSnapshots,
    (True, True): _WatchedWithSnapshots,
}


def _class_for(asked: type[FaultyStore], store: object) -> type[Any]:
    fitting = _BY_ABILITIES[isinstance(store, Watch), isinstance(store, Snapshots)]
    if asked is FaultyStore or issubclass(asked, fitting):
        return fitting if asked is FaultyStore else asked
    return type(asked.__name__, (asked, fitting), {})
