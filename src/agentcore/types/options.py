"""Generation options, and the merge that layers them.

Three layers: provider defaults, then what the model id implies, then what the host
asked for (requirements V3). Inside the blocks for a provider, `UNSET` erases a key of a
lower layer, `None` stays as an explicit null, mappings merge recursively, lists are
replaced. A field of `Options` that is left `UNSET` has no opinion.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from typing_extensions import override

from agentcore._base.describe import type_name
from agentcore._base.frozen import frozen
from agentcore.errors import ConfigError
from agentcore.types.json import EMPTY, JsonObject


class Unset(Enum):
    """The type of `UNSET`, which is not `None`: it means "no opinion"."""

    UNSET = "UNSET"

    @override
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""No opinion: the layer below decides. In a provider's block it erases a key."""


@frozen
class NamedTool:
    """`tool_choice`: the model must call this tool."""

    name: str
    kind: Literal["named_tool"] = "named_tool"


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool


@frozen
class Options:
    """What a host may set for a request. Unset fields leave the vendor's default.

    Raises:
        ConfigError: a field has the wrong type or is out of range.
    """

    temperature: float | Unset | None = UNSET
    top_p: float | Unset | None = UNSET
    max_tokens: int | Unset | None = UNSET
    """Most tokens to generate, reasoning included."""
    stop: tuple[str, ...] | Unset | None = UNSET
    seed: int | Unset | None = UNSET
    tool_choice: ToolChoice | Unset = UNSET
    """Holds for the first request of a run, then `auto`: a forced call never loops."""
    parallel_tool_calls: bool | Unset | None = UNSET
    provider: Mapping[str, JsonObject] = EMPTY
    """Blocks keyed by provider name, passed through as they are."""
    kind: Literal["options"] = "options"
    extra: JsonObject = EMPTY

    def __post_init__(self) -> None:
        for name, check, wanted in _CHECKS:
            value = getattr(self, name)
            if value is not UNSET and value is not None and not check(value):
                raise ConfigError(
                    f"Options.{name} must be {wanted}, not {type_name(value)} {value!r}"
                )

    def over(self, lower: Options) -> Options:
        """These options laid over `lower`; neither is changed."""
        if lower is NO_OPTIONS:
            return self
        if self is NO_OPTIONS:
            return lower
        changes: dict[str, Any] = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in _NOT_LAYERED and getattr(self, f.name) is not UNSET
        }
        changes["provider"] = merge(lower.provider, self.provider)
        return dataclasses.replace(lower, **changes)


_NOT_LAYERED = frozenset({"kind", "extra", "provider"})


def _is_number(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)  # type: ignore[arg-type]  # a number


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(v, str) for v in value)


def _is_choice(value: object) -> bool:
    return isinstance(value, NamedTool) or value in ("auto", "none", "required")


def _is_blocks(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(block, Mapping)
        for name, block in value.items()
    )


_CHECKS = (
    ("temperature", lambda v: _is_number(v) and v >= 0, "a number of at least 0"),
    ("top_p", lambda v: _is_number(v) and 0 <= v <= 1, "a number between 0 and 1"),
    ("max_tokens", _is_count, "a positive int"),
    ("stop", _is_texts, "a tuple of str"),
    ("seed", lambda v: isinstance(v, int) and not isinstance(v, bool), "an int"),
    ("tool_choice", _is_choice, "'auto', 'none', 'required' or NamedTool('name')"),
    ("parallel_tool_calls", lambda v: isinstance(v, bool), "a bool"),
    ("provider", _is_blocks, "a mapping of provider name to a mapping of options"),
)

NO_OPTIONS: Final = Options()


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge option mappings, the last one winning; the inputs stay as they are."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if value is UNSET:
                merged.pop(key, None)
            elif isinstance(value, Mapping):
                below = merged.get(key)
                base = below if isinstance(below, Mapping) else {}
                merged[key] = merge(base, value)
            elif isinstance(value, list):
                merged[key] = list(value)
            else:
                merged[key] = value
    return merged
