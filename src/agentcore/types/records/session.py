"""Records of a session's life: creation, owners, state."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.actor import Actor
from agentcore.types.json import EMPTY, JsonObject, JsonValue
from agentcore.types.runs import ForkOrigin, Workspace


@frozen
class SessionCreated:
    """The first record of every journal."""

    session_id: str
    schema_version: int
    root_session_id: str | None = None
    parent_session_id: str | None = None
    parent_call_id: str | None = None
    workspace: Workspace | None = None
    fork_of: ForkOrigin | None = None
    config_digest: str = ""
    kind: Literal["session.created"] = "session.created"
    extra: JsonObject = EMPTY


@frozen
class OwnerAcquired:
    """An owner took the session; its epoch stands in the envelope from here on."""

    owner: str
    reason: Literal["fresh", "takeover"] = "fresh"
    host: str = ""
    lock_file: str = ""
    kind: Literal["owner.acquired"] = "owner.acquired"
    extra: JsonObject = EMPTY


@frozen
class OwnerReleased:
    """The owner let go cleanly; without this record the next one takes over."""

    reason: str = ""
    kind: Literal["owner.released"] = "owner.released"
    extra: JsonObject = EMPTY


@frozen
class ResumeAttempted:
    """The n-th attempt in a row to resume this run without progress."""

    run_id: str
    n: int
    kind: Literal["resume.attempted"] = "resume.attempted"
    extra: JsonObject = EMPTY


@frozen
class CwdMigrated:
    """The session was moved to another working directory, on purpose."""

    old: Workspace
    new: Workspace
    actor: Actor | None = None
    kind: Literal["cwd.migrated"] = "cwd.migrated"
    extra: JsonObject = EMPTY


@frozen
class StateChanged:
    """One key of the session's state: todos, plan mode, grants … (settled 6)."""

    key: str
    value: JsonValue = None
    """`None` deletes the key."""
    actor: Actor | None = None
    cause: str = ""
    position: int = 0
    """Inbox position of what caused it; 0 where nothing from outside did."""
    kind: Literal["state.changed"] = "state.changed"
    extra: JsonObject = EMPTY
