"""What the store suites share: fixtures, and short ways to write and read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import RunStore
from agentcore.testing.runtime import FakeClock
from agentcore.types.records import Record, StateChanged, StoredRecord
from agentcore.types.runs import Lease, SessionHeader

S = "session-1"
START = 1_000.0
PATIENCE = 10.0
"""Seconds before a wait that should have ended fails its test."""


async def journal(store: RunStore, after: int = 0) -> list[StoredRecord]:
    """The records of the session the tests write to."""
    return [stored async for stored in store.read(S, after)]


def texts(*values: str) -> Sequence[Record]:
    """Records that are easy to tell apart."""
    return [StateChanged("k", value) for value in values]


class StoreFixtures:
    """The fixtures a host overrides: `store`, and where it can the others."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The clock a store under test should be given."""
        return FakeClock(START)

    @pytest.fixture
    def store(self, clock: Clock) -> RunStore:
        """The store under test, empty."""
        raise NotImplementedError("override the fixture `store`")

    @pytest.fixture
    def other_store(self, store: RunStore) -> RunStore:
        """A second handle on the same storage, where a store can have one."""
        return store

    @pytest.fixture
    async def lease(self, store: RunStore) -> Lease:
        """A new session, owned: the journal ends at 1."""
        await store.create(SessionHeader(S))
        return await store.acquire(S, "owner-1")
