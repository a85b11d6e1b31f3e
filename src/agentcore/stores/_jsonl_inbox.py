"""The inbox of a session: a folder with one file per item, its position the name.

`accept` writes the item beside it, makes it durable, and renames it in: that is the
acknowledgement. `inbox.lock` is held meanwhile, by whatever process accepts, and by an
owner who appends on condition that nothing was accepted. Items stay for ever, and so do
their ids; `ids.jsonl` lists them, so that a new process needs to open one file instead
of each. It is only a list of what the folder holds, and is made again where it lags.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from agentcore.errors import AgentCoreError, CorruptRecord, SessionNotFound
from agentcore.protocols.store import InboxPage
from agentcore.stores._common import (
    MAX_WAITING,
    MAX_WAITING_BYTES,
    Queue,
    check_same,
    item_key,
)
from agentcore.stores._jsonl_journal import Place
from agentcore.stores._jsonl_lines import FORMAT, Unsealed, seal, unseal
from agentcore.stores._jsonl_os import Lock, failing, put_file, sync_folder, write_all
from agentcore.stores._jsonl_walk import Walk
from agentcore.types import codec
from agentcore.types.inbox import InboxItem, Input
from agentcore.types.runs import Receipt

INBOX: Final = "inbox"
INBOX_LOCK: Final = "inbox.lock"
IDS: Final = "ids.jsonl"
_HEAD: Final = b'{"v":%d,"item":' % FORMAT
_SEAL_SIZE: Final = 18
_AGAIN: Final = "the item may or may not be durable: the same call again is safe"
_QUEUE_RECORDS: Final = b'"kind":"input.'


class _Entry(NamedTuple):
    """A line of `ids.jsonl`."""

    position: int
    waits: int
    """Bytes that count against the bound; 0 for what is no input."""


class Inbox:
    """What one handle knows of a session's inbox; any thread may use it."""

    __slots__ = (
        "_bytes", "_count", "_folder", "_ids", "_listed", "_nonce", "_place",
        "_prefix", "_queue", "_queue_end", "_version", "mine", "mutex",
    )  # fmt: skip

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = place.folder / INBOX
        self._prefix = os.path.join(self._folder, "")
        """Text: joining paths would be the dearest part of an append."""
        self.mutex = threading.Lock()
        """Held while this handle accepts."""
        self._forget(b"")

    def _forget(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._version = self.mine = 0
        """`mine` is the newest position this handle gave out."""
        self._ids: dict[str, _Entry] = {}
        self._bytes = 0
        self._count = 0
        self._listed = 0
        """Bytes of `ids.jsonl` that are in `_ids`."""
        self._queue: Queue | None = None
        self._queue_end = 0

    # --- without the lock -------------------------------------------------------

    def version(self) -> int:
        """Position of the last item. Looks for the next file, so it is never old."""
        version = self._version
        if version and not self._holds(version):
            version = 0  # the session was deleted, and made again
        while self._holds(version + 1):
            version += 1
        self._version = version
        return version

    def page(self, after: int) -> InboxPage:
        """See `RunStore.inbox`.

        Raises:
            CorruptRecord: an item is damaged.
        """
        version = self.version()
        if version <= after:
            return InboxPage(version, ())
        with failing(f"reading {self._folder}", "nothing was changed"):
            if self._place.power:
                # Whoever accepted may not have come to this yet, and no owner may
                # journal a position that a power loss would hand out again.
                with suppress(PermissionError):
                    sync_folder(self._folder)
            first = max(after, 0) + 1
            items = tuple((n, self._load(n)) for n in range(first, version + 1))
        return InboxPage(version, items)

    def _path(self, position: int) -> str:
        return f"{self._prefix}{position:010d}.json"

    def _holds(self, position: int) -> bool:
        return os.path.exists(self._path(position))

    def _load(self, position: int) -> InboxItem:
        path = self._path(position)
        line = Path(path).read_bytes().rstrip(b"\n")
        try:
            unseal(line)
        except Unsealed:
            raise CorruptRecord(f"the inbox item {path} is damaged") from None
        return codec.INBOX_ITEMS.load_json(line[len(_HEAD) : -_SEAL_SIZE])

    # --- under the lock ---------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep everybody else from accepting.

        Raises:
            SessionNotFound: the session was deleted.
            StoreFailed: somebody holds the lock and does not go on.
        """
        path = self._place.folder / INBOX_LOCK
        while True:
            if not self._place.journal.exists():
                raise SessionNotFound(self._place.session_id)
            try:
                lock = Lock(path)
            except FileNotFoundError:
                raise SessionNotFound(self._place.session_id) from None
            with lock:
                lock.wait()
                if not lock.is_current():
                    continue
                nonce = os.pread(lock.fd, 64, 0)
                with self.mutex:
                    if nonce != self._nonce:  # another session of the same name
                        self._forget(nonce)
                    yield
                return

    def accept(self, item: InboxItem, encoded: bytes) -> Receipt:
        """See `RunStore.accept`; `encoded` is the item's JSON."""
        item_id = item_key(item)
        with failing(f"accepting into {self._folder}", _AGAIN), self.locked():
            position = self._catch_up() + 1
            known = self._ids.get(item_id)
            if known is not None:
                first = self._load(known.position)
                check_same(self._place.session_id, first, item)
                return Receipt(item_id, known.position, duplicate=True)
            waits = len(encoded) if type(item) is Input else 0
            if waits:
                self._admit(item_id, waits)
            try:
                self._write(position, encoded)
            except BaseException:
                self._forget(self._nonce)  # the queue has counted it in
                raise
            with suppress(OSError):  # the item is durable; the list is caught up later
                self._list(item_id, _Entry(position, waits))
            return Receipt(item_id, position)

    def _write(self, position: int, encoded: bytes) -> None:
        place = self._place
        data = seal(_HEAD + encoded)
        put_file(place.scratch, Path(self._path(position)), data, power=place.power)
        self._version = self.mine = position

    def _catch_up(self) -> int:
        """Learn what other processes have accepted; gives the number of items."""
        self._read_list()
        count = self._count
        if count and not self._holds(count):
            # A power loss took the file of an item nobody got a receipt for.
            os.truncate(self._place.folder / IDS, 0)
            self._forget(self._nonce)
            count = 0
        healed = False
        while self._holds(count + 1):
            count += 1
            item = self._load(count)
            waits = len(codec.dump_json(item)) if type(item) is Input else 0
            self._list(item_key(item), _Entry(count, waits))
            healed = True
        if healed and self._place.power:
            sync_folder(self._folder)
        return count

    def _read_list(self) -> None:
        path = self._place.folder / IDS
        size = path.stat().st_size if path.exists() else 0
        if size < self._listed:  # somebody deleted it, or made it again
            self._forget(self._nonce)
        if size == self._listed:
            return
        with path.open("rb") as file:
            file.seek(self._listed)
            lines = file.read().split(b"\n")
        for raw in lines[:-1]:
            entry: Any = None
            with suppress(Unsealed, ValueError):
                unseal(raw)
                entry = from_json(raw)
            if entry is None or entry["position"] != self._count + 1:
                break
            self._note(entry["id"], _Entry(entry["position"], entry["waits"]))
            self._listed += len(raw) + 1
        if self._listed < size:
            os.truncate(path, self._listed)  # damaged from here on: listed anew

    def _list(self, item_id: str, entry: _Entry) -> None:
        body = b'{"position":%d,"id":%s,"waits":%d' % (
            entry.position,
            to_json(item_id),
            entry.waits,
        )
        line = seal(body)
        path = self._place.folder / IDS
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        fd = os.open(path, flags, 0o666)
        try:
            write_all(fd, line)
        finally:
            os.close(fd)
        self._note(item_id, entry)
        self._listed += len(line)

    def _note(self, item_id: str, entry: _Entry) -> None:
        self._ids[item_id] = entry
        self._count = entry.position
        self._bytes += entry.waits
        if self._queue is not None and entry.waits:
            self._queue.waiting.setdefault(item_id, entry.waits)

    # --- the bound --------------------------------------------------------------

    def _admit(self, item_id: str, size: int) -> None:
        if self._queue is None and (
            self._count < MAX_WAITING and self._bytes + size <= MAX_WAITING_BYTES
        ):
            return  # even if none of them was ever placed
        queue = self._queue
        if queue is None:
            queue = self._queue = Queue()
            queue.waiting = {k: e.waits for k, e in self._ids.items() if e.waits}
        self._follow(queue)
        queue.admit(self._place.session_id, item_id, size)

    def _follow(self, queue: Queue) -> None:
        """Follow the journal: which inputs have left the queue since."""
        place = self._place
        with place.journal.open("rb") as file:
            fd = file.fileno()
            end = os.fstat(fd).st_size
            walk = Walk(place.journal, place.lines, end, self._queue_end)
            while not walk.done:
                for line in walk.step(fd):
                    if _QUEUE_RECORDS in line.records:
                        with suppress(AgentCoreError):  # what is damaged frees nothing
                            queue.follow(codec.RECORDS.load_many(line.records))
            self._queue_end = walk.offset
