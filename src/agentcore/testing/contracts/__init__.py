"""Public test suites: subclass one, give it a fixture, and pytest does the rest.

    class TestMyStore(RunStoreContract):
        @pytest.fixture
        def store(self, clock):
            return MyStore(clock=clock)

Async tests run through anyio's pytest plugin. Needs pytest (the extra `test`); the rest
of `agentcore.testing` does not.
"""

from __future__ import annotations

import pytest

# Before the imports below, so that a failing assert shows both of its sides.
pytest.register_assert_rewrite(
    "agentcore.testing.contracts.executor",
    "agentcore.testing.contracts.store",
    "agentcore.testing.contracts._store_faults",
    "agentcore.testing.contracts._store_journal",
)

# ruff: noqa: E402 - see above
from agentcore.testing.contracts._store_faults import CrashStore
from agentcore.testing.contracts.executor import ToolExecutorContract
from agentcore.testing.contracts.store import RunStoreContract

__all__ = ["CrashStore", "RunStoreContract", "ToolExecutorContract"]
