"""Cancellation: who asked for it, and what must not be cut in two by it.

A tool may raise asyncio's `CancelledError` itself, or let one through from a future
that was cancelled elsewhere. Taken for a real cancellation it would end the run, or, in
a batch, the task group; it is a failed call like any other.

A cancel scope's shield keeps out anyio's and trio's cancellation, but not asyncio's own
`task.cancel()`, which `asyncio.wait_for` and `asyncio.timeout` use. So on asyncio the
work of `endure` is a task of its own, and the caller waits for its end; the
cancellation comes afterwards.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio
from anyio.lowlevel import current_token

T = TypeVar("T")


def in_cancelled_scope() -> bool:
    """A cancel scope around this task was cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def was_cancelled() -> bool:
    """Somebody cancelled this task: through a scope, or asyncio's own `cancel()`."""
    if in_cancelled_scope():
        return True
    # Not imported: where asyncio is not there yet, it is not what runs us.
    asyncio: Any = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:  # another event loop runs, which knows only scopes
        task = None
    return task is None or task.cancelling() > 0


class Endured(NamedTuple):
    """What came of it."""

    value: Any
    cancelled: BaseException | None
    """Raise it once what was done has been noted."""


async def endure(function: Callable[[], Awaitable[T]]) -> Endured:
    """Run `function` to its end; its own exceptions are raised as they are."""
    loop: Any = current_token().native_token
    cancelled: BaseException | None = None
    with anyio.CancelScope(shield=True):
        if not hasattr(loop, "create_task"):
            return Endured(await function(), None)
        ended = anyio.Event()
        task = loop.create_task(_as_coroutine(function))
        task.add_done_callback(lambda _: ended.set())
        while not task.done():
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
    return Endured(task.result(), cancelled)


async def _as_coroutine(function: Callable[[], Awaitable[T]]) -> T:
    return await function()
