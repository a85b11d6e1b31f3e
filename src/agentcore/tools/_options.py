"""What a host may declare of a tool, checked when it is declared."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypedDict, cast, get_args

from agentcore._base.surrogates import clean
from agentcore.errors import ConfigError
from agentcore.types.json import JsonObject
from agentcore.types.tools import Effects, Replay, ToolSpec, Use

_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")


class ToolOptions(TypedDict, total=False):
    """The keywords of `@tool`. What is left out is taken for the riskier case."""

    name: str
    """What the model calls it; the function's name by default."""
    description: str
    """What the model reads; the docstring's prose by default."""
    effects: Effects
    """What it may touch: `none`, `local` or `external` (default)."""
    replay: Replay
    """Whether a second run is harmless: `safe` or `never` (default)."""
    parallel: bool
    """May run beside other parallel tools of the same batch."""
    timeout: float
    """Seconds, 60 by default."""
    output_cap: int
    """Characters of a result shown to the model, 50,000 by default."""
    approval: Literal["auto", "ask"]
    """`auto` (default): the permission policy decides. `ask`: somebody must say yes."""
    uses: Collection[Use]
    """What it needs: `fs_read`, `fs_write`, `network`, `exec`; empty by default."""
    fallback: bool
    """May run locally when the remote surely never ran it."""
    on_fatal: Literal["continue", "end"]
    """`end`: a fatal error of it ends the run."""
    polling: bool
    """Equal calls with equal results are expected."""
    version: str
    available_in_plan_mode: bool
    risk: Literal["low", "medium", "high"]


_MAX_SECONDS = 10 * 365 * 86_400
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "effects": get_args(Effects),
    "replay": get_args(Replay),
    "approval": ("auto", "ask"),
    "on_fatal": ("continue", "end"),
    "risk": ("low", "medium", "high"),
}
_TYPES: Final[Mapping[str, type]] = {
    "name": str,
    "description": str,
    "version": str,
    "parallel": bool,
    "fallback": bool,
    "polling": bool,
    "available_in_plan_mode": bool,
}


def check_name(name: str, owner: str) -> str:
    """Give back a name that every vendor accepts.

    Raises:
        ConfigError: it is none; `owner` says whose name it was.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{owner}: {name!r} is no legal tool name; use a letter, then at most 63 "
            'letters, digits, "_" or "-" (@tool(name="…") sets another name)'
        )
    return name


def make_spec(
    owner: str, name: str, prose: str, parameters: JsonObject, options: ToolOptions
) -> ToolSpec:
    """Check the options and build the spec.

    Args:
        owner: The function, as messages name it.
        name: The name if the options give none.
        prose: The description if the options give none.
        parameters: JSON Schema of the arguments.
        options: What the host declared.

    Raises:
        ConfigError: an option is unknown, of a wrong type or against the rules.
    """
    given = dict(cast("Mapping[str, Any]", options))
    for option, value in given.items():
        _check_option(owner, option, value)
    uses = frozenset(given.pop("uses", ()))
    name = check_name(given.pop("name", name), owner)
    description = given.pop("description", prose).strip()
    if clean(description) != description:
        raise ConfigError(f"{owner}: the description holds half a character")
    if not description:
        raise ConfigError(
            f"{owner} has no description: write a docstring that tells the model what "
            'it does, or pass @tool(description="…")'
        )
    spec = ToolSpec(name, description, parameters, uses=uses, **given)
    if spec.fallback and (uses or spec.effects != "none"):
        raise ConfigError(
            f"{owner}: fallback=True needs effects='none' and empty uses (it declares "
            f"effects={spec.effects!r}, uses={sorted(uses)}); drop fallback, or write "
            "an executor of your own that falls back"
        )
    return spec


def _check_option(owner: str, option: str, value: Any) -> None:
    expected = _expectation(option, value)
    if expected:
        raise ConfigError(f"{owner}: {option}={value!r} is wrong; {expected}")


def _expectation(option: str, value: Any) -> str:
    """What the option should have been; empty where it is right."""
    if option in _CHOICES:
        fits = isinstance(value, str) and value in _CHOICES[option]
        expected = f"use one of {', '.join(map(repr, _CHOICES[option]))}"
    elif option in _TYPES:
        fits = isinstance(value, _TYPES[option])
        expected = f"use a {_TYPES[option].__name__}"
    elif option == "timeout":
        fits = type(value) in (int, float) and 0 < value <= _MAX_SECONDS
        expected = "use a finite number of seconds above 0"
    elif option == "output_cap":
        fits = type(value) is int and value > 0
        expected = "use a whole number of characters above 0"
    elif option == "uses":
        uses = get_args(Use)
        fits = isinstance(value, Collection) and not isinstance(value, str | bytes)
        fits = fits and all(use in uses for use in value)
        expected = f"use a set of {', '.join(map(repr, uses))}"
    else:
        known = sorted(ToolOptions.__annotations__)
        return f"there is no such option, only {', '.join(known)}"
    return "" if fits else expected
