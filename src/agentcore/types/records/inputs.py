"""Records of what came in from outside: inputs and cancels."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.actor import Actor
from agentcore.types.content import UserPart
from agentcore.types.inbox import Delivery
from agentcore.types.json import EMPTY, JsonObject


@frozen
class InputAccepted:
    """An input of the inbox, folded into the journal; its content stays as it came."""

    input_id: str
    position: int
    """Inbox position."""
    content: tuple[UserPart, ...]
    delivery: Delivery = "follow_up"
    source: Literal["user", "system"] = "user"
    actor: Actor | None = None
    content_hash: str = ""
    traceparent: str | None = None
    settings: JsonObject = EMPTY
    kind: Literal["input.accepted"] = "input.accepted"
    extra: JsonObject = EMPTY


@frozen
class InputPlaced:
    """The input left the queue: the run shows it to the model from here on."""

    input_id: str
    run_id: str
    position: Literal["start", "steer", "follow_up"] = "start"
    kind: Literal["input.placed"] = "input.placed"
    extra: JsonObject = EMPTY


@frozen
class InputParked:
    """A cancel set the input aside; it runs only after an explicit release."""

    input_id: str
    cause: str
    kind: Literal["input.parked"] = "input.parked"
    extra: JsonObject = EMPTY


@frozen
class InputReleased:
    """A parked input is pending again."""

    input_id: str
    cause: str
    position: int = 0
    """Inbox position of what caused it; 0 where nothing from outside did."""
    kind: Literal["input.released"] = "input.released"
    extra: JsonObject = EMPTY


@frozen
class InputRedelivered:
    """A pending input is to be delivered another way."""

    input_id: str
    delivery: Delivery
    cause: str = ""
    position: int = 0
    """Inbox position of what caused it; 0 where nothing from outside did."""
    kind: Literal["input.redelivered"] = "input.redelivered"
    extra: JsonObject = EMPTY


@frozen
class InputWithdrawn:
    """The input was taken back before it was placed."""

    input_id: str
    cause: str
    position: int = 0
    """Inbox position of what caused it; 0 where nothing from outside did."""
    kind: Literal["input.withdrawn"] = "input.withdrawn"
    extra: JsonObject = EMPTY


@frozen
class CancelRequested:
    """Somebody asked to stop the run; no new effect starts after this record."""

    cancel_id: str
    run_id: str
    position: int = 0
    """Inbox position; 0 where the cancel did not come through the inbox."""
    cause: Literal["user", "parent", "host"] = "user"
    actor: Actor | None = None
    reason: str = ""
    kind: Literal["cancel.requested"] = "cancel.requested"
    extra: JsonObject = EMPTY
