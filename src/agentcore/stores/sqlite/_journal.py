"""The statements about a session's journal.

A row is one append. Its check sum covers its number, epoch and time as well, and the
numbers of neighbouring rows must join, so a damaged, missing or misplaced row is found.
"""

from __future__ import annotations

import re
import sqlite3
import struct
import zlib
from collections.abc import Sequence
from contextlib import closing
from typing import Final, Literal, NamedTuple

from agentcore.errors import CorruptRecord, InboxChanged, SequenceConflict
from agentcore.protocols.store import Appended
from agentcore.stores.sqlite import _catalog as catalog
from agentcore.stores.sqlite import _inbox as inbox
from agentcore.stores.sqlite import _leases as leases
from agentcore.stores.sqlite._schema import MOST, first_key, last_key
from agentcore.types import codec
from agentcore.types.records import Record, StoredRecord

PAGE_ROWS: Final = 64
PAGE_BYTES: Final = 256 * 1024

_STANDS: Final = """
    SELECT epoch, holder,
        (SELECT key FROM journal WHERE key BETWEEN ?1 AND ?2
            ORDER BY key DESC LIMIT 1),
        (SELECT key FROM inbox WHERE key BETWEEN ?1 AND ?2
            ORDER BY key DESC LIMIT 1)
    FROM sessions WHERE no = ?3"""
_ROWS: Final = (
    "SELECT key, epoch, at, count, crc, records FROM journal "
    "WHERE key > ? AND key <= ? ORDER BY key"
)
_ROW: Final = """
    INSERT INTO journal SELECT ?1, ?2, ?3, ?4, ?5, ?6 FROM sessions
    WHERE no = ?7 AND epoch = ?2 AND holder = ?8
        AND NOT EXISTS (SELECT 1 FROM inbox WHERE key > ?9 AND key <= ?10)"""
"""An append by itself: one row, or none where anything is not as it was known."""
_head = struct.Struct(">qqdq").pack
_BLOB = re.compile(rb'"hash":"([0-9a-f]{32})"')


class Batch(NamedTuple):
    """Records of one append, encoded before anything is locked."""

    size: int
    """How many."""
    at: float
    data: bytes
    blobs: Sequence[str]
    """Hashes they name."""
    moves: Sequence[inbox.Move]
    """Inputs they take out of the queue, or set aside, or put back."""

    @property
    def is_plain(self) -> bool:
        """One row of the journal is all there is to write."""
        return self.size > 0 and not self.moves and not self.blobs


def batch_of(records: Sequence[Record], at: float) -> Batch:
    """Encode records.

    Raises:
        ConfigError: a record holds what JSON cannot.
    """
    data = codec.dump_many(records)
    return Batch(len(records), at, data, blobs_in(data), inbox.moves_in(records))


def blobs_in(encoded: bytes) -> Sequence[str]:
    """Hashes of all blobs that encoded values name, at any depth and of any kind."""
    # A quote inside of a JSON text is escaped, so no text can look like a reference.
    if b'"hash":"' not in encoded:
        return ()
    return [name.decode() for name in _BLOB.findall(encoded)]


def append(
    connection: sqlite3.Connection,
    owned: leases.Leases,
    held: leases.Held,
    batch: Batch,
    expected: tuple[int, int | None],
) -> Appended:
    """Write a batch after `expected`: sequence number and, perhaps, inbox version.

    Raises:
        LeaseLost, SequenceConflict, InboxChanged: nothing was written.
    """
    no = held.no
    first = first_key(no)
    row = connection.execute(_STANDS, (first, last_key(no), no)).fetchone()
    if row is None:
        raise leases.lost(held)
    epoch, holder, end, last_item = row
    owned.check(connection, held, epoch, holder)
    expected_seq, expected_inbox = expected
    version = 0 if last_item is None else last_item & MOST
    if end != first + expected_seq:
        raise SequenceConflict(
            f"the session ends at {(end or 0) & MOST}, not {expected_seq}"
        )
    if expected_inbox is not None and version > expected_inbox:
        raise InboxChanged(f"the inbox is at {version}, past {expected_inbox}")
    if batch.size:
        write(connection, no, epoch, expected_seq, batch)
    # A commit that fails poisons `held`.
    held.stands = done = Appended(expected_seq + batch.size, version)
    return done


def append_row(
    connection: sqlite3.Connection,
    owned: leases.Leases,
    held: leases.Held,
    batch: Batch,
    expected: tuple[int, int | None],
) -> Appended | Literal[False]:
    """`append` as one statement outside of a transaction, which it is by itself.

    `False`: nothing was written; `append` has to look why.
    """
    stands, holder = held.stands, owned.sure
    expected_seq, expected_inbox = expected
    if not holder or stands is None or stands.seq != expected_seq:
        return False
    version = stands.inbox_version
    if expected_inbox is not None and version > expected_inbox:
        return False
    no, epoch = held.no, held.epoch
    size, at, data = batch.size, batch.at, batch.data
    base = first_key(no)
    key = base + expected_seq + size
    crc = _crc(key, epoch, at, size, data)
    known = base + version
    row = (key, epoch, at, size, crc, data, no, holder, known, base + MOST)
    if connection.execute(_ROW, row).rowcount < 1:
        return False
    held.stands = done = Appended(expected_seq + size, version)
    return done


def write(
    connection: sqlite3.Connection, no: int, epoch: int, seq: int, batch: Batch
) -> None:
    """One row, and what follows from it."""
    key = first_key(no) + seq + batch.size
    crc = _crc(key, epoch, batch.at, batch.size, batch.data)
    connection.execute(
        "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)",
        (key, epoch, batch.at, batch.size, crc, batch.data),
    )
    if batch.moves:
        inbox.move(connection, no, batch.moves)
    if batch.blobs:
        catalog.name_blobs(connection, no, batch.blobs)


def _crc(key: int, epoch: int, at: float, count: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(_head(key, epoch, at, count)))


# --- reading --------------------------------------------------------------------------


def end_of(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Number of a session and of its last record.

    Raises:
        SessionNotFound: there is no such session.
    """
    no = catalog.find(connection, session_id).no
    row = connection.execute(
        "SELECT key FROM journal WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
        (first_key(no), last_key(no)),
    ).fetchone()
    return no, 0 if row is None else row[0] & MOST


class Row(NamedTuple):
    """One append, its check sum tested."""

    first: int
    last: int
    epoch: int
    at: float
    records: bytes

    def decoded(self) -> list[StoredRecord]:
        """The records in their envelopes.

        Raises:
            CorruptRecord: they cannot be read.
        """
        records = codec.RECORDS.load_many(self.records)
        if len(records) != self.last - self.first + 1:
            raise CorruptRecord(
                f"records {self.first} to {self.last}: some are missing"
            )
        return [
            StoredRecord(seq, self.epoch, self.at, record)
            for seq, record in enumerate(records, self.first)
        ]


class Page(NamedTuple):
    """Rows in order, and what is wrong with the one after them."""

    rows: Sequence[Row]
    fault: CorruptRecord | None


class Cursor:
    """Goes through a session's rows in pages, testing that they join."""

    __slots__ = ("_epoch", "_no", "_seq", "_start")

    def __init__(self, no: int, after: int) -> None:
        self._no = no
        self._start = after
        self._seq: int | None = None if after else 0
        """Last number seen; `None`: the first row may begin before `after`."""
        self._epoch = 0

    def page(self, connection: sqlite3.Connection, end: int) -> Page:
        """The next rows, up to the one that holds `end`; empty once it was reached."""
        base = first_key(self._no)
        rows: list[Row] = []
        size = 0
        try:
            found = connection.execute(_ROWS, (base + self._start, base + end))
            with closing(found):  # an open cursor would keep the log from being cut
                for raw in found:
                    row = self._tested(raw)
                    rows.append(row)
                    size += len(row.records)
                    if len(rows) == PAGE_ROWS or size > PAGE_BYTES:
                        return Page(rows, None)
        except CorruptRecord as fault:
            return Page(rows, fault)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            return Page(rows, self._damaged(f"the file is damaged: {error}"))
        if self._start < end:
            return Page(rows, self._damaged("the rows up to the end are missing"))
        return Page(rows, None)

    def _tested(self, raw: sqlite3.Row) -> Row:
        key, epoch, at, count, crc, data = raw
        last = key & MOST
        first = last - count + 1
        if _crc(key, epoch, at, count, data) != crc:
            raise self._damaged("the check sum is wrong")
        if self._seq is None:
            joined = first <= self._start + 1
        else:
            joined = first == self._seq + 1
        if not joined or epoch < self._epoch:
            raise self._damaged("numbers are missing, or twice there")
        self._start = self._seq = last
        self._epoch = epoch
        return Row(first, last, epoch, at, data)

    def _damaged(self, what: str) -> CorruptRecord:
        return CorruptRecord(
            f"the journal is damaged after record {self._start}: {what}. It can be "
            "read up to there, and not be written"
        )


def verify(connection: sqlite3.Connection, no: int, after: int, end: int) -> None:
    """Test every row after a number.

    Raises:
        CorruptRecord: one is damaged or missing.
    """
    cursor = Cursor(no, after)
    while after < end:
        page = cursor.page(connection, end)
        if page.fault is not None:
            raise page.fault
        after = page.rows[-1].last
