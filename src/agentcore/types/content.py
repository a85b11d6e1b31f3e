"""Parts of a message: text, media, thinking, tool calls and their results."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.json import EMPTY, JsonObject, Unknown

CallStatus: TypeAlias = Literal[
    "ok",
    "error",
    "denied",
    "invalid_args",
    "unavailable",
    "duplicate",
    "not_started",
    "cancelled",
    "unknown",
]
"""How a tool call ended. `unknown` means it may or may not have run to its end."""

Effect: TypeAlias = Literal["none", "done", "unknown"]
"""What a call may have done to the world."""


@frozen
class BlobRef:
    """Names stored bytes by their content; the bytes live in the `RunStore`."""

    hash: str
    """BLAKE2b of the content, hex."""
    size: int
    """Bytes."""
    media_type: str = "application/octet-stream"
    kind: Literal["blob"] = "blob"
    extra: JsonObject = EMPTY


@frozen
class TextPart:
    """Plain text."""

    text: str
    kind: Literal["text"] = "text"
    extra: JsonObject = EMPTY


@frozen
class ThinkingPart:
    """Reasoning a model showed. `signature` and `data` go back to the vendor as is."""

    text: str
    signature: str | None = None
    data: JsonObject = EMPTY
    kind: Literal["thinking"] = "thinking"
    extra: JsonObject = EMPTY


@frozen
class ImagePart:
    """An image: exactly one of `data` (bytes), `url` or `blob` is set."""

    media_type: str
    data: bytes | None = None
    url: str | None = None
    blob: BlobRef | None = None
    detail: Literal["auto", "low", "high"] = "auto"
    kind: Literal["image"] = "image"
    extra: JsonObject = EMPTY


@frozen
class AudioPart:
    """Sound: exactly one of `data` (bytes), `url` or `blob` is set."""

    media_type: str
    data: bytes | None = None
    url: str | None = None
    blob: BlobRef | None = None
    kind: Literal["audio"] = "audio"
    extra: JsonObject = EMPTY


@frozen
class FilePart:
    """A document: exactly one of `data` (bytes), `url` or `blob` is set."""

    name: str
    media_type: str
    data: bytes | None = None
    url: str | None = None
    blob: BlobRef | None = None
    kind: Literal["file"] = "file"
    extra: JsonObject = EMPTY


@frozen
class ToolCallPart:
    """A call the model asked for. `arguments` is the JSON text exactly as it came."""

    name: str
    arguments: str
    call_id: str = ""
    """Minted by the host; empty only until the call is planned."""
    provider_call_id: str = ""
    """The vendor's id: data to send back, never a key."""
    kind: Literal["tool_call"] = "tool_call"
    extra: JsonObject = EMPTY


@frozen
class ToolResultPart:
    """What a call gave back, as the model is shown it."""

    call_id: str
    name: str
    content: tuple[ResultPart, ...]
    status: CallStatus = "ok"
    provider_call_id: str = ""
    kind: Literal["tool_result"] = "tool_result"
    extra: JsonObject = EMPTY

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return join_text(self.content)


ResultPart: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | Unknown
"""What a tool may return."""

UserPart: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | Unknown
"""What a user may send."""

AssistantPart: TypeAlias = (
    TextPart | ThinkingPart | ToolCallPart | ImagePart | AudioPart | FilePart | Unknown
)
"""What a model may answer."""

Part: TypeAlias = AssistantPart | ToolResultPart


def join_text(parts: tuple[Part, ...], separator: str = "\n") -> str:
    """The text of the text parts, joined."""
    return separator.join(p.text for p in parts if type(p) is TextPart)
