"""What comes from outside a run: the items `RunStore.accept` takes.

An item is durable before `accept` returns, needs no ownership, and is idempotent by
`id`. The owner folds items into the journal in inbox order (run semantics 2.2, 2.5).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.actor import Actor
from agentcore.types.content import UserPart
from agentcore.types.json import EMPTY, JsonObject, JsonValue, Unknown
from agentcore.types.policy import Decision

Delivery: TypeAlias = Literal["steer", "follow_up"]
"""`steer`: before the next model request. `follow_up`: a run of its own, later."""


@frozen
class Input:
    """Something the user says to the session."""

    id: str
    content: tuple[UserPart, ...]
    delivery: Delivery = "follow_up"
    source: Literal["user", "system"] = "user"
    actor: Actor | None = None
    traceparent: str | None = None
    settings: JsonObject = EMPTY
    """Per-run options as names and numbers."""
    kind: Literal["input"] = "input"
    extra: JsonObject = EMPTY


@frozen
class Cancel:
    """Stop the open run."""

    id: str
    actor: Actor | None = None
    cause: Literal["user", "parent", "host"] = "user"
    force: bool = False
    """Shorten the grace period."""
    reason: str = ""
    """In the words of whoever cancels."""
    kind: Literal["cancel"] = "cancel"
    extra: JsonObject = EMPTY


@frozen
class Decide:
    """The decision on a pending approval, question or unknown call."""

    id: str
    subject: str
    """The id of what is decided (`ApprovalRequest.id` …)."""
    decision: Decision
    actor: Actor | None = None
    args_hash: str = ""
    kind: Literal["decide"] = "decide"
    extra: JsonObject = EMPTY


@frozen
class Withdraw:
    """Take back an input that has not been placed."""

    id: str
    input_id: str
    actor: Actor | None = None
    kind: Literal["withdraw"] = "withdraw"
    extra: JsonObject = EMPTY


@frozen
class Redeliver:
    """Change how an unplaced input is delivered."""

    id: str
    input_id: str
    delivery: Delivery = "follow_up"
    actor: Actor | None = None
    kind: Literal["redeliver"] = "redeliver"
    extra: JsonObject = EMPTY


@frozen
class Release:
    """Return parked inputs to the queue, in their original order; empty: all."""

    id: str
    input_ids: tuple[str, ...] = ()
    actor: Actor | None = None
    kind: Literal["release"] = "release"
    extra: JsonObject = EMPTY


@frozen
class StateChange:
    """Set a key of the session's state, or delete it with `None`."""

    id: str
    key: str
    value: JsonValue = None
    actor: Actor | None = None
    cause: str = ""
    kind: Literal["state_change"] = "state_change"
    extra: JsonObject = EMPTY


InboxItem: TypeAlias = (
    Input | Cancel | Decide | Withdraw | Redeliver | Release | StateChange | Unknown
)
