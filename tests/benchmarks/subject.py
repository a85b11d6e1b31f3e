"""The measured side: agentcore with a scripted model and one tool, default settings."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from pydantic_core import to_json
from tests.benchmarks.plan import DELTA, PLAN, Script, SessionPlan

from agentcore import MemoryRunStore, ToolLoopAgent, tool
from agentcore.types.content import TextPart, ToolCallPart
from agentcore.types.messages import ToolMessage
from agentcore.types.model import (
    ModelCapabilities,
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
    TextDelta,
)
from agentcore.types.usage import Usage

IMPORT = "from agentcore import MemoryRunStore, ToolLoopAgent, tool"
"""What a host writes to have an agent, a tool and sessions."""

USAGE = Usage(1, 1)
CHUNK = TextDelta(DELTA)  # made once, so that making it is not charged to agentcore


class Answering:
    """One reply of the scripted model."""

    __slots__ = ("_request", "_script")

    def __init__(self, script: Script, request: ModelRequest) -> None:
        self._script = script
        self._request = request

    async def __aenter__(self) -> AsyncIterator[ModelDelta]:
        return self._deltas()

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def _deltas(self) -> AsyncIterator[ModelDelta]:
        script = self._script
        if script.model_sleep:
            await asyncio.sleep(script.model_sleep)
        last = self._request.messages[-1]
        last_id = None
        if type(last) is ToolMessage:
            last_id = last.results[-1].provider_call_id
        reply = script.decide(last_id)
        if isinstance(reply, str):
            for _ in range(script.deltas):
                yield CHUNK
            yield ResponseDone(ModelResponse((TextPart(reply),), "stop", USAGE))
            return
        calls = tuple(
            ToolCallPart("add", to_json(args).decode(), provider_call_id=call_id)
            for call_id, args in reply
        )
        yield ResponseDone(ModelResponse(calls, "tool_calls", USAGE))


class PlannedModel:
    """A model that says what its script decides."""

    id = "planned:model"
    capabilities = ModelCapabilities()

    def __init__(self, script: Script) -> None:
        self._script = script

    def stream(self, request: ModelRequest) -> Answering:
        """See `Model.stream`."""
        return Answering(self._script, request)


def adding_tool(script: Script) -> Any:
    """The one tool; its schema is built here, once."""

    @tool(effects="none", replay="safe", parallel=True)
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        if script.tool_sleep:
            await asyncio.sleep(script.tool_sleep)
        return a + b

    return add


MODEL = PlannedModel(PLAN)
TOOLS = [adding_tool(PLAN)]


def build() -> ToolLoopAgent:
    """An agent object, as a host makes one per tenant."""
    return ToolLoopAgent(MODEL, tools=TOOLS)


def runner() -> Callable[[str], Awaitable[str]]:
    """What runs a prompt with one shared agent."""
    agent = build()

    async def run(prompt: str) -> str:
        result = await agent.run(prompt)
        assert result.output is not None, result
        return result.output

    return run


async def stream(agent: ToolLoopAgent, prompt: str) -> int:
    """Read a run's public events; returns how many deltas came."""
    seen = 0
    async with agent.start(prompt) as run:
        async for event in run:
            if type(event) is TextDelta:
                seen += 1
    return seen


class IdleSessions:
    """Sessions at rest in one memory store, as real runs leave them there."""

    def __init__(self) -> None:
        self._plan = SessionPlan()
        self.store = MemoryRunStore()
        self._agent = ToolLoopAgent(
            PlannedModel(self._plan), tools=[adding_tool(self._plan)], store=self.store
        )

    async def add(self, number: int) -> str:
        """Three runs: (user, call, result, text) twice, then (user, text)."""
        session = f"session-{number}"
        plan = self._plan
        plan.number = number
        for turn in range(3):
            plan.turn = turn
            prompt = f"question {number} {turn}"
            result = await self._agent.run(prompt, session=session)
            assert result.output == f"answer {number} {turn}", result
        return session

    def add_now(self, number: int) -> str:
        """`add` for a caller that cannot await, inside a running event loop.

        Neither this model nor this store ever suspends, so one push runs it to the end.
        """
        return run_through(self.add(number))


def run_through(coroutine: Coroutine[Any, Any, str]) -> str:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return str(done.value)
    coroutine.close()
    raise RuntimeError("the coroutine suspended")
