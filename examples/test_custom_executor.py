"""The contract every executor keeps to, applied to one of our own.

pytest examples/test_custom_executor.py
"""

import sys

import pytest

from agentcore.testing.contracts import ToolExecutorContract
from examples.custom_executor import CommandExecutor


class TestCommandExecutor(ToolExecutorContract):
    @pytest.fixture
    def executor(self) -> CommandExecutor:
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        return CommandExecutor(
            {"version": [sys.executable, "--version"], "sleep": sleep}
        )

    @pytest.fixture
    def example(self) -> tuple[str, dict[str, str]]:
        return "version", {}

    @pytest.fixture
    def slow_example(self) -> tuple[str, dict[str, str]]:
        return "sleep", {}
