"""A gate a test holds shut: a fake waits at it until the test opens it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio.lowlevel import checkpoint, current_token


class Gate:
    """Blocks whoever waits at it until `open()`; tells the test that they wait.

    It belongs to no event loop: make it anywhere, wait at it on asyncio or trio, open
    it from any thread. It opens once and stays open.
    """

    __slots__ = ("_opened", "_reached")

    def __init__(self) -> None:
        self._opened = _Latch()
        self._reached = _Latch()

    @property
    def is_open(self) -> bool:
        """Somebody called `open()`."""
        return self._opened.is_set

    def open(self) -> None:
        """Let everybody through, now and later."""
        self._opened.set()

    async def reached(self) -> None:
        """Wait until somebody has arrived at the gate."""
        await self._reached.wait()

    async def wait(self) -> None:
        """Arrive at the gate, and wait until it is open."""
        self._reached.set()
        await self._opened.wait()


class _Latch:
    """An event that is set once, from any thread, for waiters on any event loop."""

    __slots__ = ("_lock", "_waiters", "is_set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: list[Callable[[], object]] = []
        self.is_set = False

    def set(self) -> None:
        with self._lock:
            self.is_set = True
            waiters, self._waiters = self._waiters, []
        for wake in waiters:
            with suppress(RuntimeError):  # its event loop has ended meanwhile
                wake()

    async def wait(self) -> None:
        event = anyio.Event()
        wake = partial(_call_soon_threadsafe(), event.set)
        with self._lock:
            if not self.is_set:
                self._waiters.append(wake)
        if self.is_set:
            await checkpoint()
            return
        try:
            await event.wait()
        finally:
            with self._lock, suppress(ValueError):  # `set` has taken it out already
                self._waiters.remove(wake)


def _call_soon_threadsafe() -> Callable[..., object]:
    """How any thread gets a function called in the running loop, without waiting."""
    token: Any = current_token().native_token
    call: Callable[..., object] = getattr(token, "call_soon_threadsafe", None) or (
        token.run_sync_soon
    )
    return call
