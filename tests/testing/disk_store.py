"""A store that survives a kill, as small as can be, for the tests of the crash kit.

It is a memory store and the list of all its changes on disk, which the next process
makes again. One process at a time; nobody else may read before a change is on disk.
"""

import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import anyio
from typing_extensions import override

from agentcore.protocols.runtime import Clock
from agentcore.protocols.store import Appended
from agentcore.stores.memory import MemoryRunStore
from agentcore.types.inbox import InboxItem
from agentcore.types.records import Record
from agentcore.types.runs import Lease, Receipt, SessionHeader


class DiskStore(MemoryRunStore):
    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        super().__init__(clock=clock)
        self._path = path
        self._file = -1

    async def __aenter__(self) -> Self:
        if self._file < 0:
            if not self._sessions:  # else it was only closed in between
                await self._make_again()
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._take_from_the_dead()
        return self

    async def __aexit__(self, *_: object) -> None:
        os.close(self._file)
        self._file = -1

    async def _make_again(self) -> None:
        """Repeat every change but the last one, if it is not whole."""
        if not self._path.exists():
            return
        with self._path.open("rb+") as file:
            whole = 0
            while True:
                try:
                    method, arguments, expected = pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    break
                whole = file.tell()
                done = getattr(MemoryRunStore, method)(self, *arguments, **expected)
                if done is not None:
                    await done
            file.truncate(whole)

    def _take_from_the_dead(self) -> None:
        for session in self._sessions.values():
            if session.owner is not None:
                lease = Lease(session.session_id, session.owner, session.epoch)
                self._abandon(lease)
                self._write("_abandon", lease)

    def _write(self, method: str, *arguments: Any, **expected: Any) -> None:
        data = pickle.dumps((method, arguments, expected))
        os.write(self._file, data)
        os.fsync(self._file)

    @override
    async def create(self, header: SessionHeader) -> None:
        await super().create(header)
        self._write("create", header)

    @override
    async def accept(self, session_id: str, item: InboxItem) -> Receipt:
        receipt = await super().accept(session_id, item)
        self._write("accept", session_id, item)
        return receipt

    @override
    async def acquire(self, session_id: str, owner: str) -> Lease:
        lease = await super().acquire(session_id, owner)
        self._write("acquire", session_id, owner)
        return lease

    @override
    async def release(self, lease: Lease) -> None:
        await super().release(lease)
        self._write("release", lease)

    @override
    async def append(
        self, lease: Lease, records: Sequence[Record], **expected: Any
    ) -> Appended:
        done = await super().append(lease, records, **expected)
        self._write("append", lease, tuple(records), **expected)
        return done

    async def append_torn(
        self, lease: Lease, records: Sequence[Record], **expected: Any
    ) -> None:
        data = pickle.dumps(("append", (lease, tuple(records)), expected))
        os.write(self._file, data[: len(data) // 2])


def make(folder: Path) -> DiskStore:
    return DiskStore(folder / "store")


async def broken(case: Any) -> None:
    print("about to fail")  # noqa: T201 - the test looks for it
    raise RuntimeError("a work that fails")


async def hangs(case: Any) -> None:
    await anyio.sleep_forever()
