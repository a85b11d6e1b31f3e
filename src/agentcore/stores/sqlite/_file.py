"""Opens the file: is it ours, is it new, is it of this version; and the settings."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agentcore.errors import NotAStore, SchemaTooNew, StoreError
from agentcore.stores.sqlite import _errors as errors
from agentcore.stores.sqlite._schema import (
    APPLICATION_ID,
    LADDER,
    PAGE_SIZE,
    Rung,
    climb,
    version_of,
)

Durability: TypeAlias = Literal["power", "crash"]

PATIENCE: Final = 30.0
"""Seconds that a writer waits for the lock before it gives up."""
_MAGIC: Final = b"SQLite format 3\x00"


class Pause:
    """Waits between two tries for the lock, a little longer each time."""

    __slots__ = ("_deadline", "_longest")

    def __init__(self) -> None:
        self._deadline = time.monotonic() + PATIENCE
        self._longest = 0.0005

    def over(self) -> bool:
        """Sleep, unless the patience is at its end."""
        if time.monotonic() >= self._deadline:
            return True
        # The spread keeps waiting processes from trying at the same moments.
        time.sleep(random.uniform(0.0001, self._longest))  # noqa: S311 - no secret
        self._longest = min(self._longest * 1.5, 0.01)
        return False


class StoreFile:
    """A store's file by its path. Its methods block; call them from a thread."""

    __slots__ = ("_ladder", "_ready", "durability", "path")

    def __init__(
        self, path: Path, durability: Durability, ladder: Sequence[Rung] = LADDER
    ) -> None:
        self.path = path
        self.durability = durability
        self._ladder = ladder
        self._ready = False

    def connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        """A new connection, with the file made or brought up to date where needed.

        Raises:
            NotAStore: the file is something else; it was not touched.
            SchemaTooNew: a newer version wrote it; it was not touched.
            StoreError: it cannot be opened or written here; nothing was written.
        """
        pause = Pause()
        while True:
            try:
                return self._connect(read_only)
            except sqlite3.Error as error:
                if not errors.is_busy(error):
                    raise errors.read_error(error, self.path) from error
                if pause.over():
                    raise errors.locked(self.path, PATIENCE) from error

    def forget(self) -> None:
        """The file may be another one at the next connection: look again."""
        self._ready = False

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        if not self._ready:
            self._check_header()
        connection = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            if not self._ready:
                self._prepare(connection)
                self._ready = True
            self._settings(connection, read_only)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_header(self) -> None:
        """Tell a foreign file by its first bytes, before SQLite could touch it."""
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
        except FileNotFoundError:
            return  # new, or its folder is missing, which connecting will tell
        except IsADirectoryError as error:
            raise NotAStore(f"{self.path}: it is a folder, not a store") from error
        except OSError as error:
            raise StoreError(
                f"{self.path}: it cannot be read. Nothing was written: {error}"
            ) from error
        if not head or self.path.with_name(self.path.name + "-journal").exists():
            return  # new, or the making of it was cut short and SQLite repairs it
        if not head.startswith(_MAGIC):
            raise NotAStore(f"{self.path}: it is no SQLite file. It was not touched")
        if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
            raise NotAStore(
                f"{self.path}: it is another program's SQLite file. It was not touched"
            )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = version_of(connection)
        newest = len(self._ladder)
        if version > newest:
            raise SchemaTooNew(
                f"{self.path}: a newer agentcore wrote it (layout {version}; this one "
                f"knows up to {newest}). It was not touched: update agentcore"
            )
        if version < newest:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")  # only if it is new
            connection.execute("BEGIN IMMEDIATE")
            climb(connection, self._ladder)
            connection.execute("COMMIT")
        # Only now: what the header says must be in the file itself, not in the log.
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StoreError(
                f"{self.path}: this file system has no shared memory for SQLite's "
                "write-ahead log (a network drive?). Nothing was written"
            )

    def _settings(self, connection: sqlite3.Connection, read_only: bool) -> None:
        full = self.durability == "power"
        settings = (
            f"synchronous = {'FULL' if full else 'NORMAL'}",
            f"fullfsync = {int(full)}",  # macOS: fsync alone leaves it in the drive
            f"checkpoint_fullfsync = {int(full)}",
            "wal_autocheckpoint = 0",  # the writer's thread does it
            f"query_only = {int(read_only)}",
        )
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
