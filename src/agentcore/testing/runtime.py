"""Time and identifiers under the control of a test."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import anyio
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

START = 1_767_225_600.0
"""Where a `FakeClock` starts: 2026-01-01 00:00 UTC."""

# On asyncio `wait_all_tasks_blocked` looks once and then pauses for real if a task was
# still busy. Most tasks come to rest within a few turns of the loop, which are free.
_TURNS = 25


async def _settle() -> None:
    """Let every other task run until it waits for something."""
    for _ in range(_TURNS):
        await checkpoint()
    await wait_all_tasks_blocked()


@dataclass(order=True, slots=True)
class _Sleeper:
    deadline: float
    order: int
    woken: anyio.Event = field(default_factory=anyio.Event, compare=False)


class FakeClock:
    """A `Clock` that stands still until the test moves it.

    It serves one event loop at a time. Work in threads does not hold it back: a task
    that waits for a thread counts as resting.

    Args:
        start: The wall time it starts with; monotonic time starts at 0.
        autojump: Whenever every task rests, jump to the next sleeper's deadline.
    """

    def __init__(self, start: float = START, *, autojump: bool = False) -> None:
        self.sleeps: list[float] = []
        """The length of every sleep asked for, in order."""
        self._wall = start
        self._elapsed = 0.0
        self._autojump = autojump
        self._jumping = False
        self._sleepers: list[_Sleeper] = []  # a heap
        self._order = itertools.count()
        self._arrival: anyio.Event | None = None

    def now(self) -> float:
        """Wall time: `start` plus what passed, or as `set_wall` left it."""
        return self._wall + self._elapsed

    def monotonic(self) -> float:
        """The seconds that passed since the clock was made."""
        return self._elapsed

    def set_wall(self, seconds: float) -> None:
        """Set the wall time, also backwards; monotonic time and sleepers stay."""
        self._wall = seconds - self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved on by so much."""
        self.sleeps.append(seconds)
        if seconds <= 0:
            await checkpoint()
            return
        sleeper = _Sleeper(self._elapsed + seconds, next(self._order))
        heapq.heappush(self._sleepers, sleeper)
        self._announce()
        try:
            while self._elapsed < sleeper.deadline:
                if self._autojump and not self._jumping:
                    await self._jump_until(sleeper)
                else:
                    await sleeper.woken.wait()
                    sleeper.woken = anyio.Event()
        finally:
            self._leave(sleeper)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking one sleeper after another, each at its own time.

        Between two of them every task runs until it rests, so what a woken task does,
        new sleeps included, happens at the time it should.
        """
        target = self._elapsed + seconds
        await _settle()
        while self._sleepers and self._sleepers[0].deadline <= target:
            self._wake_next()
            await _settle()
        self._elapsed = max(self._elapsed, target)

    async def sleeping(self, count: int = 1) -> None:
        """Wait until at least `count` tasks sleep."""
        while len(self._sleepers) < count:
            self._arrival = self._arrival or anyio.Event()
            await self._arrival.wait()

    def _announce(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None

    def _wake_next(self) -> None:
        sleeper = heapq.heappop(self._sleepers)
        self._elapsed = max(self._elapsed, sleeper.deadline)
        sleeper.woken.set()

    # One sleeper moves the clock for all, so that no other task of the clock is busy
    # while it waits for rest; when it leaves, it wakes another to take its place.

    async def _jump_until(self, sleeper: _Sleeper) -> None:
        self._jumping = True
        try:
            while sleeper in self._sleepers:
                await _settle()
                if sleeper in self._sleepers:
                    self._wake_next()
        finally:
            self._jumping = False

    def _leave(self, sleeper: _Sleeper) -> None:
        if sleeper in self._sleepers:
            self._sleepers.remove(sleeper)
            heapq.heapify(self._sleepers)
        if self._autojump and not self._jumping and self._sleepers:
            self._sleepers[0].woken.set()


class CountingIds:
    """An `IdSource` of `run_1`, `call_1`, `call_2` …: each kind counts for itself.

    Two of them mint the same ids. A test that goes on with a stored session, as after
    a restart, hands on the same object or starts the second one higher.

    Args:
        start: The first number of every kind.
    """

    def __init__(self, start: int = 1) -> None:
        self._counters: defaultdict[str, Iterator[int]] = defaultdict(
            lambda: itertools.count(start)
        )

    def new(self, kind: str) -> str:
        """The next id of its kind."""
        return f"{kind}_{next(self._counters[kind])}"
