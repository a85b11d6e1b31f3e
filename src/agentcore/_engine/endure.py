"""Finish what must not be cut in two, whatever cancels the caller meanwhile.

A cancel scope's shield keeps out anyio's and trio's cancellation, but not asyncio's own
`task.cancel()`, which `asyncio.wait_for` and `asyncio.timeout` use. So on asyncio the
work is a task of its own, and the caller waits for its end; the cancellation comes
afterwards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio
from anyio.lowlevel import current_token

T = TypeVar("T")


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
