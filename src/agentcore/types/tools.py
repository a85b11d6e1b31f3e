"""What a tool declares, a call of it, and its result."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.content import (
    BlobRef,
    CallStatus,
    Effect,
    ResultPart,
    TextPart,
    join_text,
)
from agentcore.types.json import EMPTY, JsonObject

Effects: TypeAlias = Literal["none", "local", "external"]
"""What a tool may touch: nothing, this machine, or the world beyond it."""

Replay: TypeAlias = Literal["safe", "never"]
"""Whether running a call a second time is harmless."""

Use: TypeAlias = Literal["fs_read", "fs_write", "network", "exec"]

FailureKind: TypeAlias = Literal["retryable", "policy_denied", "fatal"]

DEFAULT_TIMEOUT = 60.0
"""Seconds a tool call may take."""
DEFAULT_OUTPUT_CAP = 50_000
"""Characters of a result the model is shown (requirements B16)."""
OUTPUT_TOOL: Final = "final_result"
"""The reserved tool a model gives its structured output through."""


@frozen
class ToolSpec:
    """A tool as the model and the engine know it.

    The declarations are conservative: what a tool does not state is taken for the
    riskier case.
    """

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of an object."""
    effects: Effects = "external"
    replay: Replay = "never"
    parallel: bool = False
    """May run beside other parallel tools of the same batch."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds."""
    output_cap: int = DEFAULT_OUTPUT_CAP
    """Characters shown to the model; the whole text is kept by reference."""
    approval: Literal["auto", "ask"] = "auto"
    """`auto`: the permission policy decides. `ask`: somebody must say yes."""
    uses: frozenset[Use] = frozenset()
    fallback: bool = False
    """May run locally when the remote surely never ran it."""
    on_fatal: Literal["continue", "end"] = "continue"
    polling: bool = False
    """Equal calls with equal results are expected, not a sign of a stuck model."""
    available_in_plan_mode: bool = True
    risk: Literal["low", "medium", "high"] = "low"
    version: str = ""
    source: str = "host"
    """Who offers it: `host`, `builtin`, or the name of a server."""
    kind: Literal["tool_spec"] = "tool_spec"
    extra: JsonObject = EMPTY


@frozen
class ToolCall:
    """One call to be executed: arguments parsed, and checked where possible."""

    id: str
    name: str
    arguments: JsonObject
    replay: Replay = "never"
    timeout: float = DEFAULT_TIMEOUT
    kind: Literal["tool_call"] = "tool_call"


@frozen
class ToolFailure:
    """Why a call failed, in words the model can use."""

    category: FailureKind
    message: str
    cause: str | None = None
    """Type of the underlying exception."""
    kind: Literal["tool_failure"] = "tool_failure"


@frozen
class ToolResult:
    """What an executor gives back for a call.

    `effect=None` leaves it to the tool's declaration: a call with effects has `done`
    when it returned and `unknown` when it failed.
    """

    content: tuple[ResultPart, ...] = ()
    status: CallStatus = "ok"
    effect: Effect | None = None
    error: ToolFailure | None = None
    structured: Any = None
    """The JSON value behind the text, where the tool has one."""
    meta: JsonObject = EMPTY
    """Facts about the execution: attempts, the executor that ran it, reasons."""
    cost_usd: float | None = None
    kind: Literal["tool_result"] = "tool_result"

    @property
    def ok(self) -> bool:
        """The call ran to its end and succeeded."""
        return self.status == "ok"

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return join_text(self.content)

    @classmethod
    def of_text(cls, text: str) -> ToolResult:
        """A successful result of one text."""
        return cls((TextPart(text),))

    @classmethod
    def failed(
        cls,
        message: str,
        *,
        status: CallStatus = "error",
        category: FailureKind = "fatal",
        effect: Effect | None = None,
        cause: str | None = None,
    ) -> ToolResult:
        """A failed result whose text the model reads."""
        failure = ToolFailure(category, message, cause)
        return cls((TextPart(message),), status, effect, failure)


__all__ = [
    "DEFAULT_OUTPUT_CAP",
    "DEFAULT_TIMEOUT",
    "OUTPUT_TOOL",
    "BlobRef",
    "CallStatus",
    "Effect",
    "Effects",
    "FailureKind",
    "Replay",
    "ToolCall",
    "ToolFailure",
    "ToolResult",
    "ToolSpec",
    "Use",
]
