"""The folder of a JSONL store: its marker, its names, its blobs, its sessions' births.

agentcore-store.json     what this folder is
sessions/<name>/         one folder per session
blobs/<hash>             bytes by content
tmp/                     what is being made, and what is being deleted
"""

from __future__ import annotations

import os
import re
import shutil
import string
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json, to_json

from agentcore._base.canonical import digest
from agentcore.errors import (
    CorruptRecord,
    NotAStore,
    SchemaTooNew,
    SessionExists,
    StoreError,
)
from agentcore.stores._jsonl_inbox import INBOX, INBOX_LOCK
from agentcore.stores._jsonl_journal import JOURNAL, OWNER_LOCK
from agentcore.stores._jsonl_lines import FORMAT
from agentcore.stores._jsonl_os import (
    failing,
    put_file,
    sync,
    sync_folder,
    unique,
    write_all,
)
from agentcore.types.content import BlobRef

MARKER: Final = "agentcore-store.json"
_KIND: Final = "agentcore.jsonl"
_PLAIN: Final = frozenset(string.ascii_lowercase + string.digits + "-_")
_NAME_MAX: Final = 150
_HEAD_MAX: Final = 100
_BLOB_NAME: Final = re.compile(r"[0-9a-f]{32}")
_NAMED: Final = re.compile(rb'"hash":"([0-9a-f]{32})"')
_CHUNK: Final = 1024 * 1024
_OVERLAP: Final = 64
_ABANDONED: Final = 3600.0
"""Seconds after which what lies in `tmp/` belongs to nobody any more."""
_GONE: Final = "gone"
_NOTHING: Final = "nothing was written; reading still works"


def folder_name(session_id: str) -> str:
    """A session id as a folder's name.

    Lower-case letters, digits, `-` and `_` stay; other bytes become `%xx`, so two ids
    are two folders also where case does not count. Long ones end in their digest.
    """
    data = session_id.encode("utf-8", "surrogatepass")
    name = "".join(chr(b) if chr(b) in _PLAIN else f"%{b:02x}" for b in data) or "%"
    return name if len(name) <= _NAME_MAX else f"{name[:_HEAD_MAX]}~{digest(data)}"


def session_id_of(name: str) -> str | None:
    """The id a folder's name stands for, where the name tells."""
    if "~" in name:
        return None
    data = re.sub(
        rb"%([0-9a-f]{2})", lambda m: bytes.fromhex(m[1].decode()), name.encode()
    )
    return "" if name == "%" else data.decode("utf-8", "surrogatepass")


class Root:
    """A store's folder."""

    __slots__ = ("_checked", "_made", "blobs", "path", "power", "scratch", "sessions")

    def __init__(self, path: Path, *, power: bool) -> None:
        self.path = path
        self.power = power
        self.sessions = path / "sessions"
        self.blobs = path / "blobs"
        self.scratch = path / "tmp"
        self._checked = False
        self._made = False

    # --- is it ours? ------------------------------------------------------------

    def check(self) -> None:
        """Look at what is there; a folder that is missing or empty is fine.

        Raises:
            NotAStore: it is something else; it was not touched.
            SchemaTooNew: a newer version made it.
            StoreFailed: it cannot be read.
        """
        if self._checked:
            return
        with failing(f"opening {self.path}", _NOTHING):
            data = self._marker()
            if data is None and self._holds_something():
                data = self._marker()  # it may have been made in between
                if data is None:
                    raise NotAStore(f"{self.path} holds something else")
        if data is not None:
            self._check_marker(data)
            self._checked = True

    def _marker(self) -> bytes | None:
        try:
            return (self.path / MARKER).read_bytes()
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise NotAStore(f"{self.path} is no folder") from None

    def _holds_something(self) -> bool:
        return self.path.is_dir() and not all(map(_is_ours, self.path.iterdir()))

    def _check_marker(self, data: bytes) -> None:
        marker: Any = None
        with suppress(ValueError):
            marker = from_json(data)
        if not isinstance(marker, dict) or marker.get("kind") != _KIND:
            raise NotAStore(f"{self.path / MARKER} belongs to something else")
        version = marker.get("version")
        if version != FORMAT:
            raise SchemaTooNew(
                f"{self.path} has format {version}; this agentcore reads {FORMAT}"
            )

    def make(self) -> None:
        """Make the folder a store, if it is none yet.

        Raises:
            NotAStore, SchemaTooNew: as `check`.
            StoreFailed: the system refused; nothing of the caller's was written.
        """
        self.check()
        if self._made:
            return
        with failing(f"making a store of {self.path}", _NOTHING):
            self.path.mkdir(parents=True, exist_ok=True)
            if not self._checked:
                data = to_json({"kind": _KIND, "version": FORMAT}) + b"\n"
                put_file(self.path, self.path / MARKER, data, power=self.power)
                if self.power:
                    sync_folder(self.path.parent)
            for folder in (self.sessions, self.blobs, self.scratch):
                folder.mkdir(exist_ok=True)
            if self.power:
                sync_folder(self.path)
            self._sweep()
        self._checked = self._made = True

    def _sweep(self) -> None:
        """Finish deletions that a crash interrupted; drop what it left half made."""
        made = {}
        for entry in (*self.scratch.iterdir(), *filter(_is_ours, self.path.iterdir())):
            with suppress(FileNotFoundError):  # it was somebody's, and is done
                made[entry] = os.lstat(entry).st_mtime
        if not made:
            return
        probe = unique(self.scratch, "now")  # the file system's clock, not the host's
        probe.touch()
        now = os.lstat(probe).st_mtime
        probe.unlink()
        for entry, at in made.items():
            if now - at > _ABANDONED:
                with suppress(OSError):
                    self.discard(entry)

    # --- sessions ---------------------------------------------------------------

    def folder(self, session_id: str) -> Path:
        """Where a session lies, or would."""
        return self.sessions / folder_name(session_id)

    def create(self, session_id: str, first_line: bytes) -> None:
        """Make a session: it appears whole or not at all.

        Raises:
            SessionExists: it is there already.
            StoreFailed: the system refused; create it again, it may be there.
        """
        target = self.folder(session_id)
        if target.exists():
            raise SessionExists(session_id)
        made = unique(self.scratch, "new")
        again = "create it again: if it is there by then, `SessionExists` says so"
        with failing(f"creating session {session_id!r}", again):
            try:
                (made / INBOX).mkdir(parents=True)
                (made / OWNER_LOCK).touch()
                # A token, so that nobody takes a later session of this name for it.
                self._write(made / INBOX_LOCK, os.urandom(8).hex().encode() + b"\n")
                self._write(made / JOURNAL, first_line)
                if self.power:
                    sync_folder(made / INBOX)
                    sync_folder(made)
                try:
                    os.rename(made, target)
                except OSError:
                    if target.exists():  # somebody was faster
                        raise SessionExists(session_id) from None
                    raise
                if self.power:
                    sync_folder(self.sessions)
            finally:
                shutil.rmtree(made, ignore_errors=True)

    def _write(self, path: Path, data: bytes) -> None:
        with path.open("xb", buffering=0) as file:
            write_all(file.fileno(), data)
            if self.power:
                sync(file.fileno())

    def set_aside(self, folder: Path) -> Path:
        """Take a session out of the listing, in one step."""
        gone = unique(self.scratch, _GONE)
        os.rename(folder, gone)
        if self.power:
            sync_folder(self.sessions)
            sync_folder(self.scratch)
        return gone

    def discard(self, entry: Path) -> None:
        """Remove what lies in `tmp/`; blobs too that only a deleted session named."""
        if not entry.is_dir():
            entry.unlink(missing_ok=True)
            return
        if entry.name.startswith(_GONE):
            kept = {path.name for path in self.blobs.iterdir()}
            named = kept & set(_names(entry)) if kept else set()
            if named:
                for folder in self.sessions.iterdir():
                    named.difference_update(_names(folder))
                for name in named:
                    (self.blobs / name).unlink(missing_ok=True)
        shutil.rmtree(entry, ignore_errors=True)

    # --- blobs ------------------------------------------------------------------

    def put_blob(self, data: bytes) -> str:
        """Keep bytes under their digest, once."""
        name = digest(data)
        path = self.blobs / name
        with failing("keeping a blob", "nothing names it: putting it again is safe"):
            with suppress(FileNotFoundError):
                if path.stat().st_size == len(data):
                    if self.power:  # whoever put it may not have come to this yet
                        sync_folder(self.blobs)
                    return name
            put_file(self.scratch, path, data, power=self.power)
        return name

    def get_blob(self, ref: BlobRef) -> bytes:
        """The bytes of a blob.

        Raises:
            StoreError: it is not here.
            CorruptRecord: they are no longer the bytes that were put.
        """
        if _BLOB_NAME.fullmatch(ref.hash) is None:
            raise StoreError(f"no blob {ref.hash!r} in this store")
        with failing(f"reading blob {ref.hash}", "nothing was changed"):
            try:
                data = (self.blobs / ref.hash).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                raise StoreError(f"no blob {ref.hash} in this store") from None
        if digest(data) != ref.hash:
            raise CorruptRecord(f"blob {ref.hash} is damaged")
        return data


def _is_ours(entry: Path) -> bool:
    """A marker that a process is writing, or was when it died."""
    return entry.name.startswith("file-")


def _names(folder: Path) -> Iterator[str]:
    """The hashes of the blobs a session's journal and inbox name."""
    for path in (folder / JOURNAL, *(folder / INBOX).glob("*.json")):
        with suppress(FileNotFoundError), path.open("rb") as file:
            rest = b""
            while chunk := file.read(_CHUNK):
                data = rest + chunk
                for found in _NAMED.finditer(data):
                    yield found[1].decode()
                rest = data[-_OVERLAP:]
