"""Server-sent events out of bytes, without any I/O.

Bytes in, whole events out, wherever the network cut them. Nothing is decoded: UTF-8 is
checked by whoever parses the data, so a character split over two chunks costs nothing.
Not here: what the data means, and reconnecting (`id:` and `retry:` are ignored; a model
reply cannot be resumed).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agentcore.errors import BadResponse

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
"""A single event larger than this is refused: nothing may grow without a bound."""

_BOM: Final = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its name (empty for none) and its data lines, joined by newlines."""

    name: str
    data: bytes


class SseParser:
    """An incremental parser: `feed` it chunks, then call `end` once.

    Args:
        max_event_bytes: the most bytes one event may take.
    """

    __slots__ = ("_limit", "_opening", "_parts", "_size", "_skip_newline")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        # Pieces of the event that is not complete yet; joined once, not per chunk.
        self._parts: list[bytes] = []
        self._size = 0
        self._skip_newline = False
        self._opening = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes, in order.

        Raises:
            BadResponse: an event is larger than the limit; the stream is of no use.
        """
        if b"\r" in chunk or self._skip_newline:
            chunk = self._with_plain_newlines(chunk)
        parts = self._parts
        # What nearly every chunk is: one whole event of one data line.
        if (
            not parts
            and chunk.startswith(b"data: ")
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk.endswith(b"\n\n")
        ):
            self._opening = False
            return [SseEvent("", chunk[6:-2])]
        if not chunk:
            return []
        if parts:
            straddles = chunk[0] == 10 and parts[-1].endswith(b"\n")
            parts.append(chunk)
            if not straddles and b"\n\n" not in chunk:
                return self._hold(len(chunk))
            chunk = b"".join(parts)
            parts.clear()
            self._size = 0
        blocks = chunk.split(b"\n\n")
        rest = blocks.pop()
        if rest:
            self._parts.append(rest)
            self._hold(len(rest))
        return self._events(blocks)

    @property
    def holds_data(self) -> bool:
        """Some of the next event is here already, and it is no comment."""
        head = b"".join(self._parts[:2]).lstrip(b"\n")
        return bool(head) and not head.startswith(b":")

    def end(self) -> list[SseEvent]:
        """The event that was still open when the stream ended, if it had any data.

        Many servers leave out the last blank line. It may also be half an event: its
        data then does not parse.
        """
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return self._events([rest])

    def _hold(self, added: int) -> list[SseEvent]:
        self._size += added
        if self._size > self._limit:
            raise BadResponse(
                f"an event of the stream is larger than {self._limit} bytes"
            )
        return []

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        if self._skip_newline and chunk:
            self._skip_newline = False
            if chunk.startswith(b"\n"):  # the second half of a CRLF cut in two
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _events(self, blocks: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        if self._opening and blocks:
            self._opening = False
            blocks[0] = blocks[0].removeprefix(_BOM)
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(SseEvent("", block[6:]))
            elif block and (event := self._parse(block)) is not None:
                events.append(event)
        return events

    @staticmethod
    def _parse(block: bytes) -> SseEvent | None:
        name = b""
        data: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
        if not data:
            return None
        return SseEvent(name.decode("utf-8", "replace"), b"\n".join(data))
