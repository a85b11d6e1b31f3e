"""The memory store keeps to the store's contract, packed or not."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.testing.disk_store import DiskStore
from typing_extensions import override

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import RunStore, Watch
from agentcore.stores._memory_session import Session
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import FakeClock, FaultyStore
from agentcore.testing.contracts import CrashStore, RunStoreContract
from agentcore.types.runs import Lease


class TestMemoryRunStore(RunStoreContract):
    @pytest.fixture
    @override
    def store(self, clock: Clock) -> RunStore:
        return MemoryRunStore(clock=clock)

    @pytest.fixture
    @override
    def crash_store(self) -> CrashStore:
        return crash_memory

    def test_it_can_be_watched(self, store: RunStore) -> None:
        assert isinstance(store, Watch)


async def crash_memory(store: RunStore) -> RunStore:
    """Memory outlives a crash that is only played; the leases are given up."""
    assert isinstance(store, MemoryRunStore)
    for session in store._sessions.values():
        if session.owner is not None:
            store._abandon(Lease(session.session_id, session.owner, session.epoch))
    return store


class Packing(MemoryRunStore):
    """Packs a session before each use, as if a thousand others had come between."""

    @override
    def _get(self, session_id: str) -> Session:
        session = super()._get(session_id)
        if session.owner is None:
            session.pack(blobs=True)
        return session


class TestMemoryRunStoreThatPacks(RunStoreContract):
    @pytest.fixture
    @override
    def store(self, clock: Clock) -> RunStore:
        return Packing(clock=clock)

    @pytest.fixture
    @override
    def crash_store(self) -> CrashStore:
        return crash_memory


class TestMemoryRunStoreBehindFaults(RunStoreContract):
    """A wrapper without a fault changes nothing."""

    @pytest.fixture
    @override
    def store(self, clock: Clock) -> RunStore:
        return FaultyStore(MemoryRunStore(clock=clock))


class TestDiskStore(RunStoreContract):
    """The store the crash tests kill keeps to the contract, killed or not."""

    @pytest.fixture
    @override
    async def store(self, tmp_path: Path, clock: FakeClock) -> AsyncIterator[RunStore]:
        async with DiskStore(tmp_path / "store", clock) as store:
            yield store

    @pytest.fixture
    @override
    async def crash_store(
        self, tmp_path: Path, clock: FakeClock
    ) -> AsyncIterator[CrashStore]:
        async with AsyncExitStack() as stack:

            async def crash(store: RunStore) -> RunStore:
                again = DiskStore(tmp_path / "store", clock)
                return await stack.enter_async_context(again)

            yield crash
