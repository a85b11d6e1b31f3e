"""Wakes whoever waits for something to be written, here or by another process.

What this handle writes it tells at once. For the others a thread looks at SQLite's
`data_version`, a counter in shared memory, every few milliseconds, and only while
somebody waits or listens.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import anyio
from anyio import to_thread

from agentcore.errors import SessionNotFound, StoreError
from agentcore.protocols.store import Listener
from agentcore.stores._wake import waker
from agentcore.stores.sqlite import _inbox as inbox
from agentcore.stores.sqlite import _journal as journal
from agentcore.stores.sqlite._file import StoreFile
from agentcore.stores.sqlite._reader import Readers
from agentcore.stores.sqlite._writer import BUSY

INTERVAL: Final = 0.025
_LINGER: Final = 40
"""Looks without anybody there before the thread ends."""
_log = logging.getLogger("agentcore")


class _Watched:
    """Who waits for one session, and who listens."""

    __slots__ = ("end", "heard", "listeners", "waiters")

    def __init__(self) -> None:
        self.end: int | None = None
        """Where the thread saw the journal end; `None`: there is no session."""
        self.listeners: tuple[Listener, ...] = ()
        self.waiters: tuple[Callable[[], None], ...] = ()
        self.heard: int | None = None
        """The inbox version the listeners know of; `None`: being looked up."""


def _stands(session_id: str, connection: sqlite3.Connection) -> tuple[int, int]:
    no, end = journal.end_of(connection, session_id)
    return end, inbox.version(connection, no)


class Watching:
    """The listeners and waiters of one handle.

    Args:
        file: what the thread connects to.
        readers: for what is asked on the spot.
    """

    def __init__(self, file: StoreFile, readers: Readers) -> None:
        self._file = file
        self._readers = readers
        self._lock = threading.Lock()
        self._sessions: dict[str, _Watched] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    # --- who asks ---------------------------------------------------------------

    @contextmanager
    def listening(self, session_id: str, listener: Listener) -> Iterator[None]:
        """Tell `listener` of what is accepted from now on."""
        with self._lock:
            watched = self._watched(session_id)
            watched.listeners += (listener,)
        try:
            # Registered first: what comes while this looks is told, or seen by it.
            look = partial(_stands, session_id)
            stands = self._readers.now(look)
            if stands is BUSY:
                stands = self._readers.wait(look)
            _, version = stands
            with self._lock:
                if watched.heard is None:
                    watched.heard = version
            yield
        finally:
            with self._lock:
                kept = tuple(x for x in watched.listeners if x is not listener)
                watched.listeners = kept
                self._forget(session_id, watched)

    async def wait(self, session_id: str, after: int) -> None:
        """Return once the journal holds a record after `after`."""
        while True:
            event = anyio.Event()
            wake = waker(event)
            with self._lock:
                watched = self._watched(session_id)
                watched.waiters += (wake,)
            try:
                look = partial(_stands, session_id)
                stands = self._readers.now(look)
                if stands is BUSY:
                    stands = await to_thread.run_sync(self._readers.wait, look)
                if stands[0] > after:
                    return
                await event.wait()
            finally:
                with self._lock:
                    kept = tuple(x for x in watched.waiters if x is not wake)
                    watched.waiters = kept
                    self._forget(session_id, watched)

    def _watched(self, session_id: str) -> _Watched:
        watched = self._sessions.get(session_id)
        if watched is None:
            watched = self._sessions[session_id] = _Watched()
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(
                target=self._work, name="agentcore-sqlite-watch", daemon=True
            )
            self._thread.start()
        return watched

    def _forget(self, session_id: str, watched: _Watched) -> None:
        unused = not (watched.listeners or watched.waiters)
        if unused and self._sessions.get(session_id) is watched:
            del self._sessions[session_id]

    # --- what this handle writes ------------------------------------------------

    def taken(self, session_id: str, position: int) -> None:
        """An item is about to be visible; its listeners are told by `tell`."""
        with self._lock:
            watched = self._sessions.get(session_id)
            if watched is not None:
                watched.heard = max(watched.heard or 0, position)

    def unsure(self, session_id: str) -> None:
        """Perhaps it is not there after all: the thread tells how it stands."""
        with self._lock:
            watched = self._sessions.get(session_id)
            if watched is not None:
                watched.heard = 0

    async def tell(self, session_id: str, version: int) -> None:
        """Await the listeners of a session."""
        watched = self._sessions.get(session_id)
        if watched is not None:
            for listener in watched.listeners:
                await _tell(listener, version)

    def wake(self, session_id: str) -> None:
        """Wake who waits for a session, to look again."""
        watched = self._sessions.get(session_id)
        if watched is not None:
            for wake in watched.waiters:
                wake()

    def close(self) -> None:
        """End the thread; who waits looks again, and so opens the store anew."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stop.set()
            waiters = [w for s in self._sessions.values() for w in s.waiters]
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        for wake in waiters:
            wake()

    # --- the thread -------------------------------------------------------------

    def _work(self) -> None:
        me = threading.current_thread()
        connection: sqlite3.Connection | None = None
        version, idle = -1, 0
        try:
            while not self._stop.wait(INTERVAL):
                with self._lock:
                    idle = 0 if self._sessions else idle + 1
                    if idle > _LINGER or self._thread is not me:
                        self._thread = None if self._thread is me else self._thread
                        break
                try:
                    if connection is None:
                        connection = self._file.connect(read_only=True)
                    now = connection.execute("PRAGMA data_version").fetchone()[0]
                    if now != version:
                        self._look(connection)
                        version = now
                except (sqlite3.Error, StoreError) as error:
                    _log.warning("cannot watch %s: %s", self._file.path, error)
                    self._stop.wait(1.0)
        finally:
            with self._lock:
                if self._thread is me:
                    self._thread = None
            if connection is not None:
                connection.close()

    def _look(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            watched = list(self._sessions)
        news: list[tuple[Listener, int]] = []
        for session_id in watched:
            end, version = None, 0
            with suppress(SessionNotFound):
                end, version = _stands(session_id, connection)
            with self._lock:
                entry = self._sessions.get(session_id)
                if entry is None:
                    continue
                waiters = entry.waiters if end != entry.end or end is None else ()
                entry.end = end
                for wake in waiters:
                    wake()
                if entry.heard is None or version <= entry.heard:
                    continue
                entry.heard = version
                news += [(listener, version) for listener in entry.listeners]
        if news:
            anyio.run(_tell_all, news)


async def _tell_all(news: list[tuple[Listener, int]]) -> None:
    for listener, version in news:
        await _tell(listener, version)


async def _tell(listener: Listener, version: int) -> None:
    try:
        await listener(version)
    except Exception:  # noqa: BLE001 - the item is durable, the receipt must go out
        _log.exception("a listener of accept failed")
