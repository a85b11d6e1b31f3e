"""A model request, what streams back, and the response it ends with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.content import AssistantPart, FilePart, ToolCallPart, join_text
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.messages import Message
from agentcore.types.options import NO_OPTIONS, Options
from agentcore.types.tools import ToolSpec
from agentcore.types.usage import Usage

Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "other"]
"""Why the model stopped, mapped from the vendor's word."""


@frozen
class ModelCapabilities:
    """What a model can take and give. The engine never downgrades silently."""

    tools: bool = True
    parallel_tool_calls: bool = True
    json_schema: bool = False
    """Follows a JSON Schema natively."""
    images: bool = False
    audio: bool = False
    files: bool = False
    thinking: bool = False
    context_window: int | None = None
    """Tokens; `None` where it is not known."""
    max_output_tokens: int | None = None
    kind: Literal["capabilities"] = "capabilities"


@frozen
class OutputSchema:
    """The answer must be JSON of this schema (native structured output)."""

    name: str
    json_schema: JsonObject
    description: str = ""
    strict: bool = True
    kind: Literal["output_schema"] = "output_schema"


@frozen
class ModelRequest:
    """One request, complete: a pure function of the journal and the configuration."""

    messages: Sequence[Message]
    """The projected history. Treat it as read-only; it is shared, not copied."""
    instructions: str = ""
    """System prompt; empty for none."""
    tools: tuple[ToolSpec, ...] = ()
    options: Options = NO_OPTIONS
    output: OutputSchema | None = None
    session_id: str = ""
    request_id: str = ""
    attempt: int = 1
    """1 for the first try of this request."""
    kind: Literal["model_request"] = "model_request"


@frozen
class ModelResponse:
    """What the model answered. Unknown usage is `None`."""

    content: tuple[AssistantPart, ...]
    finish: Finish = "stop"
    usage: Usage | None = None
    model: str | None = None
    """The model that answered, as the vendor names it."""
    request_id: str | None = None
    """The vendor's id of this request, for support."""
    rate_limits: JsonObject = EMPTY
    """Rate-limit headers of the response, as sent."""
    meta: JsonObject = EMPTY
    kind: Literal["model_response"] = "model_response"

    @property
    def text(self) -> str:
        """The text parts, joined as they were streamed."""
        return join_text(self.content, "")

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The calls, in source order."""
        return tuple(p for p in self.content if type(p) is ToolCallPart)


@frozen
class TextDelta:
    """A piece of the reply, as it arrived."""

    text: str
    kind: Literal["text_delta"] = "text_delta"


@frozen
class ThinkingDelta:
    """A piece of the model's reasoning."""

    text: str
    kind: Literal["thinking_delta"] = "thinking_delta"


@frozen
class ToolInputStarted:
    """The model begins a call; `index` counts the calls of this reply from 0."""

    index: int
    name: str
    provider_call_id: str = ""
    kind: Literal["tool_input_started"] = "tool_input_started"


@frozen
class ToolInputDelta:
    """A piece of the call's argument text."""

    index: int
    text: str
    kind: Literal["tool_input_delta"] = "tool_input_delta"


@frozen
class ToolInputReady:
    """The call's arguments are complete. It is not started before the reply ends."""

    index: int
    name: str
    arguments: str
    provider_call_id: str = ""
    kind: Literal["tool_input_ready"] = "tool_input_ready"


@frozen
class FileReady:
    """The model made a file or an image."""

    part: FilePart
    kind: Literal["file_ready"] = "file_ready"


@frozen
class ResponseDone:
    """The last delta of every complete stream: the whole response."""

    response: ModelResponse
    kind: Literal["response_done"] = "response_done"


ModelDelta: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolInputStarted
    | ToolInputDelta
    | ToolInputReady
    | FileReady
    | ResponseDone
)
