"""A caller's limits beside the agent's: they may lower them, never raise them."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from agentcore.types.policy import Budget

_NUMBERS: Final = (
    "requests",
    "turns",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cost_usd",
    "tool_calls",
    "wall_time",
    "subruns",
)


def lower(agents: Budget | None, callers: Budget | None) -> Budget | None:
    """The lower of both for every limit; `None`: there is none at all."""
    if agents is None or callers is None:
        return agents or callers
    changes: dict[str, Any] = {}
    for name in _NUMBERS:
        both = [getattr(budget, name) for budget in (agents, callers)]
        given = [limit for limit in both if limit is not None]
        changes[name] = min(given) if given else None
    per_tool = dict(agents.per_tool)
    for tool, limit in callers.per_tool.items():
        per_tool[tool] = min(limit, per_tool.get(tool, limit))
    return dataclasses.replace(agents, per_tool=per_tool, **changes)
