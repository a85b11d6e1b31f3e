"""Going through a journal's file: forward from anywhere, or straight to its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from agentcore.errors import AgentCoreError, CorruptRecord
from agentcore.stores._jsonl_lines import Line, Lines, Unsealed, opens_with_a_line

BLOCK: Final = 256 * 1024
_PROBE: Final = 8 * 1024
_NEAR: Final = 16 * 1024


class Walk:
    """Goes forward line by line up to `end`, and checks everything it passes.

    `offset` is always the end of the last valid line. When `done`, either `error` says
    why nobody may go on, or what lies between `offset` and `end` is a torn last line.
    """

    __slots__ = (
        "_lines", "_path", "_read_to", "_rest", "done", "end", "epoch", "error",
        "offset", "seq",
    )  # fmt: skip

    def __init__(self, path: Path, lines: Lines, end: int, offset: int = 0) -> None:
        self._path = path
        self._lines = lines
        self._rest = b""
        self._read_to = offset
        self.offset = offset
        self.end = end
        self.seq: int | None = None if offset else 0
        self.epoch = 0
        self.done = offset >= end
        self.error: AgentCoreError | None = None

    def step(self, fd: int) -> list[Line]:
        """The lines of the next block of the file."""
        got = os.pread(fd, min(BLOCK, self.end - self._read_to), self._read_to)
        self._read_to += len(got)
        self.done = not got or self._read_to >= self.end
        whole = (self._rest + got).split(b"\n")
        self._rest = whole.pop()
        found: list[Line] = []
        for index, raw in enumerate(whole):
            line = self._check(raw, last=self.done and index == len(whole) - 1)
            if line is None:
                return found
            found.append(line)
            self.offset += len(raw) + 1
        if self.done and opens_with_a_line(self._rest):
            self.error = self._corrupt("its newline is damaged")
        return found

    def _check(self, raw: bytes, *, last: bool) -> Line | None:
        try:
            line = self._lines.parse(raw)
            self._follow(line)
        except Unsealed:
            if not last or self._rest or opens_with_a_line(raw):
                self.error = self._corrupt("its checksum does not fit")
        except CorruptRecord as error:
            self.error = self._corrupt(str(error))
        except AgentCoreError as error:  # a newer version wrote it
            self.error = error
        else:
            return line
        self.done = True
        return None

    def _follow(self, line: Line) -> None:
        if self.seq is not None and line.seq != self.seq + 1:
            raise CorruptRecord(f"record {line.seq} follows {self.seq}")
        if line.epoch < self.epoch:
            raise CorruptRecord(f"epoch {line.epoch} follows {self.epoch}")
        self.seq, self.epoch = line.last, line.epoch

    def _corrupt(self, why: str) -> CorruptRecord:
        after = "" if self.seq is None else f", after record {self.seq}"
        return CorruptRecord(
            f"{self._path} is damaged at byte {self.offset}{after}: {why}; it can be "
            "read up to there, and not be written to"
        )


def near(fd: int, lines: Lines, end: int, seq: int) -> int:
    """Offset of a line at or shortly before the one that holds record `seq`.

    It halves the file, so it looks at a few lines however long the journal is.
    """
    low, high = 0, end
    while high - low > _NEAR:
        middle = (low + high) // 2
        found = _line_after(fd, middle, high)
        if found is None:
            high = middle
            continue
        offset, raw = found
        try:
            line = lines.parse(raw)
        except (Unsealed, AgentCoreError):
            return low  # who reads on from there comes to it
        if line.seq <= seq:
            low = offset
        else:
            high = middle
    return low


def _line_after(fd: int, offset: int, end: int) -> tuple[int, bytes] | None:
    """The first whole line that begins after `offset`, and where."""
    data, size = b"", _PROBE
    while offset + len(data) < end:
        got = os.pread(fd, min(size, end - offset - len(data)), offset + len(data))
        if not got:
            break
        data += got
        size *= 2
        start = data.find(b"\n") + 1
        stop = data.find(b"\n", start) if start else -1
        if stop >= 0:
            return offset + start, data[start:stop]
    return None


def last_line(fd: int, lines: Lines, end: int, *, marks: bool = True) -> Line | None:
    """The last valid line, read from the end of the file; `marks`: of any kind."""
    size = _PROBE
    while True:
        start = max(end - size, 0)
        pieces = os.pread(fd, end - start, start).split(b"\n")
        # The last piece has no newline; the first may have lost its beginning.
        for raw in reversed(pieces[bool(start) : -1]):
            try:
                line = lines.parse(raw)
            except Unsealed:
                continue
            except AgentCoreError:
                return None
            if marks or not line.mark:
                return line
        if not start:
            return None
        size *= 4
