"""The contract every store keeps to, applied to one of our own.

pytest examples/test_custom_store.py
"""

import pytest

from agentcore import MemoryRunStore
from agentcore.protocols.runtime import Clock
from agentcore.testing.contracts import RunStoreContract
from examples.custom_store import CountingStore


class TestCountingStore(RunStoreContract):
    @pytest.fixture
    def store(self, clock: Clock) -> CountingStore:
        return CountingStore(MemoryRunStore(clock=clock))
