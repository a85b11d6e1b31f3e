"""A model's reply: kept while it streams, and looked at before it goes on record."""

from __future__ import annotations

from typing import Any, Final

from agentcore._base.describe import type_name
from agentcore._base.surrogates import clean
from agentcore._engine.owner import Owner
from agentcore.types import records as r
from agentcore.types.content import (
    AssistantPart,
    AudioPart,
    FilePart,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from agentcore.types.json import Unknown
from agentcore.types.model import ModelRequest, ModelResponse
from agentcore.types.records.model import ModelStatus
from agentcore.types.usage import Usage

_PARTIAL_CHARS: Final = 4096
_PARTIAL_SECONDS: Final = 1.0
_TEXTS: Final[dict[type, tuple[str, ...]]] = {
    TextPart: ("text",),
    ThinkingPart: ("text",),
    ToolCallPart: ("name", "arguments", "provider_call_id"),
    ImagePart: (),
    AudioPart: (),
    FilePart: (),
    Unknown: (),
}
"""The parts a reply may hold, and their fields that must be text."""


def checked(response: Any, model_id: str) -> ModelResponse:
    """The response, if it is one.

    Raises:
        TypeError: the model object is defective; the message says where.
    """
    defect = _defect_of(response)
    if defect:
        raise TypeError(f"{model_id}: {defect}")
    whole: ModelResponse = response
    return whole


def _defect_of(response: Any) -> str:
    if type(response) is not ModelResponse:
        return f"the response is {type_name(response)}, not a ModelResponse"
    if type(response.content) is not tuple:
        return f"its content is {type_name(response.content)}, not a tuple of parts"
    for part in response.content:
        texts = _TEXTS.get(type(part))
        if texts is None:
            return f"its content holds {type_name(part)}, which is no part of a reply"
        for name in texts:
            value = getattr(part, name)
            if type(value) is not str:
                return f"{type_name(part)}.{name} is {type_name(value)}, not str"
    usage = response.usage
    if usage is not None and type(usage) is not Usage:
        return f"its usage is {type_name(usage)}, not a Usage"
    return ""


def cleaned(part: AssistantPart) -> AssistantPart:
    """The part with text that every store and every vendor can take."""
    if type(part) is TextPart and not part.text.isascii():
        return TextPart(clean(part.text))
    return part


def status_of(response: ModelResponse, has_calls: bool) -> tuple[ModelStatus, str]:
    """How the request ended, and why it counts as failed if it does."""
    finish = response.finish
    if finish == "content_filter":
        # Whatever came through is not the answer, and its calls are not the plan.
        return "error", "ContentFiltered: the vendor withheld the reply"
    if has_calls:
        return ("length" if finish == "length" else "ok"), ""
    if finish == "tool_calls":
        return "empty", "the reply announced a tool call and held none"
    for part in response.content:
        if type(part) is ThinkingPart:
            continue
        if type(part) is not TextPart or not _is_blank(part.text):
            return ("length" if finish == "length" else "ok"), ""
    return "empty", ""


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


class Partial:
    """Keeps what has streamed on record, so that a crash loses little of it.

    An increment is written once 4 KB more have come, at most one for each turn of the
    event loop the stream takes; small replies leave none (run semantics 2.2).
    """

    __slots__ = ("_due", "_kept", "_owner", "_request")

    def __init__(self, owner: Owner, request: ModelRequest) -> None:
        self._owner = owner
        self._request = request
        self._kept = 0
        """Pieces that are on record."""
        self._due = owner.now() + _PARTIAL_SECONDS

    async def keep(self, pieces: list[str]) -> None:
        owner = self._owner
        writer = owner.writer
        now = owner.now()
        fresh = "".join(pieces[self._kept :])
        if not writer.kept or not fresh:
            return
        if len(fresh) < _PARTIAL_CHARS and now < self._due:
            return
        self._kept = len(pieces)
        self._due = now + _PARTIAL_SECONDS
        await writer.turn()
        request = self._request
        writer.stage(r.ModelPartial(request.request_id, request.attempt, clean(fresh)))
        await writer.commit()
