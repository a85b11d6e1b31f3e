"""Runs the host's event sinks beside a run, so that none can stop or slow it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Final

import anyio
from anyio.abc import TaskGroup

from agentcore._base.describe import error_text
from agentcore._engine.feed import Feed, Reader, Reread
from agentcore.protocols.sink import EventSink

logger = logging.getLogger("agentcore")

_GRACE_SECONDS: Final = 5.0
"""How long sinks may lag behind the end of a run before they are left."""


class SinkPump:
    """An async context manager: one reader and one task per sink."""

    __slots__ = ("_feed", "_group", "_readers", "_reread", "_sinks")

    def __init__(self, sinks: Sequence[EventSink], feed: Feed, reread: Reread) -> None:
        self._sinks = sinks
        self._feed = feed
        self._reread = reread
        self._readers: list[Reader] = []
        self._group: TaskGroup = anyio.create_task_group()

    async def __aenter__(self) -> None:
        await self._group.__aenter__()
        for sink in self._sinks:
            reader = self._feed.open(self._reread)
            self._readers.append(reader)
            self._group.start_soon(self._pump, sink, reader)

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        for reader in self._readers:
            self._feed.drop(reader)
        # Whatever happens, the deadline holds: a sink may be slow, not for ever.
        self._group.cancel_scope.deadline = anyio.current_time() + _GRACE_SECONDS
        return await self._group.__aexit__(exc_type, exc, traceback)

    async def _pump(self, sink: EventSink, reader: Reader) -> None:
        async for event in reader:
            try:
                await sink.emit(event)
            except Exception as error:  # noqa: BLE001 - a sink is the host's code
                logger.warning("event sink %r failed: %s", sink, error_text(error))
