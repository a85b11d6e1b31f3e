"""What the tests of tools share."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from agentcore.tools import FunctionTool, ToolOptions, tool
from agentcore.types.context import ToolContext
from agentcore.types.tools import ToolCall, ToolResult

T = TypeVar("T")


def context(deps: Any = None) -> ToolContext[Any]:
    """A context of which a tool reads `deps` and `call` only."""
    nothing = cast("Any", None)
    return ToolContext(deps, ToolCall("call_1", "t", {}), nothing, nothing)


def made(function: Callable[..., Any], **options: Any) -> FunctionTool[..., Any]:
    """The tool of a function that need not document itself."""
    given = cast("ToolOptions", {"description": "Does it.", **options})
    return tool(function, **given)


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    return dict(made(function).spec.parameters)


async def run(
    function: Callable[..., Any], arguments: str = "{}", deps: Any = None
) -> ToolResult:
    """Check and call, as an engine does."""
    it = function if isinstance(function, FunctionTool) else made(function)
    return await it.call(it.check(arguments), context(deps))
