"""Records of tool calls: planned, started, ended."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.content import BlobRef, CallStatus, Effect, ResultPart
from agentcore.types.json import EMPTY, JsonObject, JsonValue
from agentcore.types.tools import Effects, Replay, ToolSpec


@frozen
class ToolsAdvertised:
    """The tools the model is offered from here on; written once per change."""

    digest: str
    specs: tuple[ToolSpec, ...]
    kind: Literal["tools.advertised"] = "tools.advertised"
    extra: JsonObject = EMPTY


@frozen
class ToolPlanned:
    """The model asked for a call; it has not started."""

    call_id: str
    req_id: str
    index: int
    name: str
    args_hash: str = ""
    """Hash of the canonical arguments; empty where they are no JSON object."""
    provider_call_id: str = ""
    error: str = ""
    """Why the arguments could not be read."""
    kind: Literal["tool.planned"] = "tool.planned"
    extra: JsonObject = EMPTY


@frozen
class ToolIntent:
    """Written before the call may have any effect."""

    call_id: str
    tool: str
    args_hash: str
    effects: Effects = "external"
    replay: Replay = "never"
    arguments: JsonObject | None = None
    """Only where a decision changed them."""
    version: str = ""
    process_group: str = ""
    kind: Literal["tool.intent"] = "tool.intent"
    extra: JsonObject = EMPTY


@frozen
class ToolCheckpoint:
    """Progress of a running call (`tool.progress`): output so far, child processes."""

    call_id: str
    output: str = ""
    pgid: int | None = None
    started: float | None = None
    """Start time of the process group's leader, to tell it from a reused id."""
    kind: Literal["tool.progress"] = "tool.progress"
    extra: JsonObject = EMPTY


@frozen
class ToolOutcome:
    """How a planned call ended: exactly one per call."""

    call_id: str
    status: CallStatus
    effect: Effect = "none"
    content: tuple[ResultPart, ...] = ()
    cause: str = ""
    """The cancel, epoch or reason behind a status other than `ok`."""
    full: BlobRef | None = None
    """The whole text, where `content` was shortened."""
    structured: JsonValue = None
    meta: JsonObject = EMPTY
    kind: Literal["tool.outcome"] = "tool.outcome"
    extra: JsonObject = EMPTY


@frozen
class ToolLateResult:
    """A call returned after its outcome was written as unknown; annotation only."""

    call_id: str
    content: tuple[ResultPart, ...] = ()
    kind: Literal["tool.late_result"] = "tool.late_result"
    extra: JsonObject = EMPTY
