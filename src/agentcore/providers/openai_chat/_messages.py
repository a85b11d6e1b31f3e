"""One message to the JSON it becomes on the wire. Pure: no I/O.

A message may become several on the wire (each tool result is one), or a tool message
may be followed by a user message that carries its images, which the format has no other
place for.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic_core import PydanticSerializationError, from_json, to_json

from agentcore._base.frozen import frozen
from agentcore._base.surrogates import without_surrogates
from agentcore.errors import BadRequest
from agentcore.providers._profiles import Profile
from agentcore.types.content import (
    AudioPart,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from agentcore.types.json import Unknown
from agentcore.types.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from agentcore.types.model import ModelCapabilities

_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_AUDIO_FORMATS: Final = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
_LONGEST_ID: Final = 40
_SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}\Z")
_ILLEGAL_IN_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 64


CallIds: TypeAlias = tuple[tuple[str, str, str | None], ...]
"""The calls of a message: key, id on the wire, and the id the key had before."""


@frozen
class Fragment:
    """The JSON of one message: objects joined by commas, empty for none."""

    json: bytes
    ids: CallIds = ()

    @classmethod
    def of(
        cls,
        messages: Sequence[Mapping[str, Any]],
        ids: CallIds = (),
    ) -> Fragment:
        """Encode the wire messages that one message became."""
        return cls(b",".join(_to_json(message) for message in messages), ids)


class MessageEncoder:
    """Encodes the messages of one conversation, in order.

    It knows which call ids are taken, so that every id is unique within the request
    even where a vendor counts its calls anew in each reply.
    """

    def __init__(self, profile: Profile, capabilities: ModelCapabilities) -> None:
        self._profile = profile
        self._capabilities = capabilities
        self._wire_ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def encode(self, message: Message) -> Fragment:
        """The next message's fragment.

        Raises:
            BadRequest: it holds a part that cannot be sent; the message names it.
        """
        match message:
            case UserMessage():
                content = self._user_content(message.content)
                return Fragment.of([{"role": "user", "content": content}])
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                return self._results(message.results)
            case SystemMessage():
                return Fragment.of([{"role": "system", "content": message.text}])
            case Unknown():
                raise self._refusal(f"a message of the unknown kind {message.kind!r}")

    def forget(self, ids: CallIds) -> None:
        """Free the ids of a message that is no longer part of the conversation."""
        for key, wire_id, before in reversed(ids):
            self._taken.discard(wire_id)
            if before is None:
                del self._wire_ids[key]
            else:
                self._wire_ids[key] = before

    # --- user ---------------------------------------------------------------------

    def _user_content(self, parts: Sequence[Part]) -> str | list[Mapping[str, Any]]:
        # Plain text as a plain string: servers with a chat template often know no list.
        if all(type(part) is TextPart for part in parts):
            return "\n".join(part.text for part in parts if type(part) is TextPart)
        return [self._media(part) for part in parts]

    def _media(self, part: Part) -> Mapping[str, Any]:
        match part:
            case TextPart():
                return {"type": "text", "text": part.text}
            case ImagePart():
                return self._image(part)
            case AudioPart():
                return self._audio(part)
            case FilePart():
                return self._file(part)
            case _:
                pass
        raise self._refusal(f"a {part.kind} part in this place")

    def _image(self, part: ImagePart) -> Mapping[str, Any]:
        if not self._capabilities.images:
            raise self._refusal("images")
        url = part.url
        if url is None:
            media_type = part.media_type.lower().replace("image/jpg", "image/jpeg")
            if media_type not in _IMAGE_TYPES:
                raise self._refusal(f"images of type {part.media_type}")
            url = _data_url(media_type, self._bytes_of(part))
        image = {"url": url}
        if part.detail != "auto":
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}

    def _audio(self, part: AudioPart) -> Mapping[str, Any]:
        if not self._capabilities.audio:
            raise self._refusal("audio")
        name = _AUDIO_FORMATS.get(part.media_type.lower())
        if name is None or part.url is not None:
            raise self._refusal("audio other than WAV or MP3 bytes")
        data = base64.b64encode(self._bytes_of(part)).decode()
        return {"type": "input_audio", "input_audio": {"data": data, "format": name}}

    def _file(self, part: FilePart) -> Mapping[str, Any]:
        if not self._capabilities.files:
            raise self._refusal("files")
        if part.url is not None:
            raise self._refusal("files by URL")
        url = _data_url(part.media_type, self._bytes_of(part))
        return {"type": "file", "file": {"filename": part.name, "file_data": url}}

    def _bytes_of(self, part: ImagePart | AudioPart | FilePart) -> bytes:
        if part.data is None:
            raise self._refusal(f"the {part.kind} part without bytes or URL")
        return part.data

    # --- assistant ----------------------------------------------------------------

    def _assistant(self, message: AssistantMessage) -> Fragment:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[Mapping[str, Any]] = []
        ids: list[tuple[str, str, str | None]] = []
        for part in message.content:
            match part:
                case TextPart():
                    texts.append(part.text)
                case ThinkingPart():
                    thoughts.append(part.text)
                case ToolCallPart():
                    ids.append(self._claim(part))
                    calls.append(_call(part, ids[-1][1]))
                case _:
                    raise self._refusal(f"a {part.kind} part in a reply of the model")
        text = "".join(texts)
        wire: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            # An empty text beside calls is refused by some vendors, null by none.
            wire["content"] = text or None
            field = self._profile.thinking_field
            if field is not None and thoughts:
                # Vendors that think between calls want the reasoning behind them back.
                wire[field] = "".join(thoughts)
            wire["tool_calls"] = calls
        return Fragment.of([wire], tuple(ids))

    def _claim(self, part: ToolCallPart) -> tuple[str, str, str | None]:
        """The call's key, the id it goes by in this request, and its id before."""
        key = part.call_id or part.provider_call_id
        candidates = (part.provider_call_id, part.call_id)
        wire_id = next(
            (c for c in candidates if self._legal(c) and c not in self._taken), None
        )
        salt = 0
        while wire_id is None or wire_id in self._taken:
            wire_id = _made_id(key, salt, short=self._profile.short_ids)
            salt += 1
        self._taken.add(wire_id)
        before = self._wire_ids.get(key)
        self._wire_ids[key] = wire_id
        return key, wire_id, before

    def _legal(self, call_id: str) -> bool:
        if self._profile.short_ids:
            return _SHORT_ID.match(call_id) is not None
        return 0 < len(call_id) <= _LONGEST_ID

    # --- tool results -------------------------------------------------------------

    def _results(self, results: Sequence[ToolResultPart]) -> Fragment:
        wire: list[Mapping[str, Any]] = []
        shown: list[Mapping[str, Any]] = []
        for result in results:
            media = [part for part in result.content if type(part) is not TextPart]
            text = result.text
            if media:
                note = f"[The media that {result.name} returned follow below.]"
                text = f"{text}\n{note}" if text else note
                shown.append({"type": "text", "text": f"Returned by {result.name}:"})
                shown.extend(self._media(part) for part in media)
            key = result.call_id or result.provider_call_id
            wire_id = self._wire_ids.get(key) or result.provider_call_id or key
            wire.append({"role": "tool", "tool_call_id": wire_id, "content": text})
        if shown:
            wire.append({"role": "user", "content": shown})
        return Fragment.of(wire)

    def _refusal(self, what: str) -> BadRequest:
        return BadRequest(
            f"{self._profile.name} (OpenAI chat format) cannot be sent {what}; nothing "
            "was sent. If this model takes it, pass capabilities= to the model"
        )


def _call(part: ToolCallPart, wire_id: str) -> Mapping[str, Any]:
    name = _ILLEGAL_IN_NAME.sub("_", part.name)[:_LONGEST_NAME] or "unknown"
    function = {"name": name, "arguments": _sendable(part.arguments)}
    wire: dict[str, Any] = {"id": wire_id, "type": "function", "function": function}
    if extra := part.extra.get("extra_content"):
        wire["extra_content"] = extra
    return wire


def _sendable(arguments: str) -> str:
    """Argument text that every server takes back.

    What the model once broke must not break each later request too: servers with a
    chat template parse the arguments of the history and fail on text that is no JSON
    object.
    """
    try:
        if isinstance(from_json(arguments), dict):
            return arguments
    except (ValueError, TypeError):  # TypeError: half a surrogate pair
        pass
    if not arguments.strip():
        return "{}"
    return to_json({"malformed_arguments": without_surrogates(arguments)}).decode()


def _made_id(key: str, salt: int, *, short: bool) -> str:
    made = hashlib.blake2b(f"{key}/{salt}".encode("utf-8", "replace"), digest_size=12)
    return made.hexdigest()[:9] if short else f"call_{made.hexdigest()}"


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def _to_json(value: Mapping[str, Any]) -> bytes:
    try:
        return to_json(value)
    except PydanticSerializationError:
        # Half a surrogate pair (a file name, a cut text): no UTF-8 can carry it.
        return to_json(without_surrogates(value))
