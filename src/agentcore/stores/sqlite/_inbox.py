"""The statements about a session's inbox, and about which inputs wait in it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from agentcore.errors import CorruptRecord
from agentcore.protocols.store import InboxPage
from agentcore.stores._common import Queue, check_same, item_key
from agentcore.stores.sqlite import _catalog as catalog
from agentcore.stores.sqlite._schema import MOST, first_key, last_key
from agentcore.types import codec
from agentcore.types.inbox import InboxItem, Input
from agentcore.types.records import (
    InputParked,
    InputPlaced,
    InputReleased,
    InputWithdrawn,
    Record,
)
from agentcore.types.runs import Receipt

Move: TypeAlias = tuple[str, str]
"""A statement about the queue, and the id of the input."""

_GONE: Final = "DELETE FROM queue WHERE session = ? AND id = ?"
_PARK: Final = "UPDATE queue SET parked = 1 WHERE session = ? AND id = ?"
_BACK: Final = "UPDATE queue SET parked = 0 WHERE session = ? AND id = ?"
_MOVES: Final[dict[type, str]] = {
    InputPlaced: _GONE,
    InputWithdrawn: _GONE,
    InputParked: _PARK,
    InputReleased: _BACK,
}


class Mail(NamedTuple):
    """An item, encoded before anything is locked."""

    session_id: str
    item: InboxItem
    data: bytes
    blobs: Sequence[str]


def moves_in(records: Sequence[Record]) -> Sequence[Move]:
    """What records do to the queue."""
    return [
        (statement, record.input_id)  # type: ignore[union-attr]  # those of _MOVES
        for record in records
        if (statement := _MOVES.get(type(record))) is not None
    ]


def move(connection: sqlite3.Connection, no: int, moves: Sequence[Move]) -> None:
    """Take inputs out of the queue, or set them aside, or put them back."""
    for statement, input_id in moves:
        connection.execute(statement, (no, input_id))


def accept(
    connection: sqlite3.Connection, mail: Mail, taken: Callable[[int], None]
) -> Receipt:
    """Take an item in, once; `taken` hears of its position before anybody can see it.

    Raises:
        SessionNotFound, InputConflict, InboxFull: nothing was written.
    """
    session_id, item = mail.session_id, mail.item
    no = catalog.find(connection, session_id).no
    item_id = item_key(item)
    earlier = connection.execute(
        "SELECT key, crc, item FROM inbox WHERE session = ? AND id = ?", (no, item_id)
    ).fetchone()
    if earlier is not None:
        position, first = _loaded(session_id, *earlier)
        check_same(session_id, first, item)
        return Receipt(item_id, position, duplicate=True)
    size = len(mail.data)
    if type(item) is Input:
        _queue(connection, no).admit(session_id, item_id, size)
        connection.execute("INSERT INTO queue VALUES (?, ?, ?, 0)", (no, item_id, size))
    position = version(connection, no) + 1
    key = first_key(no) + position
    connection.execute(
        "INSERT INTO inbox VALUES (?, ?, ?, ?, ?)",
        (key, no, item_id, _crc(key, mail.data), mail.data),
    )
    if mail.blobs:
        catalog.name_blobs(connection, no, mail.blobs)
    taken(position)
    return Receipt(item_id, position)


def version(connection: sqlite3.Connection, no: int) -> int:
    """Position of the last item; 0 for none."""
    row = connection.execute(
        "SELECT key FROM inbox WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
        (first_key(no), last_key(no)),
    ).fetchone()
    return 0 if row is None else row[0] & MOST


def page(connection: sqlite3.Connection, session_id: str, after: int) -> InboxPage:
    """The items after a position.

    Raises:
        SessionNotFound: there is no such session.
        CorruptRecord: an item is damaged.
    """
    no = catalog.find(connection, session_id).no
    rows = connection.execute(
        "SELECT key, crc, item FROM inbox WHERE key > ? AND key <= ? ORDER BY key",
        (first_key(no) + after, last_key(no)),
    ).fetchall()
    if not rows:
        return InboxPage(version(connection, no), ())
    items = tuple(_loaded(session_id, *row) for row in rows)
    return InboxPage(items[-1][0], items)


def _queue(connection: sqlite3.Connection, no: int) -> Queue:
    queue = Queue()
    rows = connection.execute(
        "SELECT id, size FROM queue WHERE session = ? AND NOT parked", (no,)
    )
    queue.waiting.update(rows.fetchall())
    return queue


def _loaded(session_id: str, key: int, crc: int, data: bytes) -> tuple[int, InboxItem]:
    position = key & MOST
    if _crc(key, data) != crc:
        raise CorruptRecord(
            f"item {position} of the inbox of session {session_id!r} is damaged"
        )
    return position, codec.INBOX_ITEMS.load_json(data)


def _crc(key: int, data: bytes) -> int:
    return zlib.crc32(data, key & MOST)
