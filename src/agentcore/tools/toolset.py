"""Collections of tools: named ones for hosts, and the check an agent makes of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias, cast

from typing_extensions import override

from agentcore.errors import ConfigError
from agentcore.protocols.tools import SyncTool, Tool
from agentcore.tools._options import check_name
from agentcore.tools.function import FunctionTool, as_tool
from agentcore.types.tools import ToolSpec

ToolLike: TypeAlias = "Tool | Toolset | Callable[..., Any]"
"""What `tools=` takes: tools, plain typed functions and toolsets."""


class Toolset:
    """An immutable collection of tools, optionally under a common prefix.

    Args:
        items: Tools, plain typed functions and toolsets.
        prefix: Put before every name, as in `git_` for `git_log`.
        name: How messages call it; the prefix, or `tools`, by default.

    Raises:
        ConfigError: something is no tool, or two tools share a name.
    """

    __slots__ = ("name", "tools")

    def __init__(
        self, items: Iterable[ToolLike], *, prefix: str = "", name: str = ""
    ) -> None:
        tools = collect_tools(items)
        if prefix:
            tools = tuple(_renamed(tool, prefix + tool.spec.name) for tool in tools)
        self.tools: tuple[Tool, ...] = tools
        self.name: str = name or prefix.rstrip("_-") or "tools"

    def filtered(self, names: Collection[str]) -> Toolset:
        """Only the tools of these names, in their present order.

        Raises:
            ConfigError: the toolset has no tool of one of the names.
        """
        wanted = {names} if isinstance(names, str) else set(names)
        have = {tool.spec.name for tool in self.tools}
        if missing := sorted(wanted - have):
            raise ConfigError(
                f"{self!r} has no tool named {', '.join(map(repr, missing))}; it has "
                f"{', '.join(sorted(have)) or 'none'}"
            )
        kept = [tool for tool in self.tools if tool.spec.name in wanted]
        return Toolset(kept, name=self.name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    @override
    def __repr__(self) -> str:
        return f"<toolset {self.name!r} of {len(self.tools)}>"


def collect_tools(items: Iterable[ToolLike]) -> tuple[Tool, ...]:
    """All tools of a `tools=` argument, in order, plain functions made into tools.

    Raises:
        ConfigError: something is no tool, or two tools share a name; both are named.
    """
    given: Any = items
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"tools= takes a list of tools, not {given!r}; use [ … ]")
    found: dict[str, Tool] = {}
    for item in items:
        for tool in item.tools if isinstance(item, Toolset) else (_one(item),):
            name = tool.spec.name
            if name in found:
                raise ConfigError(
                    f"two tools are named {name!r}: {_origin(found[name])} and "
                    f'{_origin(tool)}; rename one with @tool(name="…") or put one in '
                    'a Toolset(…, prefix="…")'
                )
            found[name] = tool
    return tuple(found.values())


def _one(item: Any) -> Tool:
    if isinstance(item, FunctionTool):
        return item
    # Classes have the attributes of their instances: `tools=[MyTool]` is a slip.
    if not isinstance(item, type):
        # The attribute first: a protocol check costs some µs, most items are functions.
        if hasattr(item, "spec") and isinstance(item, Tool):
            return _foreign(item)
        if callable(item):
            return as_tool(item)
    raise ConfigError(
        f"tools= holds {item!r}, which is no tool; pass a @tool function, a typed "
        "function, a Toolset, or an object with spec, check and call"
    )


def _foreign(item: Tool) -> Tool:
    spec: Any = item.spec
    if not isinstance(spec, ToolSpec):
        raise ConfigError(f"{_origin(item)}.spec is {spec!r}; it must be a ToolSpec")
    check_name(spec.name, _origin(item))
    return item


def _origin(tool: Tool) -> str:
    if isinstance(tool, FunctionTool | _Renamed):
        return repr(tool)
    return f"{type(tool).__module__}.{type(tool).__qualname__}"


def _renamed(tool: Tool, name: str) -> Tool:
    if isinstance(tool, FunctionTool):
        return tool.renamed(name)
    return _Renamed(tool, name)


class _Renamed:
    """A foreign tool under another name."""

    def __init__(self, tool: Tool, name: str) -> None:
        self.spec = dataclasses.replace(
            cast("Any", tool.spec), name=check_name(name, _origin(tool))
        )
        # The methods themselves: a renamed tool costs nothing per call.
        self.check = tool.check
        self.call = tool.call
        if isinstance(tool, SyncTool):
            self.call_sync = tool.call_sync
        self._origin = _origin(tool)

    @override
    def __repr__(self) -> str:
        return f"<tool {self.spec.name!r}: {self._origin}>"


__all__ = ["ToolLike", "Toolset", "collect_tools"]
