"""Writes, one transaction at a time: on the calling thread, or in one of its own.

The thread exists while there is something to do. It takes everything that waits into
one transaction, so a hundred sessions share one sync of the disk. An operation looks
first and writes afterwards: what it raises itself (`AgentCoreError`) comes before its
first write and leaves the others of its transaction alone.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, TypeAlias

import anyio

from agentcore.errors import AgentCoreError, ConfigError, StoreError
from agentcore.stores._wake import waker
from agentcore.stores.sqlite import _errors as errors
from agentcore.stores.sqlite._file import PATIENCE, Pause, StoreFile

Operation: TypeAlias = Callable[[sqlite3.Connection], Any]

BUSY: Final = object()
"""The lock is held by somebody else; nothing happened."""

_GROUP: Final = 256
_IDLE_SECONDS: Final = 5.0
_LOG_BYTES: Final = 4 * 1024 * 1024
_LOOK_EVERY: Final = 32
_log = logging.getLogger("agentcore")


class Job:
    """One operation and what came of it."""

    __slots__ = ("abandoned", "done", "error", "operation", "result", "undo", "wake")

    def __init__(
        self,
        operation: Operation,
        wake: Callable[[], None] | None = None,
        undo: Callable[[], None] | None = None,
    ) -> None:
        self.operation = operation
        self.wake = wake
        self.undo = undo
        self.result: Any = None
        self.error: BaseException | None = None
        self.abandoned = False
        self.done = False

    def run(self, connection: sqlite3.Connection) -> None:
        """Do it, inside a transaction."""
        self.error = None
        try:
            self.result = self.operation(connection)
        except AgentCoreError as error:
            self.error = error
        except UnicodeEncodeError as error:
            self.error = ConfigError(f"an id holds half a character: {error}")

    def outcome(self) -> Any:
        """The result, or the error it ended with."""
        if self.error is not None:
            raise self.error
        return self.result


class Writer:
    """The one writing connection of a store.

    Args:
        file: what to connect to.
        chores: called by the thread from time to time; says in how many seconds it
            wants to be called again, `None` for never.
    """

    def __init__(self, file: StoreFile, chores: Callable[[], float | None]) -> None:
        self._file = file
        self._chores = chores
        self._gate = threading.Lock()
        """Guards the connection; held for one transaction."""
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        """Guards the thread's beginning and end, and what becomes of a job."""
        self._thread: threading.Thread | None = None
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._stopping = False
        self._commits = 0
        self._log_limit = _LOG_BYTES
        self._log_is_long = False

    # --- who asks -----------------------------------------------------------------

    def is_free(self) -> bool:
        """The file is open, and nothing waits to be written by this handle."""
        return self._connection is not None and self._queue.empty()

    def now(self, operation: Operation) -> Any:
        """Write on this thread, unless that means to wait; then `BUSY`."""
        if not self.is_free():
            return BUSY
        if not self._gate.acquire(blocking=False):
            return BUSY
        job = Job(operation)
        try:
            if self._commit([job]) == "busy":
                return BUSY
        finally:
            self._gate.release()
        return job.outcome()

    def single(self, operation: Operation) -> Any:
        """As `now`, of an operation that writes with one statement at most.

        It gets no transaction, as a statement outside of one is one by itself.

        Raises:
            StoreError: as SQLite's error says; see `write_error`.
        """
        if not self.is_free() or not self._gate.acquire(blocking=False):
            return BUSY
        try:
            connection = self._connection
            if connection is None:  # closed in between
                return BUSY
            done = operation(connection)
            self._watch_log()
        except sqlite3.Error as error:
            if errors.is_busy(error):
                return BUSY
            self._drop()
            # Nobody can tell at which point of the statement it failed.
            unsure = not errors.is_refusal(error)
            path = self._file.path
            raise errors.write_error(error, path, committing=unsure) from error
        except BaseException:
            self._drop()
            raise
        finally:
            self._gate.release()
        return done

    async def soon(
        self, operation: Operation, undo: Callable[[], None] | None = None
    ) -> Any:
        """Write in the thread.

        A caller who is cancelled leaves it undone; if it is too late for that, `undo`
        is called.
        """
        event = anyio.Event()
        job = Job(operation, waker(event), undo)
        self._submit(job)
        try:
            await event.wait()
        except BaseException:
            with self._lock:
                job.abandoned = True
                too_late = job.done
            if too_late and job.error is None and undo is not None:
                undo()
            raise
        return job.outcome()

    def wait(self, operation: Operation) -> Any:
        """Write, however long it takes, on this thread; no event loop's."""
        job = Job(operation)
        self._serve([job])
        return job.outcome()

    def kick(self) -> None:
        """There are chores now."""
        self._submit(None)

    def attend(self) -> None:
        """There will be chores: somebody must be there to look."""
        if self._thread is None:
            self._submit(None)

    def close(self) -> None:
        """End the thread and close; the next use opens again. Waits for both."""
        with self._lock:
            thread = self._thread
            self._stopping = thread is not None
        if thread is not None and thread is not threading.current_thread():
            self._queue.put(None)
            thread.join()
        with self._gate:
            if self._connection is not None and self._commits:
                with suppress(sqlite3.Error):  # somebody else reads; nothing is lost
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._commits = 0
            self._drop()

    # --- the thread ---------------------------------------------------------------

    def _submit(self, job: Job | None) -> None:
        with self._lock:
            self._queue.put(job)
            if self._thread is None:
                self._stopping = False
                self._thread = threading.Thread(
                    target=self._work, name="agentcore-sqlite", daemon=True
                )
                self._thread.start()

    def _work(self) -> None:
        due: float | None = 0.0
        while True:
            jobs = self._next(_IDLE_SECONDS if due is None else due)
            if jobs:
                self._serve(jobs)
            if self._log_is_long:
                self._shorten_log()
            due = self._chores()
            with self._lock:
                idle = not jobs and due is None
                if self._queue.empty() and (idle or self._stopping):
                    self._thread = None
                    return

    def _next(self, timeout: float) -> list[Job]:
        """What waits, or nothing after so many seconds or a kick."""
        jobs: list[Job] = []
        with suppress(Empty):
            job = self._queue.get(timeout=timeout)
            while job is not None:
                jobs.append(job)
                job = self._queue.get_nowait() if len(jobs) < _GROUP else None
        return jobs

    def _serve(self, jobs: list[Job]) -> None:
        """Do them all; each ends with a result or an error."""
        with self._lock:
            jobs = [job for job in jobs if not job.abandoned]
        groups = [jobs] if jobs else []
        pause = Pause()
        while groups:
            with self._gate:
                done = self._commit(groups[0])
            if done == "busy":
                if not pause.over():
                    continue
                for job in groups[0]:
                    job.error = errors.locked(self._file.path, PATIENCE)
            group = groups.pop(0)
            if done == "apart":
                groups += [[job] for job in group]
            else:
                self._finish(group)

    def _finish(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            with self._lock:
                job.done = True
                unwanted = job.abandoned and job.error is None
            if unwanted and job.undo is not None:
                job.undo()
            if job.wake is not None:
                job.wake()

    # --- the transaction (with the gate held) -------------------------------------

    def _commit(self, jobs: Sequence[Job]) -> Literal["done", "busy", "apart"]:
        """All in one transaction. `apart`: nothing was written, try each alone."""
        try:
            connection = self._connection or self._open()
            connection.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, StoreError) as error:
            if isinstance(error, sqlite3.Error) and errors.is_busy(error):
                return "busy"
            self._fail(jobs, error, committing=False)
            return "done"
        committing = False
        try:
            for job in jobs:
                job.run(connection)
            committing = True
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - handed to whoever asked
            self._drop()
            if len(jobs) > 1 and not committing:
                return "apart"
            self._fail(jobs, error, committing=committing)
            return "done"
        except BaseException:
            self._drop()
            raise
        self._watch_log()
        return "done"

    def _fail(self, jobs: Sequence[Job], error: Exception, *, committing: bool) -> None:
        self._drop()
        for job in jobs:
            if isinstance(error, sqlite3.Error):
                path = self._file.path
                job.error = errors.write_error(error, path, committing=committing)
                job.error.__cause__ = error
            else:
                job.error = error

    def _open(self) -> sqlite3.Connection:
        self._connection = self._file.connect()
        return self._connection

    def _drop(self) -> None:
        """Close; an open transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- the log --------------------------------------------------------------------

    def _watch_log(self) -> None:
        self._commits += 1
        if self._commits % _LOOK_EVERY or self._log_is_long:
            return
        if self._log_size() > self._log_limit:
            self._log_is_long = True
            self.kick()

    def _log_size(self) -> int:
        path = self._file.path
        with suppress(FileNotFoundError):
            return path.with_name(path.name + "-wal").stat().st_size
        return 0

    def _shorten_log(self) -> None:
        """Bring the log into the file, beside the writers, then cut it."""
        try:
            connection = self._file.connect()
            try:
                for mode in ("PASSIVE", "TRUNCATE"):
                    connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            finally:
                connection.close()
        except (sqlite3.Error, StoreError) as error:
            if not (isinstance(error, sqlite3.Error) and errors.is_busy(error)):
                _log.warning("the log of %s stays long: %s", self._file.path, error)
        # A reader that stays may keep it from being cut; then it may grow further.
        self._log_limit = max(_LOG_BYTES, 2 * self._log_size())
        self._log_is_long = False
