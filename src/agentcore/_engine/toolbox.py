"""The tools a run offers: listed once, filtered, and known by digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentcore._base.canonical import digest
from agentcore._base.describe import type_name
from agentcore._base.frozen import frozen
from agentcore._engine.deps import RunSetup, Setup
from agentcore.errors import ConfigError
from agentcore.types.codec import dump_json
from agentcore.types.options import NamedTool
from agentcore.types.tools import OUTPUT_TOOL, ToolSpec


@frozen
class Toolbox:
    """What is advertised, in the order the executor lists it."""

    specs: tuple[ToolSpec, ...]
    by_name: dict[str, ToolSpec]
    digest: str


async def open_toolbox(setup: Setup, run: RunSetup) -> Toolbox:
    """Ask the executor what it offers now.

    Raises:
        ConfigError: two tools share a name, one has the reserved name, or the run's
            filter or choice names one there is not.
    """
    listed = await setup.executor.list_tools()
    toolbox = _known(setup, listed, run)
    _check_choice(setup, run, toolbox)
    return toolbox


def _known(setup: Setup, listed: Sequence[ToolSpec], run: RunSetup) -> Toolbox:
    known = setup.advertised
    if run.tools_filter is None and known is not None and known[0] is listed:
        toolbox: Toolbox = known[1]
        return toolbox
    toolbox = _build(setup, listed, run.tools_filter)
    if run.tools_filter is None:
        setup.advertised = (listed, toolbox)
    return toolbox


def _check_choice(setup: Setup, run: RunSetup, toolbox: Toolbox) -> None:
    """What the request will ask of the model must be something it can do."""
    model = setup.model
    if toolbox.specs and not model.capabilities.tools:
        raise ConfigError(f"{model.id} takes no tools, and the agent has some")
    choice = run.options.over(setup.options).tool_choice
    if isinstance(choice, NamedTool):
        names = [spec.name for spec in toolbox.specs]
        if choice.name not in names:
            raise ConfigError(
                f"tool_choice names {choice.name!r}, which is not offered; "
                f"the tools are: {', '.join(names) or 'none'}"
            )
    elif choice == "required" and not toolbox.specs:
        raise ConfigError("tool_choice is 'required', and there are no tools")


def _build(
    setup: Setup, listed: Sequence[ToolSpec], wanted: frozenset[str] | None
) -> Toolbox:
    for spec in listed:
        _check(spec)
    output = setup.output.tool if setup.output is not None else None
    if wanted:
        _check_filter(wanted, listed if output is None else (*listed, output))
    specs = [s for s in listed if wanted is None or s.name in wanted]
    by_name: dict[str, ToolSpec] = {}
    for spec in specs:
        if spec.name == OUTPUT_TOOL:
            raise ConfigError(
                f"the tool name {OUTPUT_TOOL!r} is reserved for structured output; "
                "rename the tool"
            )
        if spec.name in by_name:
            raise ConfigError(
                f"two tools are named {spec.name!r} (from {by_name[spec.name].source} "
                f"and {spec.source}); rename one or give its toolset a prefix"
            )
        by_name[spec.name] = spec
    if output is not None:
        specs.append(output)
    return Toolbox(tuple(specs), by_name, _digest(specs))


def _check_filter(wanted: frozenset[str], offered: Sequence[ToolSpec]) -> None:
    """A filter narrows: a name nobody offers is a mistake that would hide a tool."""
    names = [spec.name for spec in offered]
    unknown = sorted(wanted.difference(names))
    if unknown:
        raise ConfigError(
            f"tools_filter names {', '.join(map(repr, unknown))}, which nobody offers; "
            f"the tools are: {', '.join(names) or 'none'}"
        )


def _check(spec: Any) -> None:
    """A foreign executor's declaration, before anything is made of it."""
    if type(spec) is not ToolSpec:
        raise ConfigError(f"the executor lists {type_name(spec)}, not a ToolSpec")
    name = spec.name
    if type(name) is not str or not name:
        raise ConfigError(f"the executor lists a tool of name {name!r}")
    if not isinstance(spec.timeout, (int, float)) or not spec.timeout > 0:
        raise ConfigError(f"tool {name!r}: timeout must be more than 0 seconds")
    if not isinstance(spec.output_cap, int) or spec.output_cap <= 0:
        raise ConfigError(f"tool {name!r}: output_cap must be a positive int")


def _digest(specs: Sequence[ToolSpec]) -> str:
    return digest(b"\n".join(dump_json(spec) for spec in specs)) if specs else ""
