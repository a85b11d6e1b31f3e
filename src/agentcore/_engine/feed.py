"""Hands what is committed, and live deltas, to whoever reads along.

A reader can be as slow as it likes: committed records it has not taken are read again
from the store once there are many of them, and deltas beyond 1 MiB are joined with
their neighbours, never dropped (settled 38). With nobody reading, nothing is built.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, TypeAlias

import anyio

from agentcore.types.events import Committed, Delta, RunEvent
from agentcore.types.model import TextDelta, ThinkingDelta
from agentcore.types.records import Record, StoredRecord

_COMMITTED_LIMIT: Final = 1024
"""Records kept for a reader before it is sent to the store for them."""
_DELTA_LIMIT: Final = 1 << 20
"""Characters of deltas kept apart for a reader."""

Reread = Callable[[int], AsyncIterator[StoredRecord]]
_Text: TypeAlias = TextDelta | ThinkingDelta


class _Range:
    """Committed records a slow reader has to fetch from the store."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class _Joined:
    """Neighbouring deltas of one type that wait as one."""

    __slots__ = ("made_of", "pieces")

    def __init__(self, made_of: type[_Text], pieces: list[str]) -> None:
        self.made_of = made_of
        self.pieces = pieces


class Reader:
    """One consumer's place in the stream of events. Iterate it once."""

    __slots__ = (
        "_buffer",
        "_chars",
        "_closed",
        "_committed",
        "_reread",
        "_wake",
        "failure",
    )

    def __init__(self, reread: Reread) -> None:
        self._buffer: deque[RunEvent | _Range | _Joined] = deque()
        self._reread = reread
        self._wake: anyio.Event | None = None
        self._closed = False
        self._committed = 0
        self._chars = 0
        self.failure: BaseException | None = None
        """Raised once everything before it has been read."""

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> RunEvent:
        buffer = self._buffer
        while not buffer:
            if self._closed:
                if self.failure is not None:
                    raise self.failure
                raise StopAsyncIteration
            if self._wake is None:
                self._wake = anyio.Event()
            await self._wake.wait()
        item = buffer.popleft()
        if isinstance(item, (TextDelta, ThinkingDelta)):  # the commonest first
            self._chars -= len(item.text)
            return item
        if isinstance(item, _Range):
            return await self._fetch(item)
        if isinstance(item, _Joined):
            text = "".join(item.pieces)
            self._chars -= len(text)
            return item.made_of(text)
        if isinstance(item, Committed):
            self._committed -= 1
        return item

    async def _fetch(self, missing: _Range) -> RunEvent:
        found: list[Committed] = []
        records = self._reread(missing.first - 1)
        async for stored in records:
            found.append(Committed(stored.seq, stored.record))
            if stored.seq == missing.last or len(found) == _COMMITTED_LIMIT:
                break
        close = getattr(records, "aclose", None)
        if close is not None:
            await close()
        if not found:
            raise RuntimeError(f"record {missing.first} is committed and unreadable")
        missing.first = found[-1].seq + 1
        if missing.first <= missing.last:
            self._buffer.appendleft(missing)
        self._buffer.extendleft(reversed(found[1:]))
        self._committed += len(found) - 1
        return found[0]

    def commit(self, seq: int, records: Sequence[Record]) -> None:
        """Take records; `seq` is the first one's number."""
        if self._committed < _COMMITTED_LIMIT:
            self._buffer.extend(map(Committed, range(seq, seq + len(records)), records))
            self._committed += len(records)
        else:
            last = self._buffer[-1]
            if type(last) is _Range:
                last.last = seq + len(records) - 1
            else:
                self._buffer.append(_Range(seq, seq + len(records) - 1))
        self.wake()

    def delta(self, delta: Delta) -> None:
        """Take a live delta."""
        if isinstance(delta, (TextDelta, ThinkingDelta)):
            self._chars += len(delta.text)
            if self._chars > _DELTA_LIMIT:
                self._join(type(delta), delta.text)
                return
        self._buffer.append(delta)
        if self._wake is not None:
            self.wake()

    def _join(self, kind: type[_Text], text: str) -> None:
        last = self._buffer[-1] if self._buffer else None
        if type(last) is _Joined and last.made_of is kind:
            last.pieces.append(text)
        else:
            self._buffer.append(_Joined(kind, [text]))
        self.wake()

    def wake(self) -> None:
        """Let a waiting reader look again."""
        if self._wake is not None:
            self._wake.set()
            self._wake = None

    def close(self) -> None:
        """No more events after those that wait."""
        self._closed = True
        self.wake()


class Feed:
    """The readers of one session's owner."""

    __slots__ = ("readers",)

    def __init__(self) -> None:
        self.readers: tuple[Reader, ...] = ()

    def open(self, reread: Reread) -> Reader:
        """A new reader; it gets everything from now on."""
        reader = Reader(reread)
        self.readers = (*self.readers, reader)
        return reader

    def drop(self, reader: Reader) -> None:
        """The reader is gone."""
        self.readers = tuple(r for r in self.readers if r is not reader)
        reader.close()

    def commit(self, seq: int, records: Sequence[Record]) -> None:
        """Show committed records."""
        for reader in self.readers:
            reader.commit(seq, records)

    def delta(self, delta: Delta) -> None:
        """Show a live delta."""
        for reader in self.readers:
            reader.delta(delta)

    def close(self) -> None:
        """The owner is done."""
        for reader in self.readers:
            reader.close()


NOBODY: Final = Feed()
"""The feed of a run that nobody can read along with; shared, and never opened."""
