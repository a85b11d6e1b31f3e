"""The journal's records (run semantics 2.2), one frozen dataclass per kind.

A record is immutable history: fields are added with a default, never renamed or given
another meaning. A change that a reader could misread raises `SCHEMA_VERSION` and gets
a line in `SCHEMA_VERSIONS`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.json import Unknown
from agentcore.types.records.decisions import (
    ApprovalDecided,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from agentcore.types.records.inputs import (
    CancelRequested,
    InputAccepted,
    InputParked,
    InputPlaced,
    InputRedelivered,
    InputReleased,
    InputWithdrawn,
)
from agentcore.types.records.ledger import UsageRecorded, UsageReserved
from agentcore.types.records.model import (
    ModelIntent,
    ModelOutcome,
    ModelPartial,
    OutputRejected,
)
from agentcore.types.records.run import RunEnded, RunPaused, RunStarted, RunUnpaused
from agentcore.types.records.session import (
    CwdMigrated,
    OwnerAcquired,
    OwnerReleased,
    ResumeAttempted,
    SessionCreated,
    StateChanged,
)
from agentcore.types.records.tools import (
    ToolCheckpoint,
    ToolIntent,
    ToolLateResult,
    ToolOutcome,
    ToolPlanned,
    ToolsAdvertised,
)
from agentcore.types.records.work import (
    CompactionIntent,
    CompactionOutcome,
    EvidenceRecorded,
    EvidenceStarted,
    SubrunLinked,
    SubrunSettled,
)

SCHEMA_VERSION: Final = 1
SCHEMA_VERSIONS: Final = {1: "the first schema"}

Record: TypeAlias = (
    SessionCreated
    | OwnerAcquired
    | OwnerReleased
    | ResumeAttempted
    | CwdMigrated
    | StateChanged
    | InputAccepted
    | InputPlaced
    | InputParked
    | InputReleased
    | InputRedelivered
    | InputWithdrawn
    | CancelRequested
    | RunStarted
    | RunPaused
    | RunUnpaused
    | RunEnded
    | ModelIntent
    | ModelPartial
    | ModelOutcome
    | OutputRejected
    | ToolsAdvertised
    | ToolPlanned
    | ToolIntent
    | ToolCheckpoint
    | ToolOutcome
    | ToolLateResult
    | ApprovalRequested
    | ApprovalDecided
    | QuestionAsked
    | QuestionAnswered
    | UsageReserved
    | UsageRecorded
    | CompactionIntent
    | CompactionOutcome
    | EvidenceStarted
    | EvidenceRecorded
    | SubrunLinked
    | SubrunSettled
    | Unknown
)


@frozen
class StoredRecord:
    """A record in its envelope, as a store returns it."""

    seq: int
    """Gapless per session, from 1."""
    epoch: int
    """Generation of the owner that wrote it; 0 for the creator."""
    at: float
    """Wall time of the append, seconds since the epoch."""
    record: Record


__all__ = [
    "SCHEMA_VERSION",
    "SCHEMA_VERSIONS",
    "ApprovalDecided",
    "ApprovalRequested",
    "CancelRequested",
    "CompactionIntent",
    "CompactionOutcome",
    "CwdMigrated",
    "EvidenceRecorded",
    "EvidenceStarted",
    "InputAccepted",
    "InputParked",
    "InputPlaced",
    "InputRedelivered",
    "InputReleased",
    "InputWithdrawn",
    "ModelIntent",
    "ModelOutcome",
    "ModelPartial",
    "OutputRejected",
    "OwnerAcquired",
    "OwnerReleased",
    "QuestionAnswered",
    "QuestionAsked",
    "Record",
    "ResumeAttempted",
    "RunEnded",
    "RunPaused",
    "RunStarted",
    "RunUnpaused",
    "SessionCreated",
    "StateChanged",
    "StoredRecord",
    "SubrunLinked",
    "SubrunSettled",
    "ToolCheckpoint",
    "ToolIntent",
    "ToolLateResult",
    "ToolOutcome",
    "ToolPlanned",
    "ToolsAdvertised",
    "Unknown",
    "UsageRecorded",
    "UsageReserved",
]
