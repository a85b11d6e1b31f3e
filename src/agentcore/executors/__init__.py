"""Where tools run. Each wrapper is an executor around an executor."""

from agentcore.executors.local import LocalToolExecutor as LocalToolExecutor
from agentcore.executors.router import RouterExecutor as RouterExecutor

__all__ = ["LocalToolExecutor", "RouterExecutor"]
