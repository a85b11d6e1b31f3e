"""What a host sees of a run: committed records, and live deltas that are never stored.

The deltas of the model are the same objects the provider made: `TextDelta`,
`ThinkingDelta`, `ToolInputStarted`, `ToolInputDelta`, `ToolInputReady`, `FileReady`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.model import (
    FileReady,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolInputReady,
    ToolInputStarted,
)
from agentcore.types.records import Record


@frozen
class Committed:
    """A record that is in the journal: gap-free, re-readable from any `seq`."""

    seq: int
    record: Record
    kind: Literal["committed"] = "committed"


@frozen
class ToolProgress:
    """A running tool tells how far it is."""

    call_id: str
    message: str = ""
    progress: float | None = None
    total: float | None = None
    kind: Literal["tool_progress"] = "tool_progress"


@frozen
class RetryScheduled:
    """A model request failed and is tried again after `delay` seconds."""

    attempt: int
    """The attempt that failed, from 1."""
    max_attempts: int
    delay: float
    reason: str
    kind: Literal["retry_scheduled"] = "retry_scheduled"


@frozen
class RunWarning:
    """Something a host should know that did not stop the run."""

    code: str
    message: str
    kind: Literal["warning"] = "warning"


Delta: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolInputStarted
    | ToolInputDelta
    | ToolInputReady
    | FileReady
    | ToolProgress
    | RetryScheduled
    | RunWarning
)

RunEvent: TypeAlias = Committed | Delta

ToolPartState: TypeAlias = Literal[
    "input-streaming",
    "input-available",
    "input-error",
    "approval-requested",
    "approval-responded",
    "executing",
    "output-available",
    "output-error",
    "output-denied",
]
"""The states of a tool part in a user interface; a fold of the events (settled 12)."""

__all__ = [
    "Committed",
    "Delta",
    "FileReady",
    "RetryScheduled",
    "RunEvent",
    "RunWarning",
    "TextDelta",
    "ThinkingDelta",
    "ToolInputDelta",
    "ToolInputReady",
    "ToolInputStarted",
    "ToolPartState",
    "ToolProgress",
]
