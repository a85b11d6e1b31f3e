"""The contracts of tools and of what executes them."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import ToolCall, ToolResult, ToolSpec


@runtime_checkable
class Tool(Protocol):
    """A single tool that runs in this process."""

    @property
    def spec(self) -> ToolSpec:
        """What it declares."""
        ...

    def check(self, arguments: str) -> JsonObject:
        """Parse and validate the model's JSON text, without running anything.

        Raises:
            InvalidArguments: the text does not fit the schema.
        """
        ...

    async def call(
        self, arguments: JsonObject, context: ToolContext[Any]
    ) -> ToolResult:
        """Run it.

        Any exception is told to the model; it does not mean that nothing happened.
        Must let cancellation through.
        """
        ...


@runtime_checkable
class SyncTool(Tool, Protocol):
    """A tool whose work blocks: whoever runs it may give it a thread of its own."""

    def call_sync(self, arguments: JsonObject, context: ToolContext[Any]) -> ToolResult:
        """As `call`, in the calling thread, which must not be an event loop's."""
        ...


@runtime_checkable
class ToolExecutor(Protocol):
    """Runs tool calls somewhere: in this process, in a child, on a server."""

    async def __aenter__(self) -> Any:
        """Open connections and pools. Entered once per event loop, then shared."""
        ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Close them, in any task and in any order with other executors."""
        ...

    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        """The tools it offers now; may depend on who is served.

        Raises:
            Unavailable: they cannot be told right now.
        """
        ...

    async def execute(self, call: ToolCall, context: ToolContext[Any]) -> ToolResult:
        """Run one call to its end.

        Raises:
            Unavailable: the call surely never ran. Raise it for nothing else: callers
                run the call elsewhere on the strength of it.
            InvalidArguments, NotFound: the call never ran.
            ToolError: it failed; `effect` tells what it may have done.
        """
        ...


@runtime_checkable
class ChecksArguments(Protocol):
    """An executor that can validate arguments before anything is journaled."""

    def check(self, name: str, arguments: str) -> JsonObject:
        """Parse and validate the JSON text of a call of tool `name`.

        Raises:
            InvalidArguments: the text does not fit; the message is for the model.
            NotFound: no such tool here.
        """
        ...
