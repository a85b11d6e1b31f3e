"""Five tools, one of each kind a recovery treats differently, that only leave a trace.

ro     effects none, replay safe        par    as `ro`, parallel
idem   effects local, replay safe       parw   as `rw`, parallel
rw     effects external, replay never
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from agentcore.protocols.tools import Tool
from agentcore.tools import tool
from agentcore.types.context import ToolContext

Effect = Callable[[ToolContext[Any]], Awaitable[object] | object]


def effect_tools(effect: Effect) -> list[Tool]:
    """The five, each of which takes an optional `text` and gives it back.

    Args:
        effect: Called in every call where its effect would be, sync or async, with the
            call's context; `lambda context: log.add(context.call.id)` for example. What
            it raises, the tool raises.
    """
    return [
        _tool("ro", effect, effects="none", replay="safe"),
        _tool("idem", effect, effects="local", replay="safe"),
        _tool("rw", effect, effects="external", replay="never"),
        _tool("par", effect, effects="none", replay="safe", parallel=True),
        _tool("parw", effect, effects="external", replay="never", parallel=True),
    ]


def _tool(name: str, effect: Effect, **declared: Any) -> Tool:
    async def run(context: ToolContext[Any], text: str = "") -> str:
        """Leave a trace."""
        done = effect(context)
        if isawaitable(done):
            await done
        return f"{name} {text}".rstrip()

    return tool(name=name, **declared)(run)
