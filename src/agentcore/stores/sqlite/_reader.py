"""Connections that only read. No transaction of theirs outlives the call."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Final

from agentcore.errors import ConfigError
from agentcore.stores.sqlite import _errors as errors
from agentcore.stores.sqlite._file import PATIENCE, Pause, StoreFile
from agentcore.stores.sqlite._writer import BUSY

_KEEP: Final = 2


class Readers:
    """A few reading connections, each used by one thread at a time."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._free: list[sqlite3.Connection] = []
        self._closings = 0

    def now(self, operation: Callable[[sqlite3.Connection], Any]) -> Any:
        """Read on this thread, unless that means to wait or to open; then `BUSY`."""
        with self._lock:
            if not self._free:
                return BUSY
            connection, closings = self._free.pop(), self._closings
        try:
            return self._run(operation, connection)
        finally:
            self._give_back(connection, closings)

    def wait(self, operation: Callable[[sqlite3.Connection], Any]) -> Any:
        """Read, however long it takes, on this thread; no event loop's.

        Raises:
            StoreError: the file cannot be opened or read.
        """
        with self._lock:
            connection = self._free.pop() if self._free else None
            closings = self._closings
        if connection is None:
            connection = self._file.connect(read_only=True)
        pause = Pause()
        try:
            while (done := self._run(operation, connection)) is BUSY:
                if pause.over():
                    raise errors.locked(self._file.path, PATIENCE)
            return done
        finally:
            self._give_back(connection, closings)

    def close(self) -> None:
        """Close what is free now, and what is in use once it is given back."""
        with self._lock:
            free, self._free = self._free, []
            self._closings += 1
        for connection in free:
            connection.close()

    def _run(
        self,
        operation: Callable[[sqlite3.Connection], Any],
        connection: sqlite3.Connection,
    ) -> Any:
        try:
            return operation(connection)
        except sqlite3.Error as error:
            if errors.is_busy(error):
                return BUSY
            raise errors.read_error(error, self._file.path) from error
        except UnicodeEncodeError as error:
            raise ConfigError(f"an id holds half a character: {error}") from error

    def _give_back(self, connection: sqlite3.Connection, closings: int) -> None:
        with self._lock:
            keep = closings == self._closings and len(self._free) < _KEEP
            if keep:
                self._free.append(connection)
        if not keep:
            connection.close()
