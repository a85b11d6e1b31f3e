"""The listing of a JSONL store: first and last line of every journal it shows."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pydantic_core import from_json

from agentcore.errors import AgentCoreError, SessionNotFound
from agentcore.stores._jsonl_inbox import INBOX_LOCK
from agentcore.stores._jsonl_journal import JOURNAL
from agentcore.stores._jsonl_lines import Lines, Unsealed
from agentcore.stores._jsonl_root import Root, folder_name, session_id_of
from agentcore.stores._jsonl_walk import last_line
from agentcore.types import codec
from agentcore.types.runs import SessionInfo, SessionQuery

_FIRST: Final = 1024 * 1024

_log = logging.getLogger(__name__)


class Born(NamedTuple):
    """What never changes of a session; compares by age."""

    at: float
    name: str
    session_id: str
    parent: str | None


class Listing:
    """Lists sessions; remembers what never changes of each."""

    __slots__ = ("_known", "_root")

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[tuple[str, int, int], Born] = {}
        """By name and inode of the folder, and when it was made."""

    def sessions(self, query: SessionQuery) -> list[SessionInfo]:
        """See `RunStore.sessions`."""
        born = sorted(self._all(), reverse=True)
        start = 0
        if query.before is not None:
            name = folder_name(query.before)
            places = [i for i, b in enumerate(born) if b.name == name]
            if not places:
                raise SessionNotFound(query.before)
            start = places[0] + 1
        found: list[SessionInfo] = []
        for one in born[start:]:
            if len(found) >= query.limit:
                break
            if _asked_for(one, query) and (info := self._info(one)) is not None:
                found.append(info)
        return found

    def _all(self) -> list[Born]:
        known: dict[tuple[str, int, int], Born] = {}
        try:
            entries = list(os.scandir(self._root.sessions))
        except FileNotFoundError:
            return []
        for entry in entries:
            made = 0
            with suppress(FileNotFoundError, NotADirectoryError):
                made = os.stat(os.path.join(entry.path, INBOX_LOCK)).st_mtime_ns
            key = (entry.name, entry.inode(), made)
            born = self._known.get(key) or _born(Path(entry.path))
            if born is not None:
                known[key] = born
        self._known = known
        return list(known.values())

    def _info(self, born: Born) -> SessionInfo | None:
        path = self._root.sessions / born.name / JOURNAL
        try:
            with path.open("rb") as file:
                fd = file.fileno()
                last = last_line(
                    fd, Lines(born.session_id), os.fstat(fd).st_size, marks=False
                )
        except FileNotFoundError:  # deleted meanwhile
            return None
        at, records = (last.at, last.last) if last is not None else (born.at, 0)
        return SessionInfo(born.session_id, born.at, at, records, born.parent)


def _born(folder: Path) -> Born | None:
    """What the first line of a session says; guessed where that is damaged."""
    path = folder / JOURNAL
    try:
        with path.open("rb") as file:
            raw = file.readline(_FIRST).rstrip(b"\n")
            at = os.fstat(file.fileno()).st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        session_id = str(from_json(raw)["session_id"])
        line = Lines(session_id).parse(raw)
        (created,) = codec.RECORDS.load_many(line.records)
    except (AgentCoreError, Unsealed, LookupError, TypeError, ValueError):
        guessed = session_id_of(folder.name)
        _log.warning("%s is damaged in its first line", path)
        return None if guessed is None else Born(at, folder.name, guessed, None)
    parent = getattr(created, "parent_session_id", None)
    return Born(line.at, folder.name, session_id, parent)


def _asked_for(born: Born, query: SessionQuery) -> bool:
    parent = query.parent_session_id
    return (
        born.session_id.startswith(query.prefix)
        and (parent is None or born.parent == parent)
        and not (query.roots_only and born.parent is not None)
    )
