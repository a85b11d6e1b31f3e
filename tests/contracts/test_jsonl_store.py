"""The JSONL store keeps to the store's contract, however durable it is."""

from pathlib import Path

import pytest
from typing_extensions import override

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import RunStore, Snapshots, Watch
from agentcore.stores.jsonl import Durability, JsonlRunStore
from agentcore.testing.contracts import RunStoreContract


class TestJsonlRunStore(RunStoreContract):
    durability: Durability = "power"

    @pytest.fixture
    @override
    def store(self, clock: Clock, tmp_path: Path) -> RunStore:
        return JsonlRunStore(tmp_path / "s", durability=self.durability, clock=clock)

    @pytest.fixture
    @override
    def other_store(self, store: RunStore, clock: Clock, tmp_path: Path) -> RunStore:
        return JsonlRunStore(tmp_path / "s", durability=self.durability, clock=clock)

    def test_it_can_be_watched_and_keeps_snapshots(self, store: RunStore) -> None:
        assert isinstance(store, Watch)
        assert isinstance(store, Snapshots)


class TestJsonlRunStoreThatSurvivesCrashesOnly(TestJsonlRunStore):
    durability: Durability = "crash"
