"""Records of work around the loop: compaction, evidence, subruns."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.content import BlobRef
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.runs import Stop
from agentcore.types.usage import RunUsage

CompactionStatus: TypeAlias = Literal[
    "installed", "failed", "stale", "not_smaller", "aborted"
]


@frozen
class CompactionIntent:
    """A range of the journal is about to be summarised."""

    compaction_id: str
    trigger: Literal["threshold", "overflow", "manual", "model_switch"]
    source_start: int
    source_end: int
    """First and last sequence number of the range."""
    source_hash: str
    pinned_input_ids: tuple[str, ...] = ()
    kind: Literal["compaction.intent"] = "compaction.intent"
    extra: JsonObject = EMPTY


@frozen
class CompactionOutcome:
    """What became of it; only an installed summary is ever projected."""

    compaction_id: str
    status: CompactionStatus
    summary: str = ""
    size_before: int = 0
    size_after: int = 0
    kind: Literal["compaction.outcome"] = "compaction.outcome"
    extra: JsonObject = EMPTY


@frozen
class EvidenceStarted:
    """A check begins; effects after this record make its result stale."""

    evidence_id: str
    check: str
    fingerprint: str | None = None
    kind: Literal["evidence.started"] = "evidence.started"
    extra: JsonObject = EMPTY


@frozen
class EvidenceRecorded:
    """What the check found."""

    evidence_id: str
    result: Literal["passed", "failed", "error"]
    output: str = ""
    full: BlobRef | None = None
    interrupted: bool = False
    """The check was cut short: an error that says nothing, and it is due again."""
    repair: int = 0
    """The round of repair this begins: the output is shown to the model; 0 for none."""
    kind: Literal["evidence.recorded"] = "evidence.recorded"
    extra: JsonObject = EMPTY


@frozen
class SubrunLinked:
    """A call owns a child session; written before the child starts."""

    call_id: str
    child_session_id: str
    kind: Literal["subrun.linked"] = "subrun.linked"
    extra: JsonObject = EMPTY


@frozen
class SubrunSettled:
    """The child's run ended."""

    call_id: str
    child_session_id: str
    stop: Stop
    usage: RunUsage = RunUsage()
    kind: Literal["subrun.settled"] = "subrun.settled"
    extra: JsonObject = EMPTY
