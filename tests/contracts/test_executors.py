"""The executors keep to the executor's contract."""

import json
from types import TracebackType
from typing import Any, Self

import anyio
import pytest
from typing_extensions import override

from agentcore.errors import NotFound
from agentcore.executors.local import LocalToolExecutor
from agentcore.protocols.tools import ToolExecutor
from agentcore.testing.contracts import ToolExecutorContract
from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import ToolCall, ToolResult, ToolSpec

Example = tuple[str, dict[str, Any]]


class TinyExecutor:
    """The least an executor can be."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> list[ToolSpec]:
        return [ToolSpec(n, f"{n}s", {"type": "object"}) for n in ("echo", "sleep")]

    async def execute(self, call: ToolCall, context: ToolContext[Any]) -> ToolResult:
        if call.name == "sleep":
            await anyio.sleep_forever()
        if call.name != "echo":
            raise NotFound(call.name)
        return ToolResult.of_text(str(call.arguments["text"]))


class TestTinyExecutor(ToolExecutorContract):
    @pytest.fixture
    @override
    def executor(self) -> ToolExecutor:
        return TinyExecutor()

    @pytest.fixture
    @override
    def example(self) -> Example:
        return "echo", {"text": "hi"}

    @pytest.fixture
    @override
    def slow_example(self) -> Example:
        return "sleep", {}


class TinyTool:
    """The least a tool can be."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name, f"{name}s", {"type": "object"})

    def check(self, arguments: str) -> dict[str, Any]:
        return dict(json.loads(arguments))

    async def call(
        self, arguments: JsonObject, context: ToolContext[Any]
    ) -> ToolResult:
        call = ToolCall(context.call.id, self.spec.name, arguments)
        return await TinyExecutor().execute(call, context)


class TestLocalToolExecutor(TestTinyExecutor):
    @pytest.fixture
    @override
    def executor(self) -> ToolExecutor:
        return LocalToolExecutor([TinyTool("echo"), TinyTool("sleep")])
