"""What is the same in every store: ids, conflicts, the bound on what waits.

Nothing here locks or writes; a store keeps a `Queue` per session (or makes one again
from what it stored) and asks before it takes an item in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentcore.errors import InboxFull, InputConflict
from agentcore.types import codec
from agentcore.types.inbox import InboxItem
from agentcore.types.json import Unknown
from agentcore.types.records import (
    SCHEMA_VERSION,
    InputParked,
    InputPlaced,
    InputReleased,
    InputWithdrawn,
    Record,
    SessionCreated,
)
from agentcore.types.runs import SessionHeader

MAX_WAITING: Final = 64
MAX_WAITING_BYTES: Final = 1024 * 1024


def item_key(item: InboxItem) -> str:
    """What makes an item idempotent: its id."""
    return str(item.raw.get("id", "")) if isinstance(item, Unknown) else item.id


def check_same(session_id: str, first: InboxItem, again: InboxItem) -> None:
    """Two items of one id must be one item; only the trace may be a new one.

    Raises:
        InputConflict: they differ.
    """
    if _content(first) != _content(again):
        raise InputConflict(
            f"the id {item_key(again)!r} was used in session {session_id!r} "
            "with other content"
        )


def _content(item: InboxItem) -> Any:
    made = codec.dump(item)
    made.pop("traceparent", None)
    return made


def created(header: SessionHeader) -> SessionCreated:
    """The first record of a session's journal."""
    return SessionCreated(
        header.session_id,
        SCHEMA_VERSION,
        header.root_session_id,
        header.parent_session_id,
        header.parent_call_id,
        header.workspace,
        header.fork_of,
        header.config_digest,
        extra=header.extra,
    )


class Queue:
    """Bytes of the inputs of one session that wait: unplaced, and set aside."""

    __slots__ = ("parked", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}
        """By input id; these count against the bound."""
        self.parked: dict[str, int] = {}

    def admit(self, session_id: str, item_id: str, size: int) -> None:
        """Count an input in.

        Raises:
            InboxFull: 64 inputs or 1 MiB of them wait; nothing was counted.
        """
        waiting = self.waiting
        held = sum(waiting.values())
        # One input alone always fits: the bound is on the queue, not on a message.
        if waiting and (len(waiting) >= MAX_WAITING or held + size > MAX_WAITING_BYTES):
            raise InboxFull(
                f"session {session_id!r} holds {len(waiting)} unplaced inputs of "
                f"{held:,} bytes; the bound is {MAX_WAITING} or "
                f"{MAX_WAITING_BYTES:,} bytes"
            )
        waiting[item_id] = size

    def follow(self, records: Sequence[Record]) -> None:
        """Follow the inputs out of the queue, and out of and back into the park."""
        waiting, parked = self.waiting, self.parked
        for record in records:
            if isinstance(record, (InputPlaced, InputWithdrawn)):
                waiting.pop(record.input_id, 0)
                parked.pop(record.input_id, 0)
            elif isinstance(record, InputParked) and record.input_id in waiting:
                parked[record.input_id] = waiting.pop(record.input_id)
            elif isinstance(record, InputReleased) and record.input_id in parked:
                waiting[record.input_id] = parked.pop(record.input_id)
