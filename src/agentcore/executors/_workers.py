"""A bounded pool of threads for functions that block.

Why not `anyio.to_thread`: its limiter gives the slot of an abandoned thread back while
the function still runs, so a hanging tool would be called again and again until the
process is full of threads; and on asyncio its threads keep the interpreter from
exiting. Here an abandoned thread stays counted until its function has really returned,
and every thread is a daemon.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import anyio
import anyio.lowlevel

from agentcore.errors import ConfigError, Unavailable

T = TypeVar("T")

_logger = logging.getLogger("agentcore")

DEFAULT_SIZE = 8
"""Threads of a pool, running and abandoned ones together."""
IDLE_SECONDS = 10.0
"""How long a thread without work stays."""
_END_SECONDS = 0.1
"""How long an idle thread is waited for; it only has to wake up and end."""


class _Job(Generic[T]):
    """One call: made on the loop, run in a thread, reported back to the loop."""

    __slots__ = (
        "_context", "_post", "_work", "done", "error", "late", "state", "value",
    )  # fmt: skip

    def __init__(
        self, work: Callable[[], T], late: Callable[[T], object] | None = None
    ) -> None:
        self.late = late
        self._work: Callable[[], T] | None = work
        self._context = contextvars.copy_context()
        native: Any = anyio.lowlevel.current_token().native_token
        # anyio's own way back, `from_thread.run_sync`, makes the thread wait for the
        # loop; both loops have a call that does not, under different names.
        post = getattr(native, "call_soon_threadsafe", None)
        self._post: Callable[[Callable[[], None]], Any] = post or native.run_sync_soon
        self.done = anyio.Event()
        self.state: Literal["waiting", "running", "abandoned", "done"] = "waiting"
        self.value: T
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the function, in the caller's context; never raises."""
        work, self._work = self._work, None
        assert work is not None  # noqa: S101 - a job is run once
        try:
            self.value = self._context.run(_outside_the_loop, work)
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            self.error = error

    def report(self) -> None:
        """Wake the caller; a loop that has ended needs no waking."""
        with contextlib.suppress(RuntimeError):
            self._post(self.done.set)

    def outcome(self) -> T:
        """What the function returned or raised."""
        if self.error is None:
            return self.value
        error, self.error = self.error, None
        try:
            raise error
        finally:
            del error, self  # or the traceback keeps itself alive


def _outside_the_loop(work: Callable[[], T]) -> T:
    # The copied context says "inside asyncio", where sniffio keeps that in a context
    # variable; a function that starts a loop of its own would be refused.
    if sniffio := sys.modules.get("sniffio"):
        sniffio.current_async_library_cvar.set(None)
    return work()


class WorkerPool:
    """At most `size` threads, started when needed, gone when idle.

    One pool serves any number of event loops, of asyncio or trio, in any threads, one
    after the other or at once.

    Args:
        size: Threads at most; further callers wait their turn.
        idle: Seconds a thread without work stays.

    Raises:
        ConfigError: `size` is less than 1.
    """

    def __init__(self, size: int = DEFAULT_SIZE, *, idle: float = IDLE_SECONDS) -> None:
        if type(size) is not int or size < 1:
            raise ConfigError(f"a worker pool of {size!r} threads; use at least 1")
        self.size = size
        self._idle_seconds = idle
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._wake = threading.Condition(threading.Lock())
        self._queue: deque[_Job[Any]] = deque()
        self._threads = self._held = self._endings = 0
        self._idle: set[threading.Thread] = set()

    @property
    def held(self) -> int:
        """Threads whose caller was cancelled and whose function still runs."""
        return self._held

    @property
    def busy(self) -> int:
        """Threads that run a function, held ones included."""
        return self._threads - len(self._idle)

    @property
    def waiting(self) -> int:
        """Callers that wait for a thread."""
        return len(self._queue)

    async def run(
        self,
        work: Callable[[], T],
        *,
        grace: Callable[[], float] = float,
        late: Callable[[T], object] | None = None,
    ) -> T:
        """Run `work` in a thread and return what it returns.

        The thread sees a copy of the caller's context variables. A caller cancelled
        while it waits for a thread leaves without `work` having started. Later, the
        thread has `grace()` seconds to return in spite of it, which counts as if nobody
        had cancelled; then it is abandoned and counts as `held` until `work` returns.
        What that comes to is given to `late`, in the thread, and dropped otherwise.

        Raises:
            Unavailable: no thread could be started; `work` did not run.
            BaseException: what `work` raised.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        job = _Job(work, late)
        self._submit(job)
        try:
            await job.done.wait()
        except anyio.get_cancelled_exc_class():
            if not await self._returns(job, grace):
                raise
        finally:
            self._leave(job)
        return job.outcome()

    async def _returns(self, job: _Job[Any], grace: Callable[[], float]) -> bool:
        """A call cut short comes to its end in time."""
        # asyncio's own cancel would be lost if it were not raised on.
        scoped = anyio.current_effective_deadline() == -math.inf
        if job.state == "waiting" or not scoped:
            return False
        with anyio.move_on_after(grace(), shield=True):
            await job.done.wait()
        return job.done.is_set()

    def end_idle(self) -> None:
        """End the threads that have nothing to do; new ones start when needed.

        Harmless at any time: work that is waiting or running goes on.
        """
        if self._pid != os.getpid():
            return  # forked: the threads stayed behind
        with self._wake:
            self._endings += 1
            ending = tuple(self._idle)
            self._wake.notify_all()
        for thread in ending:
            thread.join(_END_SECONDS)

    # --- on the loop: the lock is held for a few instructions only -------------------

    def _submit(self, job: _Job[Any]) -> None:
        if self._pid != os.getpid():
            self._reset()  # forked: the threads stayed behind
        with self._wake:
            self._queue.append(job)
            grow = len(self._queue) > len(self._idle) and self._threads < self.size
            self._threads += grow
            if not grow:
                self._wake.notify()
        if grow:
            self._start_thread(job)

    def _start_thread(self, job: _Job[Any]) -> None:
        thread = threading.Thread(target=self._serve, name="agentcore-worker")
        thread.daemon = True
        try:
            thread.start()
        except RuntimeError as error:
            with self._wake:
                self._threads -= 1
                if self._threads or job not in self._queue:
                    return  # the others will come to it
                self._queue.remove(job)
            raise Unavailable(f"no worker thread can be started: {error}") from error

    def _leave(self, job: _Job[Any]) -> None:
        with self._wake:
            if job.state == "waiting":
                self._queue.remove(job)
            elif job.state == "running":
                job.state = "abandoned"
                self._held += 1

    # --- in the threads --------------------------------------------------------------

    def _serve(self) -> None:
        thread = threading.current_thread()
        with self._wake:
            self._idle.add(thread)
            endings = self._endings
        while (job := self._next(thread, endings)) is not None:
            job.run()
            with self._wake:
                abandoned = job.state == "abandoned"
                job.state = "done"
                self._held -= abandoned
                # Before the caller knows, who may come right back, or end us.
                self._idle.add(thread)
                endings = self._endings
            if not abandoned:
                job.report()
            elif job.late is not None and job.error is None:
                try:
                    job.late(job.value)
                except Exception:
                    _logger.debug("nobody takes a late result", exc_info=True)
            del job  # an idle thread keeps nobody's objects alive

    def _next(self, thread: threading.Thread, endings: int) -> _Job[Any] | None:
        with self._wake:
            self._wake.wait_for(
                lambda: self._queue or self._endings > endings, self._idle_seconds
            )
            self._idle.remove(thread)
            if not self._queue:
                self._threads -= 1
                return None
            job = self._queue.popleft()
            job.state = "running"
            return job
