"""Copies of sessions: to another session, or through a file to another store.

A copy keeps every record, sequence number, id and inbox position, so that prompts are
reproduced and an input that was accepted once stays accepted. It is written through the
store's own doors, so its records carry the time of the copy.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import anyio
from pydantic_core import from_json, to_json

from agentcore._base.canonical import digest
from agentcore._base.describe import error_text
from agentcore.errors import ConfigError, CorruptRecord, NotAStore, SchemaTooNew
from agentcore.journal.apply import apply
from agentcore.journal.ending import closing_records
from agentcore.journal.state import SessionState
from agentcore.protocols.store import RunStore
from agentcore.types import codec
from agentcore.types.content import BlobRef
from agentcore.types.inbox import InboxItem
from agentcore.types.records import (
    OwnerAcquired,
    OwnerReleased,
    Record,
    SessionCreated,
    StoredRecord,
)
from agentcore.types.runs import ForkOrigin, Lease, SessionHeader

FORMAT: Final = "agentcore session export"
VERSION: Final = 1
_COPIER: Final = "copier"
_BATCH: Final = 256
_BLOB: Final = re.compile(rb'"hash":"([0-9a-f]{32})"')


async def fork_session(store: RunStore, source: str, *, at: int, target: str) -> None:
    """Start `target` with the records of `source` up to number `at` (settled 9, 34).

    A run that is open there is ended in the copy. Blobs are shared, not copied.

    Raises:
        SessionNotFound: there is no session `source`.
        ConfigError: it has no record `at`.
        SessionExists: there is a session `target` already; nothing was written.
    """
    records = await _up_to(store, source, at)
    if not records or records[-1].seq != at:
        last = records[-1].seq if records else 0
        raise ConfigError(
            f"session {source!r} ends at record {last}; at= must be 1 to {last}, "
            f"not {at}"
        )
    page = await store.inbox(source)
    items = [item for _, item in page.items]
    created = _created(records)
    header = SessionHeader(
        target,
        workspace=created.workspace,
        fork_of=ForkOrigin(source, at),
        config_digest=created.config_digest,
    )
    await _write(store, header, records, items)


async def _up_to(store: RunStore, session_id: str, at: int) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    reading = cast("AsyncGenerator[StoredRecord]", store.read(session_id))
    async with aclosing(reading):
        async for stored in reading:
            if stored.seq > at:
                break
            found.append(stored)
    return found


def _created(records: Sequence[StoredRecord]) -> SessionCreated:
    created = records[0].record
    if not isinstance(created, SessionCreated):
        raise CorruptRecord("the first record of a session must be session.created")
    return created


async def _write(
    store: RunStore,
    header: SessionHeader,
    records: Sequence[StoredRecord],
    inbox: Sequence[InboxItem],
) -> None:
    await store.create(header)
    copy = _Copy(store, header.session_id, inbox)
    async with _owned(store, header.session_id) as lease:
        await copy.take(lease, records)
    closing = closing_records(copy.state, "copied")
    if closing or copy.state.owned:
        async with _owned(store, header.session_id) as lease:
            acquired = OwnerAcquired(
                _COPIER, "takeover" if copy.state.owned else "fresh"
            )
            released = OwnerReleased("copied")
            await copy.append(lease, [acquired, *closing, released])


@asynccontextmanager
async def _owned(store: RunStore, session_id: str) -> AsyncIterator[Lease]:
    lease = await store.acquire(session_id, _COPIER)
    try:
        yield lease
    finally:
        with anyio.CancelScope(shield=True):
            await store.release(lease)


class _Copy:
    """Writes records and the inbox items they come from, in their own order."""

    def __init__(
        self, store: RunStore, session_id: str, inbox: Sequence[InboxItem]
    ) -> None:
        self._store = store
        self._session_id = session_id
        self._inbox = inbox
        self._accepted = 0
        self._seq = 1
        self.state = SessionState(session_id)

    async def take(self, lease: Lease, records: Sequence[StoredRecord]) -> None:
        apply(self.state, records[0].record)
        batch: list[Record] = []
        for stored in records[1:]:
            position = getattr(stored.record, "position", 0)
            # `input.placed` has a word under this name.
            mail = isinstance(position, int) and position > self._accepted
            if mail or len(batch) >= _BATCH:
                await self.append(lease, batch)  # the queue is counted by these
                batch = []
            if mail:
                await self._accept_up_to(position)
            apply(self.state, stored.record)
            batch.append(stored.record)
        await self.append(lease, batch)

    async def _accept_up_to(self, position: int) -> None:
        for item in self._inbox[self._accepted : position]:
            await self._store.accept(self._session_id, item)
        self._accepted = position

    async def append(self, lease: Lease, batch: Sequence[Record]) -> None:
        if batch:
            done = await self._store.append(lease, batch, expected_seq=self._seq)
            self._seq = done.seq


# --- through a file -----------------------------------------------------------------


async def export_session(store: RunStore, session_id: str, path: Path | str) -> None:
    """Write a session to one file: its records, its inbox, and the blobs they name.

    The file appears whole or not at all, and takes the place of an older one.

    Raises:
        SessionNotFound: there is no such session; no file was written.
        CorruptRecord: the journal is damaged; no file was written.
    """
    records = [stored async for stored in store.read(session_id)]
    page = await store.inbox(session_id)
    items = [item for _, item in page.items]
    lines: list[dict[str, Any]] = [
        {"format": FORMAT, "version": VERSION, "session": session_id},
        *({"record": codec.dump(s.record), "at": s.at} for s in records),
        *({"item": codec.dump(item)} for item in items),
    ]
    text = b"".join(to_json(line) + b"\n" for line in lines)
    for name in sorted(_named_blobs(text)):
        data = base64.b64encode(await store.get_blob(BlobRef(name, 0))).decode()
        text += to_json({"blob": name, "data": data}) + b"\n"
    target = anyio.Path(path)
    draft = target.with_name(f".{target.name}.part")
    await draft.write_bytes(text)
    await draft.replace(target)


async def import_session(
    store: RunStore, path: Path | str, *, session_id: str | None = None
) -> str:
    """Read a file of `export_session` into a store; returns the session's id.

    A run that was open in the export is ended in the copy: its owner is elsewhere.

    Raises:
        NotAStore: the file is no export; nothing was written.
        SchemaTooNew: a newer agentcore wrote it; nothing was written.
        CorruptRecord: the file is cut off or damaged; nothing was written.
        SessionExists: the store has a session of that id; give another `session_id`.
    """
    lines = (await anyio.Path(path).read_bytes()).splitlines()
    head = _parsed(lines[0] if lines else b"", 1)
    if head.get("format") != FORMAT:
        raise NotAStore(f"{path} is no session export of agentcore")
    if head.get("version") != VERSION:
        raise SchemaTooNew(
            f"{path} is an export of version {head.get('version')}; this agentcore "
            f"reads version {VERSION}. Upgrade agentcore to import it"
        )
    records, items, blobs = _contents(lines[1:])
    if not records:
        raise CorruptRecord(f"{path} holds no records: it is cut off")
    damaged = [name for name, data in blobs.items() if digest(data) != name]
    missing = _named_blobs(b"\n".join(lines)) - blobs.keys()
    if damaged or missing:
        raise CorruptRecord(
            f"{path}: blob {min([*damaged, *missing])} is missing or damaged"
        )
    for data in blobs.values():
        await store.put_blob(data)
    created = _created(records)
    header = SessionHeader(
        session_id or created.session_id,
        created.root_session_id,
        created.parent_session_id,
        created.parent_call_id,
        created.workspace,
        ForkOrigin(created.session_id, records[-1].seq),
        created.config_digest,
        extra=created.extra,
    )
    await _write(store, header, records, items)
    return header.session_id


def _contents(
    lines: Iterable[bytes],
) -> tuple[list[StoredRecord], list[InboxItem], dict[str, bytes]]:
    records: list[StoredRecord] = []
    items: list[InboxItem] = []
    blobs: dict[str, bytes] = {}
    for number, text in enumerate(lines, start=2):
        line = _parsed(text, number)
        try:
            if "record" in line:
                record = codec.RECORDS.load(line["record"])
                records.append(StoredRecord(len(records) + 1, 0, line["at"], record))
            elif "item" in line:
                items.append(codec.INBOX_ITEMS.load(line["item"]))
            elif "blob" in line:
                blobs[line["blob"]] = base64.b64decode(line["data"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptRecord(
                f"line {number} of the export is damaged: {error_text(error)}"
            ) from error
    return records, items, blobs


def _named_blobs(text: bytes) -> set[str]:
    """The blobs that encoded records and items name."""
    return {name.decode() for name in _BLOB.findall(text)}


def _parsed(text: bytes, number: int) -> Mapping[str, Any]:
    try:
        value = from_json(text)
    except ValueError as error:
        if number == 1:
            return {}
        raise CorruptRecord(f"line {number} of the export is no JSON") from error
    return value if isinstance(value, dict) else {}


__all__ = ["export_session", "fork_session", "import_session"]
