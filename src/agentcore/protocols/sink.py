"""The contract of whoever listens: audit, metrics, a user interface."""

from __future__ import annotations

from typing import Protocol

from agentcore.types.events import RunEvent


class EventSink(Protocol):
    """Gets every event of a run, in order, beside the run and never in its way."""

    async def emit(self, event: RunEvent) -> None:
        """Take an event. What it raises is logged; being slow delays only itself."""
        ...
