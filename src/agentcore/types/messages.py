"""Messages: the history a model sees, a projection of the journal."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.content import (
    AssistantPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UserPart,
    join_text,
)
from agentcore.types.json import EMPTY, JsonObject, Unknown


@frozen
class SystemMessage:
    """Instructions that stand above the conversation."""

    text: str
    kind: Literal["system"] = "system"
    extra: JsonObject = EMPTY

    @property
    def role(self) -> str:
        """`system`."""
        return self.kind


@frozen
class UserMessage:
    """What the user said, or (`source="host"`) a note of the host in their place."""

    content: tuple[UserPart, ...]
    source: Literal["user", "host"] = "user"
    kind: Literal["user"] = "user"
    extra: JsonObject = EMPTY

    @property
    def role(self) -> str:
        """`user`."""
        return self.kind

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return join_text(self.content)


@frozen
class AssistantMessage:
    """One accepted reply of the model."""

    content: tuple[AssistantPart, ...]
    model: str | None = None
    """The model that said it, as the vendor names it; `None` if it did not say."""
    kind: Literal["assistant"] = "assistant"
    extra: JsonObject = EMPTY

    @property
    def role(self) -> str:
        """`assistant`."""
        return self.kind

    @property
    def text(self) -> str:
        """The text parts, joined without a separator, as they were streamed."""
        return join_text(self.content, "")

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The calls of this message, in source order."""
        return tuple(p for p in self.content if type(p) is ToolCallPart)


@frozen
class ToolMessage:
    """The results of one batch, in the order the model asked."""

    results: tuple[ToolResultPart, ...]
    kind: Literal["tool"] = "tool"
    extra: JsonObject = EMPTY

    @property
    def role(self) -> str:
        """`tool`."""
        return self.kind


Message: TypeAlias = (
    SystemMessage | UserMessage | AssistantMessage | ToolMessage | Unknown
)
"""What a conversation is made of; `Unknown` is of a kind that came later."""


def user_text(text: str) -> UserMessage:
    """A user message of one text."""
    return UserMessage((TextPart(text),))


def host_note(text: str) -> UserMessage:
    """A note of the host, in the only role every wire format takes mid-conversation."""
    return UserMessage((TextPart(f"[Note from the host: {text}]"),), source="host")
