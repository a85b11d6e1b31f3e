"""The agent: configuration, assembly, and the doors to its sessions.

The only package that may touch `agentcore._engine`.
"""

from agentcore.agent.agent import ToolLoopAgent as ToolLoopAgent

__all__ = ["ToolLoopAgent"]
