"""The contracts of what the model is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentcore.types.json import JsonObject
from agentcore.types.messages import Message
from agentcore.types.model import ModelRequest, ModelResponse
from agentcore.types.records import Record
from agentcore.types.runs import RunView


class CallPreparer(Protocol):
    """Adds turn context to one request: time, state, a narrower tool list."""

    async def prepare(self, draft: ModelRequest, view: RunView) -> ModelRequest:
        """Return the request to send. An exception is reported and ignored."""
        ...


class Projector(Protocol):
    """Folds the journal forward into the messages a model sees."""

    @property
    def takes(self) -> Mapping[type, object]:
        """The record types that change anything here; others need not be offered."""
        ...

    def add(self, record: Record) -> None:
        """Take the next record."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The history so far: append-only, so a view of it stays valid."""
        ...

    @property
    def count(self) -> int:
        """How many messages there are."""
        ...

    def window(self, start: int, stop: int | None = None) -> Sequence[Message]:
        """The messages from number `start` up to `stop`, by default to the end."""
        ...

    @property
    def digest(self) -> str:
        """Chained hash of the messages, reproducible from the journal."""
        ...


class Compactor(Protocol):
    """Plans a summary and judges it; the engine makes the request between the two."""

    def plan(self, view: RunView) -> ModelRequest | None:
        """The request for a summary, or `None` where none is due."""
        ...

    def accept(self, plan: ModelRequest, response: ModelResponse) -> JsonObject | None:
        """The summary to install, or `None` to reject it."""
        ...
