"""The contracts of the injected world: time, identifiers, durable steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from agentcore.types.json import JsonObject

T = TypeVar("T")


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Wall time, seconds since the epoch. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that only rise; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; honours cancellation."""
        ...


class IdSource(Protocol):
    """Where identifiers come from."""

    def new(self, kind: str) -> str:
        """An id nobody had before; `kind` is its readable head."""
        ...


class StepRunner(Protocol):
    """The one seam a durable engine drives the loop through (settled 47)."""

    async def step(
        self, name: str, fn: Callable[[], Awaitable[T]], args: JsonObject
    ) -> T:
        """Run `fn` once, or return what an earlier execution of `name` returned."""
        ...

    def now(self) -> float:
        """Wall time that replays the same."""
        ...

    async def sleep(self, seconds: float) -> None:
        """A wait that survives a restart."""
        ...

    def new_id(self, kind: str) -> str:
        """An id that replays the same."""
        ...
