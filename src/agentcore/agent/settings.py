"""Checks of an agent's settings, at construction: they name setting and fix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, Final

from agentcore._base.describe import type_name
from agentcore.agent.options import check_asks, check_budget
from agentcore.errors import ConfigError
from agentcore.protocols.tools import Tool
from agentcore.tools.toolset import collect_tools
from agentcore.types.options import Options
from agentcore.types.policy import Budget
from agentcore.types.runs import Check
from agentcore.types.tools import OUTPUT_TOOL


def check_settings(agent: Any) -> None:
    """Look at everything but the model and the tools.

    Raises:
        ConfigError: a setting has the wrong type, or does not fit its protocol.
    """
    for name, wanted in _TYPES.items():
        value = getattr(agent, name)
        if not isinstance(value, wanted) or isinstance(value, bool):
            names = " or ".join(t.__name__ for t in wanted)
            raise ConfigError(
                f"ToolLoopAgent.{name} must be {names}, not {type_name(value)}"
            )
    for name, methods in _PROTOCOLS.items():
        value = getattr(agent, name)
        if value is not None or name not in _OPTIONAL:
            _check_protocol(name, value, methods)
    for name, (fits, words) in _VALUES.items():
        if not fits(getattr(agent, name)):
            raise ConfigError(f"ToolLoopAgent.{name} must be {words}")
    decide = getattr(agent.permissions, "decide", None)
    if inspect.iscoroutinefunction(decide):
        raise ConfigError(
            "ToolLoopAgent.permissions: `decide` is async, so it would never decide; "
            "make it a plain function"
        )
    check_asks(agent.asks)
    check_budget(agent.budget)
    _check_output_type(agent.output_type)


def _check_protocol(name: str, value: Any, methods: tuple[str, ...]) -> None:
    if isinstance(value, type):
        raise ConfigError(
            f"ToolLoopAgent.{name} is the class {value.__name__}; "
            f"give an object of it: {value.__name__}(...)"
        )
    missing = [method for method in methods if not hasattr(value, method)]
    if missing:
        raise ConfigError(
            f"ToolLoopAgent.{name} has no method {missing[0]!r}: "
            f"{type_name(value)} does not fit the protocol"
        )


def _check_output_type(output_type: Any) -> None:
    if output_type is None or isinstance(output_type, (str, FunctionType)):
        raise ConfigError(
            f"output_type must be a type, not {type_name(output_type)} "
            f"{output_type!r}; use str for plain text, or a pydantic model, a "
            "dataclass, a TypedDict, or a built-in type"
        )


def checked_tools(tools: Any) -> tuple[Tool, ...]:
    """The tools of an agent.

    Raises:
        ConfigError: something is no tool, or a name is used twice or reserved.
    """
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        raise ConfigError(f"tools must be a list of tools, not {type_name(tools)}")
    collected = collect_tools(tools)
    if any(tool.spec.name == OUTPUT_TOOL for tool in collected):
        raise ConfigError(
            f"the tool name {OUTPUT_TOOL!r} is reserved for structured output; "
            "rename the tool"
        )
    return collected


def _are_sinks(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and all(hasattr(sink, "emit") and not isinstance(sink, type) for sink in value)
    )


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "name": (str,),
    "description": (str,),
    "instructions": (str,),
    "options": (Options,),
    "budget": (Budget, type(None)),
    "output_retries": (int,),
    "ask_timeout": (int, float),
}


def _are_checks(value: Any) -> bool:
    if isinstance(value, (str, Check)) or not isinstance(value, Sequence):
        return False
    named = {check.name for check in value if isinstance(check, Check)}
    return len(named) == len(value)


_VALUES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "output_mode": (lambda v: v in ("tool", "native"), "'tool' or 'native'"),
    "output_retries": (lambda v: v >= 0, "at least 0"),
    "checks": (_are_checks, "a list of Check objects, each of another name"),
    "repair_rounds": (
        lambda v: type(v) is int and v >= 0,
        "an int of at least 0",
    ),
    "on_unknown": (lambda v: v in ("pause", "continue"), "'pause' or 'continue'"),
    "ask_timeout": (lambda v: v > 0, "more than 0 seconds"),
    "sinks": (_are_sinks, "a list of objects with the method 'emit'"),
}
_OPTIONAL: Final = frozenset({"executor", "store", "permissions"})
_PROTOCOLS: Final[dict[str, tuple[str, ...]]] = {
    "executor": ("list_tools", "execute", "__aenter__", "__aexit__"),
    "store": ("create", "accept", "append", "read", "acquire", "release"),
    "permissions": ("decide",),
    "retry": ("delay", "max_attempts"),
    "clock": ("now", "monotonic", "sleep"),
    "ids": ("new",),
}
