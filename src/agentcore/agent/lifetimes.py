"""Keeps an agent's parts open while anything needs them (settled 42).

The first run on an event loop enters executor, model and store; the last one leaves
them, or the end of `async with agent:`. Enters are shared and counted per event loop,
so one agent serves several loops, one after another or at once.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import Any

import anyio
from anyio.lowlevel import current_token

from agentcore._base.describe import error_text

_logger = logging.getLogger("agentcore")


class _Opened:
    """Parts on one event loop: how many use them, and what closes them."""

    __slots__ = ("failure", "ready", "stack", "users")

    def __init__(self) -> None:
        self.users = 1
        self.stack: AsyncExitStack | None = None
        self.ready = anyio.Event()
        self.failure: Exception | None = None


class Lifetimes:
    """Opens what has to be opened, once per event loop."""

    __slots__ = ("_opened", "_parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._parts = tuple(part for part in parts if _needs_opening(part))
        self._opened: dict[Any, _Opened] = {}

    async def enter(self) -> None:
        """Open the parts, or wait for whoever is opening them.

        Raises:
            Exception: what a part raised when it was opened.
        """
        if not self._parts:
            return
        token = current_token()
        while (opened := self._opened.get(token)) is not None:
            if await self._join(token, opened):
                return
        await self._open(token)

    async def _join(self, token: Any, opened: _Opened) -> bool:
        """Share parts that are open, or being opened; false if it came to nothing."""
        opened.users += 1
        try:
            await opened.ready.wait()
        except BaseException:
            await self._drop(token, opened)
            raise
        if opened.failure is not None:
            raise opened.failure
        return opened.stack is not None

    async def _open(self, token: Any) -> None:
        opened = self._opened[token] = _Opened()
        stack = AsyncExitStack()
        try:
            for part in self._parts:
                await stack.enter_async_context(part)
            opened.stack = stack
        except BaseException as error:
            # Whoever waits hears of a failure; after a mere cancellation of this task
            # the next of them opens.
            del self._opened[token]
            opened.failure = error if isinstance(error, Exception) else None
            with anyio.CancelScope(shield=True):
                await stack.aclose()
            raise
        finally:
            opened.ready.set()

    async def _drop(self, token: Any, opened: _Opened) -> None:
        opened.users -= 1
        if opened.users or opened.stack is None:
            return
        if self._opened.get(token) is opened:
            del self._opened[token]
        with anyio.CancelScope(shield=True):
            try:
                await opened.stack.aclose()
            except Exception as error:  # noqa: BLE001 - the run itself is done
                _logger.warning("a part did not close: %s", error_text(error))

    async def leave(self) -> None:
        """Close the parts if nobody else uses them on this event loop."""
        if not self._parts:
            return
        token = current_token()
        opened = self._opened.get(token)
        if opened is not None:
            await self._drop(token, opened)


def _needs_opening(part: Any) -> bool:
    return hasattr(part, "__aenter__") and not getattr(part, "opens_nothing", False)
