"""Records of model requests."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.content import AssistantPart, BlobRef
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.model import Finish
from agentcore.types.usage import Usage

Purpose: TypeAlias = Literal["main", "compaction", "wrapup"]

ModelStatus: TypeAlias = Literal["ok", "length", "empty", "error", "aborted", "unknown"]


@frozen
class ModelIntent:
    """Written before a request leaves.

    The prompt is not stored: `head_seq` names the prefix of the journal it is the
    projection of, and `prompt_digest` proves it (invariant I4).
    """

    req_id: str
    attempt: int
    head_seq: int
    prompt_digest: str
    model: str
    purpose: Purpose = "main"
    options: JsonObject = EMPTY
    """Only what differs from the run's settings."""
    prepared: JsonObject | BlobRef | None = None
    """What was added to this request alone: nudges, turn context."""
    tools_digest: str = ""
    reservation_id: str = ""
    kind: Literal["model.intent"] = "model.intent"
    extra: JsonObject = EMPTY


@frozen
class ModelPartial:
    """What had streamed so far; an increment, at most one a second or per 4 KB."""

    req_id: str
    attempt: int
    text: str
    kind: Literal["model.partial"] = "model.partial"
    extra: JsonObject = EMPTY


@frozen
class ModelOutcome:
    """How a request ended. The raw arguments of every call live here, once."""

    req_id: str
    attempt: int
    status: ModelStatus
    content: tuple[AssistantPart, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None
    model: str | None = None
    error: str = ""
    """`Type: message` of what went wrong."""
    retryable: bool = False
    request_id: str | None = None
    """The vendor's id of the request."""
    kind: Literal["model.outcome"] = "model.outcome"
    extra: JsonObject = EMPTY


@frozen
class OutputRejected:
    """The final answer did not fit the `output_type`; the errors go to the model."""

    req_id: str
    errors: str
    round: int
    kind: Literal["output.rejected"] = "output.rejected"
    extra: JsonObject = EMPTY
