"""One session of the memory store: its journal, its inbox, and both packed.

Nothing here locks; `memory.py` does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from agentcore.errors import InboxFull, InputConflict
from agentcore.protocols.store import Listener
from agentcore.types import codec
from agentcore.types.content import BlobRef
from agentcore.types.inbox import InboxItem, Input
from agentcore.types.json import Unknown
from agentcore.types.records import (
    InputParked,
    InputPlaced,
    InputReleased,
    InputWithdrawn,
    Record,
)
from agentcore.types.runs import Receipt, SessionInfo

MAX_WAITING: Final = 64
MAX_WAITING_BYTES: Final = 1024 * 1024
NO_BLOBS: Final[frozenset[str]] = frozenset()
# A packed session's, shared: `unpack` puts new ones in their place.
_NO_ITEMS: Final[list[InboxItem]] = []
_NO_POSITIONS: Final[dict[str, int]] = {}
_NAMES_NOTHING: Final = frozenset({str, int, float, bool, bytes, type(None)})

Batch = tuple[int, int, float, tuple[Record, ...]]
"""One append: first sequence number, epoch, wall time, records."""


class Packed(NamedTuple):
    """A session at rest. Journals only grow, so two numbers tell if it is current."""

    seq: int
    accepted: int
    data: bytes


class Session:
    """What the store knows of a session. `batches is None`: packed."""

    __slots__ = (
        "accepted", "at", "batches", "blobs", "created_at", "epoch", "inbox",
        "listeners", "owner", "packed", "parent", "parked", "positions", "queued",
        "seq", "session_id", "waiters",
    )  # fmt: skip

    def __init__(self, session_id: str, parent: str | None, at: float) -> None:
        self.session_id = session_id
        self.parent = parent
        self.created_at = at
        self.at = at
        self.epoch = 0
        self.owner: str | None = None
        self.seq = 0
        self.accepted = 0
        self.batches: list[Batch] | None = []
        self.inbox: list[InboxItem] = []
        self.positions: dict[str, int] = {}  # of the items, by id; empty while packed
        self.queued: dict[str, int] | None = None
        self.parked: dict[str, int] | None = None
        """Bytes of the inputs that wait, by id; `None` where none ever did."""
        self.packed: Packed | None = None
        self.blobs = NO_BLOBS
        """While packed: the hashes its records name."""
        self.listeners: tuple[Listener, ...] = ()
        self.waiters: tuple[Callable[[], None], ...] = ()

    def info(self) -> SessionInfo:
        """Its line of a listing."""
        return SessionInfo(
            self.session_id, self.created_at, self.at, self.seq, self.parent
        )

    # --- inbox --------------------------------------------------------------------

    def accept(self, item: InboxItem, item_id: str, encoded: bytes) -> Receipt:
        """Take an item in; `encoded` is its JSON, made outside of the store's lock."""
        position = self.positions.get(item_id)
        if position is not None:
            if _content(self.inbox[position - 1]) != _content(item):
                raise InputConflict(
                    f"the id {item_id!r} was used in session {self.session_id!r} "
                    "with other content"
                )
            return Receipt(item_id, position, duplicate=True)
        if type(item) is Input:
            self._enqueue(item_id, len(encoded))
        self.inbox.append(item)
        self.accepted = position = self.positions[item_id] = len(self.inbox)
        return Receipt(item_id, position)

    def _enqueue(self, item_id: str, size: int) -> None:
        waiting = self.queued or {}
        held = sum(waiting.values())
        # One input alone always fits: the bound is on the queue, not on a message.
        if waiting and (len(waiting) >= MAX_WAITING or held + size > MAX_WAITING_BYTES):
            raise InboxFull(
                f"session {self.session_id!r} holds {len(waiting)} unplaced inputs of "
                f"{held:,} bytes; the bound is {MAX_WAITING} or "
                f"{MAX_WAITING_BYTES:,} bytes"
            )
        if self.queued is None:
            self.queued = {}
        self.queued[item_id] = size

    def settle(self, records: Sequence[Record]) -> None:
        """Follow the inputs out of the queue, and out of and back into the park."""
        queued = self.queued = {} if self.queued is None else self.queued
        parked = self.parked = {} if self.parked is None else self.parked
        for record in records:
            if isinstance(record, (InputPlaced, InputWithdrawn)):
                queued.pop(record.input_id, 0)
                parked.pop(record.input_id, 0)
            elif isinstance(record, InputParked) and record.input_id in queued:
                parked[record.input_id] = queued.pop(record.input_id)
            elif isinstance(record, InputReleased) and record.input_id in parked:
                queued[record.input_id] = parked.pop(record.input_id)

    # --- packing ------------------------------------------------------------------

    def pack(self, *, blobs: bool) -> None:
        """Turn journal and inbox into bytes; `blobs`: the store holds any at all.

        Raises:
            ConfigError: a record holds what JSON cannot; nothing changed.
        """
        if self.batches is None:
            return
        packed = self.packed
        if packed is None or packed[:2] != (self.seq, self.accepted):
            head = to_json([(epoch, at, len(r)) for _, epoch, at, r in self.batches])
            records = codec.dump_many([r for batch in self.batches for r in batch[3]])
            inbox = codec.dump_many(self.inbox)
            data = zlib.compress(b"\n".join((head, records, inbox)), 1)
            self.packed = Packed(self.seq, self.accepted, data)
            self.blobs = self.blob_hashes() if blobs else NO_BLOBS
        self.batches = None
        self.inbox, self.positions = _NO_ITEMS, _NO_POSITIONS
        self.queued, self.parked = self.queued or None, self.parked or None

    def unpack(self) -> list[Batch]:
        """The journal, and the inbox beside it, as they were."""
        if self.batches is not None or self.packed is None:
            return self.batches or []
        head, data, inbox = zlib.decompress(self.packed.data).split(b"\n")
        records = codec.RECORDS.load_many(data)
        batches: list[Batch] = []
        first = 0
        for epoch, at, count in from_json(head):
            batches.append(
                (first + 1, epoch, at, tuple(records[first : first + count]))
            )
            first += count
        self.inbox = codec.INBOX_ITEMS.load_many(inbox)
        self.positions = {item_key(v): i for i, v in enumerate(self.inbox, 1)}
        self.batches = batches
        return batches

    # --- blobs --------------------------------------------------------------------

    def blob_hashes(self) -> frozenset[str]:
        """The hashes of the blobs its records and inbox name."""
        if self.batches is None:
            return self.blobs
        found: set[str] = set()
        _add_hashes(self.batches, found)
        _add_hashes(self.inbox, found)
        return frozenset(found)


def item_key(item: InboxItem) -> str:
    """What makes an item idempotent: its id."""
    return str(item.raw.get("id", "")) if isinstance(item, Unknown) else item.id


def _content(item: InboxItem) -> Any:
    """What must be equal for a repetition: all but the trace, which is a new one."""
    made = codec.dump(item)
    made.pop("traceparent", None)
    return made


def _add_hashes(value: Any, found: set[str]) -> None:
    """Add the hashes of all blobs a value names, at any depth."""
    if value.__class__ in _NAMES_NOTHING:
        return
    if isinstance(value, BlobRef):
        found.add(value.hash)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _add_hashes(item, found)
    elif isinstance(value, Mapping):  # a blob of a kind this version does not know
        if isinstance(value.get("hash"), str):
            found.add(value["hash"])
        for item in value.values():
            _add_hashes(item, found)
    else:
        for name in getattr(value, "__dataclass_fields__", ()):
            _add_hashes(getattr(value, name), found)
