"""Blocking work in a worker thread that a cancelled task can still stop."""

import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentcore.providers.local._errors import StopWork

T = TypeVar("T")
Check: TypeAlias = Callable[[], None]


def go_on() -> None:
    """Be the `Check` of work that nobody stops from outside."""


async def run_stoppable(work: Callable[[Check], T]) -> T:
    """Run `work(check)` in a worker thread and return what it returns.

    anyio cannot interrupt a thread, so a cancelled task would wait for a download of
    minutes. Here the work calls `check` at short intervals, and `check` raises inside
    the thread once the task is cancelled. A result that arrives together with the
    cancellation is dropped: whoever opens something in `work` also closes it on error.
    """
    stopped = threading.Event()

    def check() -> None:
        if stopped.is_set():
            raise StopWork

    async def watch_for_cancel() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    results: list[T] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(watch_for_cancel)
        try:
            results.append(await anyio.to_thread.run_sync(work, check))
        except Exception as error:  # noqa: BLE001 - raised below, outside the group
            failure = error
        group.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint_if_cancelled()
    if failure is not None:
        raise failure
    return results[0]
