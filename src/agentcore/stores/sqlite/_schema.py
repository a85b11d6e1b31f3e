"""The tables, and the ladder that leads an older file up to them.

Keys of `journal` and `inbox` are `session number << 32 | position`, so that a session
lies together and its end is one look-up away. `journal` holds one row per append, keyed
by the number of its *last* record: the first row past `after` is where a read begins.

Pages are as small as SQLite has them: an append writes whole pages, and most appends
are smaller than the usual 4 KiB.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

APPLICATION_ID: Final = 0x61677443
PAGE_SIZE: Final = 512
SHIFT: Final = 32
MOST: Final = (1 << SHIFT) - 1

_V1: Final = (
    """CREATE TABLE sessions(
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        parent TEXT,
        created_at REAL NOT NULL,
        epoch INTEGER NOT NULL,
        owner TEXT,
        holder TEXT
    ) STRICT""",
    """CREATE TABLE holders(
        id TEXT PRIMARY KEY,
        expiry REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE journal(
        key INTEGER PRIMARY KEY,
        epoch INTEGER NOT NULL,
        at REAL NOT NULL,
        count INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        records BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE inbox(
        key INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        id TEXT NOT NULL,
        crc INTEGER NOT NULL,
        item BLOB NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX inbox_ids ON inbox(session, id)",
    """CREATE TABLE queue(
        session INTEGER NOT NULL,
        id TEXT NOT NULL,
        size INTEGER NOT NULL,
        parked INTEGER NOT NULL,
        PRIMARY KEY(session, id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE blobs(
        hash TEXT PRIMARY KEY,
        data BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE blob_names(
        session INTEGER NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY(session, hash)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX blob_named ON blob_names(hash)",
    """CREATE TABLE snapshots(
        session INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        data BLOB NOT NULL
    ) STRICT""",
)

Rung: TypeAlias = Callable[[sqlite3.Connection], None]
"""Takes a file from one version to the next, inside a transaction."""


def _first(connection: sqlite3.Connection) -> None:
    for statement in _V1:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


LADDER: Final[Sequence[Rung]] = (_first,)
"""Rung `n` leads from version `n` to `n + 1`; a new file climbs all of them."""


def version_of(connection: sqlite3.Connection) -> int:
    """How far a file has climbed; 0 for an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def climb(connection: sqlite3.Connection, ladder: Sequence[Rung]) -> None:
    """Bring a file up to date, inside the caller's transaction: all or nothing."""
    for rung in ladder[version_of(connection) :]:
        rung(connection)
    connection.execute(f"PRAGMA user_version = {len(ladder)}")


def first_key(session: int) -> int:
    """Below every key of a session."""
    return session << SHIFT


def last_key(session: int) -> int:
    """Above every key of a session."""
    return session << SHIFT | MOST
