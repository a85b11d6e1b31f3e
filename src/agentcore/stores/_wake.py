"""Waking a task from any thread, for stores that serve several event loops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
from anyio.lowlevel import current_token


def waker(event: anyio.Event) -> Callable[[], None]:
    """Sets the event of the running loop, from any thread; never waits."""
    home, loop = threading.get_ident(), current_token().native_token

    def wake() -> None:
        if threading.get_ident() == home:
            event.set()
            return
        soon: Any = getattr(loop, "call_soon_threadsafe", None)  # asyncio's name
        if soon is None:
            soon = loop.run_sync_soon  # type: ignore[attr-defined]  # trio's
        with suppress(RuntimeError):  # the loop has ended, and who waited with it
            soon(event.set)

    return wake
