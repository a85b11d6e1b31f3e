"""Both stores with the ability to be cut in two (`Torn`), and what a kill leaves."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from agentcore.stores.jsonl import JsonlRunStore
from agentcore.stores.sqlite import SqliteRunStore
from agentcore.stores.sqlite import _journal as journal
from agentcore.types import codec
from agentcore.types.records import Record
from agentcore.types.runs import Lease


def killed(folder: Path, number: int = 1) -> Path:
    """What a kill of everybody who uses this folder would leave, in another folder.

    The files as they are now, and nobody who holds a lock on them. The living go on.
    """
    left = folder.with_name(f"{folder.name}-left-{number}")
    if left.exists():
        return killed(folder, number + 1)
    if folder.exists():  # a store that was not used yet has written nothing
        shutil.copytree(folder, left)
    return left


class TornSqlite(SqliteRunStore):
    """Can be left between BEGIN and COMMIT, a large append in the log already."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        super().__init__(path, **options)
        self._torn: list[sqlite3.Connection] = []

    async def append_torn(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> None:
        """See `Torn`."""
        leases = self._parts.leases
        connection = self._parts.file.connect()
        self._torn.append(connection)
        connection.execute("PRAGMA cache_size = 1")  # a large one spills
        connection.execute("BEGIN IMMEDIATE")
        journal.append(
            connection,
            owned=leases,
            held=leases.of(lease),
            batch=journal.batch_of(records, self._now()),
            expected=(expected_seq, expected_inbox),
        )

    @override
    async def close(self) -> None:
        for connection in self._torn:
            connection.close()
        self._torn.clear()
        await super().close()


class TornJsonl(JsonlRunStore):
    """Can be left with half a line at the end of a journal."""

    async def append_torn(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> None:
        """See `Torn`."""
        owned = self._held(lease)
        encoded = codec.dump_many(records)
        place = self._sessions[lease.session_id].place
        line = place.lines.append(
            lease.epoch, owned.seq + 1, self._now(), len(records), encoded
        )
        os.write(owned.fd, line[: len(line) // 2])
