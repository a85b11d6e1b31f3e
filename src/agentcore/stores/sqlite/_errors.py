"""What SQLite's result codes mean to a caller, in one table."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from agentcore.errors import CorruptRecord, NotAStore, StoreError, StoreFailed

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

_READ_ONLY: Final = (
    "the file or its folder cannot be written. Nothing was written; give this user the "
    "right to write there (SQLite keeps two more files beside it)"
)
_CANNOT_OPEN: Final = (
    "it cannot be opened. Nothing was written; its folder must exist and be writable "
    "(SQLite keeps two more files beside it)"
)
_DAMAGED: Final = (
    "the file is damaged. Nothing more is written to it; what can still be read can be "
    "read, and a backup can be put in its place"
)
_REFUSED: Final[dict[int, tuple[type[StoreError], str]]] = {
    sqlite3.SQLITE_READONLY: (StoreError, _READ_ONLY),
    sqlite3.SQLITE_PERM: (StoreError, _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (StoreError, _CANNOT_OPEN),
    sqlite3.SQLITE_NOTADB: (NotAStore, "it is no SQLite file. It was not touched"),
    sqlite3.SQLITE_CORRUPT: (CorruptRecord, _DAMAGED),
}
"""Codes after which it is certain that nothing was written."""

_FAILED: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk failed",
}


def code_of(error: sqlite3.Error) -> int:
    """The primary result code; 0 where the module itself complains."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Somebody else holds the lock; nothing happened."""
    return code_of(error) in _BUSY


def is_refusal(error: sqlite3.Error) -> bool:
    """Nothing was written, at whichever point it failed."""
    return code_of(error) in _REFUSED


def read_error(error: sqlite3.Error, path: Path) -> StoreError:
    """What a failed read is raised as."""
    kind, words = _REFUSED.get(code_of(error), (StoreError, "it could not be read"))
    return kind(f"{path}: {words}: {error}")


def write_error(error: sqlite3.Error, path: Path, *, committing: bool) -> StoreError:
    """What a failed write is raised as; `committing`: the commit itself failed."""
    code = code_of(error)
    if code in _REFUSED and not committing:
        kind, words = _REFUSED[code]
        return kind(f"{path}: {words}: {error}")
    what = _FAILED.get(code, "the write failed")
    became = (
        "it may or may not be on the disk"
        if committing
        else "it was rolled back, nothing of it is in the file"
    )
    return StoreFailed(
        f"{path}: {what}: {became}. Whoever wrote must read the session again before "
        f"it goes on: {error}"
    )


def locked(path: Path, seconds: float) -> StoreError:
    """The lock could not be had within the bound."""
    return StoreError(
        f"{path}: another program held the write lock for {seconds:.0f} seconds. "
        "Nothing was written; the same call may be made again"
    )
