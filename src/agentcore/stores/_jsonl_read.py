"""Reading records: from any number on, block by block, holding no file open."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Self

from agentcore.errors import AgentCoreError, CorruptRecord, SessionNotFound
from agentcore.stores._jsonl_journal import Place
from agentcore.stores._jsonl_lines import Line
from agentcore.stores._jsonl_os import failing
from agentcore.stores._jsonl_walk import Walk, near
from agentcore.types import codec
from agentcore.types.records import StoredRecord

_NOTHING_CHANGED = "nothing was changed"


class Reader:
    """One `read`, a block at a time; each step may run in another thread."""

    __slots__ = ("_after", "_end", "_place", "_stat", "_walk", "error")

    def __init__(
        self, place: Place, after: int, end: int, stat: os.stat_result
    ) -> None:
        self._place = place
        self._after = after
        self._end = end
        self._stat = stat
        self._walk: Walk | None = None
        self.error: AgentCoreError | None = None
        """To be raised once everything before it has been handed out."""

    def step(self) -> list[StoredRecord] | None:
        """The next records; `None` at the end.

        Raises:
            SessionNotFound: it was deleted meanwhile.
        """
        place = self._place
        with failing(f"reading {place.journal}", _NOTHING_CHANGED):
            try:
                file = place.journal.open("rb", buffering=0)
            except FileNotFoundError:
                raise SessionNotFound(place.session_id) from None
            with file:
                fd = file.fileno()
                if not os.path.samestat(os.fstat(fd), self._stat):
                    raise SessionNotFound(place.session_id)
                return self._step(fd)

    def _step(self, fd: int) -> list[StoredRecord] | None:
        place, walk = self._place, self._walk
        if walk is None:
            start = near(fd, place.lines, self._end, self._after + 1)
            walk = self._walk = Walk(place.journal, place.lines, self._end, start)
        found: list[StoredRecord] = []
        while not walk.done and not found and self.error is None:
            for line in walk.step(fd):
                try:
                    found += self._records(line)
                except CorruptRecord as error:
                    self.error = CorruptRecord(f"{place.journal}: {error}")
                    break
        if found:
            return found
        self.error = self.error or walk.error
        return None

    def _records(self, line: Line) -> list[StoredRecord]:
        if line.last <= self._after or not line.size:
            return []
        records = codec.RECORDS.load_many(line.records)
        if len(records) != line.size:
            raise CorruptRecord(
                f"the line of record {line.seq} holds {len(records)} records, "
                f"not {line.size}"
            )
        epoch, at = line.epoch, line.at
        stored = enumerate(records, line.seq)
        return [StoredRecord(n, epoch, at, r) for n, r in stored if n > self._after]


class Stream:
    """The records of a reader whose steps `run` runs.

    No generator: it holds nothing, so it may be left at any point without a word.
    """

    __slots__ = ("_batch", "_done", "_reader", "_run")

    def __init__(self, reader: Reader, run: Callable[..., Awaitable[Any]]) -> None:
        self._reader = reader
        self._run = run
        self._batch: Iterator[StoredRecord] = iter(())
        self._done = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StoredRecord:
        for stored in self._batch:
            return stored
        if not self._done and self._reader.error is None:
            records = await self._run(self._reader.step)
            if records is not None:
                self._batch = iter(records)
                return next(self._batch)
        self._done = True
        error, self._reader.error = self._reader.error, None
        if error is not None:
            raise error
        raise StopAsyncIteration
