"""The SQLite store keeps to the store's contract, in both durabilities."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.crash.torn import TornSqlite, killed
from typing_extensions import override

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import RunStore, Snapshots, Watch
from agentcore.stores.sqlite import SqliteRunStore
from agentcore.testing.contracts import CrashStore, RunStoreContract


class Power(RunStoreContract):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        (tmp_path / "store").mkdir()
        return tmp_path / "store" / "bot.db"

    def open(self, path: Path, clock: Clock) -> SqliteRunStore:
        return TornSqlite(path, clock=clock)

    @pytest.fixture
    @override
    async def store(self, clock: Clock, path: Path) -> AsyncIterator[RunStore]:
        async with self.open(path, clock) as store:
            yield store

    @pytest.fixture
    @override
    async def crash_store(self, clock: Clock) -> AsyncIterator[CrashStore]:
        async with AsyncExitStack() as stack:

            async def crash(store: RunStore) -> RunStore:
                assert isinstance(store, SqliteRunStore)
                path = killed(store.path.parent) / store.path.name
                return await stack.enter_async_context(self.open(path, clock))

            yield crash

    async def test_it_can_be_watched_and_keeps_snapshots(self, store: RunStore) -> None:
        assert isinstance(store, Watch)
        assert isinstance(store, Snapshots)


class TestOneHandle(Power):
    pass


class TestPower(Power):
    @pytest.fixture
    @override
    async def other_store(
        self, store: RunStore, clock: Clock, path: Path
    ) -> AsyncIterator[RunStore]:
        async with self.open(path, clock) as other:
            yield other


class TestCrash(TestPower):
    @override
    def open(self, path: Path, clock: Clock) -> SqliteRunStore:
        return TornSqlite(path, durability="crash", clock=clock)
