"""The state of every tool call as a user interface shows it: a fold of a run's events.

    input-streaming → input-available → [approval-requested → approval-responded]
                    → executing → output-available | output-error | output-denied
    input-streaming → input-error, where the arguments cannot be used

A call is known by its place in the reply while it streams, and by its call id from the
moment it is on record (settled 12, requirements B10).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from agentcore._base.frozen import frozen
from agentcore.types import records as r
from agentcore.types.events import Committed, RunEvent, ToolPartState
from agentcore.types.model import ToolInputReady, ToolInputStarted

_BY_STATUS: Final[Mapping[str, ToolPartState]] = {
    "ok": "output-available",
    "denied": "output-denied",
    "invalid_args": "input-error",
}


@frozen
class ToolPart:
    """One call on a screen."""

    id: str
    """The call id; `reply:N` while the reply still streams."""
    name: str
    state: ToolPartState


class ToolParts:
    """Feed it the events of a run, in order; read `parts` whenever you draw."""

    def __init__(self) -> None:
        self._parts: dict[str, ToolPart] = {}

    @property
    def parts(self) -> Mapping[str, ToolPart]:
        """The calls by id, in the order they appeared."""
        return MappingProxyType(self._parts)

    def add(self, event: RunEvent) -> None:
        """Take the next event."""
        kind = type(event.record) if isinstance(event, Committed) else type(event)
        take = self._TAKES.get(kind)
        if take is not None:
            take(self, event.record if isinstance(event, Committed) else event)

    def _put(self, part_id: str, name: str, state: ToolPartState) -> None:
        self._parts[part_id] = ToolPart(part_id, name, state)

    def _move(self, part_id: str, state: ToolPartState) -> None:
        part = self._parts.get(part_id)
        if part is not None:
            self._parts[part_id] = ToolPart(part_id, part.name, state)

    def _started(self, delta: ToolInputStarted) -> None:
        self._put(f"reply:{delta.index}", delta.name, "input-streaming")

    def _ready(self, delta: ToolInputReady) -> None:
        self._put(f"reply:{delta.index}", delta.name, "input-available")

    def _ended_reply(self, record: r.ModelOutcome) -> None:
        # What streamed is on record now, by its own id, or it never was a call.
        for part_id in [name for name in self._parts if name.startswith("reply:")]:
            del self._parts[part_id]

    def _planned(self, record: r.ToolPlanned) -> None:
        self._put(record.call_id, record.name, "input-available")

    def _asked(self, record: r.ApprovalRequested) -> None:
        self._move(record.call_id, "approval-requested")

    def _decided(self, record: r.ApprovalDecided) -> None:
        self._move(record.call_id, "approval-responded")

    def _running(self, record: r.ToolIntent) -> None:
        self._move(record.call_id, "executing")

    def _ended(self, record: r.ToolOutcome) -> None:
        self._move(record.call_id, _BY_STATUS.get(record.status, "output-error"))

    _TAKES: ClassVar[dict[type, Any]] = {
        ToolInputStarted: _started,
        ToolInputReady: _ready,
        r.ModelOutcome: _ended_reply,
        r.ToolPlanned: _planned,
        r.ApprovalRequested: _asked,
        r.ApprovalDecided: _decided,
        r.ToolIntent: _running,
        r.ToolOutcome: _ended,
    }
