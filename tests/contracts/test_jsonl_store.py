"""The JSONL store keeps to the store's contract, however durable it is."""

from pathlib import Path

import pytest
from tests.crash.torn import TornJsonl, killed
from typing_extensions import override

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import RunStore, Snapshots, Watch
from agentcore.stores.jsonl import Durability, JsonlRunStore
from agentcore.testing.contracts import CrashStore, RunStoreContract


class TestJsonlRunStore(RunStoreContract):
    durability: Durability = "power"

    def open(self, path: Path, clock: Clock) -> JsonlRunStore:
        return TornJsonl(path, durability=self.durability, clock=clock)

    @pytest.fixture
    @override
    def store(self, clock: Clock, tmp_path: Path) -> RunStore:
        return self.open(tmp_path / "s", clock)

    @pytest.fixture
    @override
    def other_store(self, store: RunStore, clock: Clock, tmp_path: Path) -> RunStore:
        return self.open(tmp_path / "s", clock)

    @pytest.fixture
    @override
    async def crash_store(self, tmp_path: Path, clock: Clock) -> CrashStore:
        folder = tmp_path / "s"

        async def crash(store: RunStore) -> RunStore:
            nonlocal folder
            folder = killed(folder)
            return self.open(folder, clock)

        return crash

    def test_it_can_be_watched_and_keeps_snapshots(self, store: RunStore) -> None:
        assert isinstance(store, Watch)
        assert isinstance(store, Snapshots)


class TestJsonlRunStoreThatSurvivesCrashesOnly(TestJsonlRunStore):
    durability: Durability = "crash"
