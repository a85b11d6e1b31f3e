"""The memory store keeps to the store's contract, packed or not."""

import pytest
from typing_extensions import override

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import RunStore, Watch
from agentcore.stores._memory_session import Session
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing.contracts import RunStoreContract


class TestMemoryRunStore(RunStoreContract):
    @pytest.fixture
    @override
    def store(self, clock: Clock) -> RunStore:
        return MemoryRunStore(clock=clock)

    def test_it_can_be_watched(self, store: RunStore) -> None:
        assert isinstance(store, Watch)


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
