"""The system's clock, and nothing else. Whoever needs time takes a `Clock`."""

from __future__ import annotations

import time

import anyio


class SystemClock:
    """Wall time in seconds since the epoch, monotonic seconds, and a real sleep."""

    __slots__ = ()

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Sleep at least `seconds`; honours cancellation."""
        await anyio.sleep(seconds)
