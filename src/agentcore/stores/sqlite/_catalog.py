"""The statements about sessions as a whole, blobs and snapshots.

Functions of one connection; inside a transaction where they write. Each looks before it
writes, so that what it raises leaves nothing behind.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from agentcore.errors import SessionExists, SessionNotFound
from agentcore.stores.sqlite._schema import MOST, first_key, last_key
from agentcore.types.runs import SessionInfo, SessionQuery

_END: Final = (
    "(SELECT key FROM journal WHERE key BETWEEN s.no << 32 AND s.no << 32 | 4294967295 "
    "ORDER BY key DESC LIMIT 1)"
)
_LISTED: Final = f"""
    SELECT s.id, s.created_at, j.at, j.key, s.parent
    FROM sessions s JOIN journal j ON j.key = {_END}
    WHERE s.no < ? AND substr(s.id, 1, length(?)) = ?
        AND (? IS NULL OR s.parent = ?) AND (s.parent IS NULL OR NOT ?)
    ORDER BY s.no DESC LIMIT ?"""  # noqa: S608 - of fixed text


class Session(NamedTuple):
    """A session's row."""

    no: int
    id: str
    epoch: int
    owner: str | None
    holder: str | None


def find(connection: sqlite3.Connection, session_id: str) -> Session:
    """The row of a session.

    Raises:
        SessionNotFound: there is none.
    """
    row = connection.execute(
        "SELECT no, id, epoch, owner, holder FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise SessionNotFound(session_id)
    return Session(*row)


def create(
    connection: sqlite3.Connection, session_id: str, parent: str | None, at: float
) -> int:
    """A new session's number.

    Raises:
        SessionExists: it is there already.
    """
    known = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,))
    if known.fetchone() is not None:
        raise SessionExists(session_id)
    made = connection.execute(
        "INSERT INTO sessions(id, parent, created_at, epoch) VALUES (?, ?, ?, 0)",
        (session_id, parent, at),
    )
    return made.lastrowid or 0


def listed(connection: sqlite3.Connection, query: SessionQuery) -> list[SessionInfo]:
    """The lines of a listing.

    Raises:
        SessionNotFound: there is no session `query.before` to page on from.
    """
    before = MOST if query.before is None else find(connection, query.before).no
    parent, prefix = query.parent_session_id, query.prefix
    rows = connection.execute(
        _LISTED,
        (before, prefix, prefix, parent, parent, query.roots_only, query.limit),
    )
    return [
        SessionInfo(name, created_at, at, key & MOST, parent)
        for name, created_at, at, key, parent in rows
    ]


def delete(connection: sqlite3.Connection, no: int) -> None:
    """Remove a session and the blobs nothing else names."""
    connection.execute(
        "DELETE FROM blobs WHERE hash IN (SELECT hash FROM blob_names mine WHERE "
        "session = ? AND NOT EXISTS (SELECT 1 FROM blob_names other WHERE "
        "other.hash = mine.hash AND other.session != mine.session))",
        (no,),
    )
    for table in ("journal", "inbox"):
        connection.execute(
            f"DELETE FROM {table} WHERE key BETWEEN ? AND ?",  # noqa: S608 - fixed
            (first_key(no), last_key(no)),
        )
    for table in ("queue", "blob_names", "snapshots"):
        connection.execute(
            f"DELETE FROM {table} WHERE session = ?",  # noqa: S608 - fixed
            (no,),
        )
    connection.execute("DELETE FROM sessions WHERE no = ?", (no,))


# --- blobs ----------------------------------------------------------------------------


def put_blob(connection: sqlite3.Connection, name: str, data: bytes) -> None:
    """Keep bytes by their name; equal ones are there already."""
    known = connection.execute("SELECT 1 FROM blobs WHERE hash = ?", (name,))
    if known.fetchone() is None:
        connection.execute("INSERT INTO blobs VALUES (?, ?)", (name, data))


def get_blob(connection: sqlite3.Connection, name: str) -> bytes | None:
    """The bytes of this name."""
    found = connection.execute("SELECT data FROM blobs WHERE hash = ?", (name,))
    row = found.fetchone()
    return None if row is None else row[0]


def name_blobs(connection: sqlite3.Connection, no: int, names: Sequence[str]) -> None:
    """Note that a session names these."""
    connection.executemany(
        "INSERT OR IGNORE INTO blob_names VALUES (?, ?)", [(no, n) for n in names]
    )


# --- snapshots ------------------------------------------------------------------------


def save_snapshot(
    connection: sqlite3.Connection, session_id: str, seq: int, data: bytes
) -> None:
    """Put it in the place of the one before.

    Raises:
        SessionNotFound: there is no such session.
    """
    no = find(connection, session_id).no
    connection.execute(
        "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)",
        (no, seq, zlib.crc32(data, seq), data),
    )


def load_snapshot(
    connection: sqlite3.Connection, session_id: str
) -> tuple[int, bytes] | None:
    """The one kept, unless it is damaged: it is only a cache.

    Raises:
        SessionNotFound: there is no such session.
    """
    no = find(connection, session_id).no
    row = connection.execute(
        "SELECT seq, crc, data FROM snapshots WHERE session = ?", (no,)
    ).fetchone()
    if row is None or zlib.crc32(row[2], row[0] & MOST) != row[1]:
        return None
    return row[0], row[2]
