"""The lines of a journal: one per append, each with a checksum over its own bytes.

    {"v":1,"session_id":"s","epoch":2,"seq_first":5,"count":1,"at":1700000000.0,
     "records":[{"kind":"state.changed","key":"k"}],"crc":"5d1f0a3b"}

on one line. An owner leaves a mark when it comes and when it goes: a line without
records, with `"mark":"acquired","owner":"…"` or `"mark":"released"` before them. So the
epoch survives whatever happens to the lock files, and nobody becomes the owner without
moving the end of the journal, which every append compares.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from zlib import crc32

from pydantic_core import from_json, to_json

from agentcore.errors import CorruptRecord, SchemaTooNew

FORMAT: Final = 1
_HEAD: Final = re.compile(
    rb'(\d+),"seq_first":(\d+),"count":(\d+),"at":([-+.\deE]+),"records":'
)
_SEAL: Final = re.compile(rb',"crc":"[\da-f]{8}"\}')
_SEAL_SIZE: Final = 18


class Unsealed(Exception):  # noqa: N818 - named for what happened; it never leaves
    """The checksum does not fit the bytes before it, or there is none."""


def seal(body: bytes) -> bytes:
    """Close a JSON object (its `}` left out) with a checksum, and the line."""
    return b'%s,"crc":"%08x"}\n' % (body, crc32(body))


def unseal(line: bytes) -> None:
    """Check the seal of a line without its newline.

    Raises:
        Unsealed: it does not fit.
    """
    body = memoryview(line)[:-_SEAL_SIZE]
    if len(line) <= _SEAL_SIZE or line[len(body) :] != b',"crc":"%08x"}' % crc32(body):
        raise Unsealed


def opens_with_a_line(data: bytes) -> bool:
    """Bytes start with a whole line, and more than its newline follows.

    A write that was cut short never looks like this; a damaged newline does.
    """
    for found in _SEAL.finditer(data):
        if found.end() >= len(data) - 1:
            return False
        try:
            unseal(data[: found.end()])
        except Unsealed:
            continue
        return True
    return False


class Line(NamedTuple):
    """One line: an append, or a mark."""

    epoch: int
    seq: int
    """Of its first record."""
    size: int
    """How many records it holds."""
    at: float
    records: bytes
    """Their JSON array."""
    mark: str = ""

    @property
    def last(self) -> int:
        """Sequence number of its last record; of the one before it, for a mark."""
        return self.seq + self.size - 1


class Lines:
    """Writes and reads the lines of one session."""

    __slots__ = ("_head", "session_id")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._head = b'{"v":%d,"session_id":%s,"epoch":' % (FORMAT, to_json(session_id))

    def append(
        self, epoch: int, seq: int, at: float, count: int, records: bytes
    ) -> bytes:
        """The line of one append."""
        return seal(
            b'%s%d,"seq_first":%d,"count":%d,"at":%s,"records":%s'
            % (self._head, epoch, seq, count, to_json(at), records)
        )

    def mark(self, epoch: int, seq: int, at: float, mark: str, owner: str) -> bytes:
        """The line of an owner that comes or goes."""
        return seal(
            b'%s%d,"seq_first":%d,"count":0,"at":%s,"mark":%s,"owner":%s,"records":[]'
            % (self._head, epoch, seq, to_json(at), to_json(mark), to_json(owner))
        )

    def parse(self, raw: bytes) -> Line:
        """What a line says; its records stay JSON.

        Raises:
            Unsealed: damaged, or cut short.
            SchemaTooNew: a newer version wrote it.
            CorruptRecord: whole, and yet no line of this journal.
        """
        unseal(raw)
        size = len(self._head)
        head = _HEAD.match(raw, size) if raw.startswith(self._head) else None
        if head is None:
            return self._parse_slowly(raw)
        epoch, seq, count, at = head.groups()
        records = raw[head.end() : -_SEAL_SIZE]
        return Line(int(epoch), int(seq), int(count), float(at), records)

    def _parse_slowly(self, raw: bytes) -> Line:
        data: Any = from_json(raw)
        version = data.get("v")
        if isinstance(version, int) and version > FORMAT:
            raise SchemaTooNew(
                f"session {self.session_id!r} was written in format {version} by a "
                f"newer agentcore; this one reads up to {FORMAT}"
            )
        if data.get("session_id") != self.session_id:
            raise CorruptRecord(f"it belongs to session {data.get('session_id')!r}")
        try:
            return Line(
                data["epoch"],
                data["seq_first"],
                data["count"],
                data["at"],
                to_json(data["records"]),
                data.get("mark", ""),
            )
        except KeyError as missing:
            raise CorruptRecord(f"it has no {missing}") from None
