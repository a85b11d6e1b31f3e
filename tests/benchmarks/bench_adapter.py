"""agentcore as a peer in a benchmark of agent libraries.

That benchmark brings `benchlib` and loads this file by its path, with its own plan in
place of ours. Default settings throughout.
"""

import sys
from pathlib import Path
from typing import Any

from benchlib import PLAN, Adapter  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks import subject

from agentcore import ToolLoopAgent

MODEL = subject.PlannedModel(PLAN)
TOOLS = [subject.adding_tool(PLAN)]


class A(Adapter):  # type: ignore[misc]  # benchlib is not there for the type checker
    NAME = "agentcore"
    DIST = "agentcore"
    IMPORT = "from agentcore import MemoryRunStore, ToolLoopAgent, tool"
    PERSIST_NOTE = "no on-disk store yet"

    def __init__(self) -> None:
        self._idle: subject.IdleSessions | None = None

    def build(self, **options: object) -> ToolLoopAgent:
        return ToolLoopAgent(MODEL, tools=TOOLS)

    async def run(self, agent: ToolLoopAgent, prompt: str) -> str | None:
        return (await agent.run(prompt)).output

    async def stream(self, agent: ToolLoopAgent, prompt: str) -> int:
        return await subject.stream(agent, prompt)

    def make_session(self, agent: ToolLoopAgent, i: int) -> Any:
        """Ten messages in one shared memory store, left there by three real runs."""
        if self._idle is None:
            self._idle = subject.IdleSessions()
        return self._idle.add_now(i)


ADAPTER = A()
