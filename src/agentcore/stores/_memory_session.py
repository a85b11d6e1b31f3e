"""One session of the memory store: its journal, its inbox, and both packed.

Nothing here locks; `memory.py` does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from agentcore.protocols.store import Listener
from agentcore.stores._common import Queue, check_same, item_key
from agentcore.types import codec
from agentcore.types.content import BlobRef
from agentcore.types.inbox import InboxItem, Input
from agentcore.types.records import Record
from agentcore.types.runs import Receipt, SessionInfo

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
        "listeners", "owner", "packed", "parent", "positions", "queue", "seq",
        "session_id", "waiters",
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
        self.queue: Queue | None = None
        """`None` where nothing waits."""
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
            check_same(self.session_id, self.inbox[position - 1], item)
            return Receipt(item_id, position, duplicate=True)
        if type(item) is Input:
            if self.queue is None:
                self.queue = Queue()
            self.queue.admit(self.session_id, item_id, len(encoded))
        self.inbox.append(item)
        self.accepted = position = self.positions[item_id] = len(self.inbox)
        return Receipt(item_id, position)

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
        queue = self.queue
        if queue is not None and not (queue.waiting or queue.parked):
            self.queue = None

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
