"""What a session is: the fold of its journal, mutable only by `apply`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from agentcore.journal.repetition import Repetition
from agentcore.types.actor import Actor
from agentcore.types.json import JsonObject, JsonValue
from agentcore.types.policy import Approve, Charge, Deny
from agentcore.types.records import (
    ApprovalRequested,
    CancelRequested,
    EvidenceRecorded,
    EvidenceStarted,
    InputAccepted,
    ModelIntent,
    ModelOutcome,
    QuestionAnswered,
    QuestionAsked,
    RunEnded,
    RunPaused,
    ToolOutcome,
    ToolPlanned,
)
from agentcore.types.runs import Evidence, Verification
from agentcore.types.tools import Effects, Replay
from agentcore.types.usage import RunUsage, Usage

# What most sessions never need: one dict for all, replaced and never filled.
NONE: Final[dict[str, Any]] = {}
_UNUSABLE: Final = frozenset({"invalid_args", "unavailable"})


class CallState:
    """One planned call: where it stands."""

    __slots__ = (
        "arguments", "changed", "effects", "outcome", "planned", "replay", "started",
    )  # fmt: skip

    def __init__(self, planned: ToolPlanned, arguments: str) -> None:
        self.planned: ToolPlanned = planned
        self.arguments: str = arguments
        """The model's JSON text."""
        self.started: bool = False
        """Its intent is written: it may have had an effect."""
        self.effects: Effects = "external"
        self.replay: Replay = "never"
        """What the tool declared when the call started."""
        self.changed: JsonObject | None = None
        """The arguments a decision put in the place of the model's."""
        self.outcome: ToolOutcome | None = None


class Totals:
    """What a run spent, as counters; `usage` makes the frozen value of them."""

    __slots__ = (
        "cache_write_tokens",
        "cached_input_tokens",
        "cost_usd",
        "input_tokens",
        "output_tokens",
        "reasoning_tokens",
        "requests",
        "tool_calls",
        "turns",
        "unknown_requests",
    )

    def __init__(self) -> None:
        self.requests: int = 0
        self.turns: int = 0
        self.tool_calls: int = 0
        self.input_tokens: int = 0
        self.output_tokens: int = 0
        self.cached_input_tokens: int = 0
        self.cache_write_tokens: int = 0
        self.reasoning_tokens: int = 0
        self.cost_usd: float = 0.0
        self.unknown_requests: int = 0

    def add(self, usage: Usage | None) -> None:
        """Add one request's usage; what the vendor did not tell counts as unknown."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            self.unknown_requests += 1
            if usage is None:
                return
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        if usage.cached_input_tokens:
            self.cached_input_tokens += usage.cached_input_tokens
        if usage.cache_write_tokens:
            self.cache_write_tokens += usage.cache_write_tokens
        if usage.reasoning_tokens:
            self.reasoning_tokens += usage.reasoning_tokens
        if usage.cost_usd:
            self.cost_usd += usage.cost_usd

    def usage(self) -> RunUsage:
        """The totals, frozen."""
        return RunUsage(
            self.requests,
            self.turns,
            self.tool_calls,
            self.input_tokens,
            self.output_tokens,
            self.cached_input_tokens,
            self.cache_write_tokens,
            self.reasoning_tokens,
            self.cost_usd,
            self.unknown_requests,
        )


@dataclass(slots=True, eq=False, repr=False)
class RunState:
    """The open run, or the last one."""

    run_id: str
    started_seq: int
    input_ids: list[str] = field(default_factory=list)
    actors: tuple[Actor, ...] = ()
    placed_seq: int = 0
    """Where the last input was placed."""
    request: ModelIntent | None = None
    """The request in flight."""
    partials: tuple[str, ...] = ()
    """What had streamed of it, as far as that is on record."""
    head_seq: int = 0
    """Prefix the last request showed the model."""
    outcome: ModelOutcome | None = None
    """The last outcome of a main request."""
    batch: list[CallState] = field(default_factory=list)
    """The calls of that reply, as planned, in source order."""
    calls: dict[str, CallState] = field(default_factory=dict)
    """All calls of the run."""
    open_calls: int = 0
    final_call: CallState | None = None
    """The accepted call of the output tool."""
    fatal_call: CallState | None = None
    """A failed call of a tool that declares `on_fatal="end"`."""
    exhausted: str = ""
    """The limit that forbade a call."""
    rejected: str = ""
    """Why the last reply was not accepted as output; empty if it was."""
    attempts: int = 0
    """Failed attempts in a row."""
    output_rejections: int = 0
    empty_rounds: int = 0
    missing_call_rounds: int = 0
    truncated_rounds: int = 0
    invalid_rounds: int = 0
    tool_uses: dict[str, int] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    repetition: Repetition = field(default_factory=Repetition)
    waiting: dict[str, ApprovalRequested | QuestionAsked] = field(
        default_factory=lambda: NONE
    )
    """What must be decided, by call id."""
    decisions: dict[str, Approve | Deny] = field(default_factory=lambda: NONE)
    """What was decided on calls that had not started then, by call id."""
    answers: dict[str, tuple[QuestionAnswered, ...]] = field(
        default_factory=lambda: NONE
    )
    """What was answered to the questions of a call, in the order it asked them."""
    unconfirmed: tuple[str, ...] = ()
    """Calls of unknown outcome about which a person must say what happened."""
    groups: dict[str, tuple[int, float | None]] = field(default_factory=lambda: NONE)
    """Id and start of the process group of a call that has no outcome, by call id."""
    effects: dict[str, int] = field(default_factory=lambda: NONE)
    """Where the last outcome of a tool was that had, or may have had, an effect."""
    checking: EvidenceStarted | None = None
    checking_seq: int = 0
    evidence: dict[str, Evidence] = field(default_factory=lambda: NONE)
    """The newest evidence of each check, by its name."""
    repairs: int = 0
    repair_seq: int = 0
    """Where the output of a failed check was shown to the model."""
    cancel: CancelRequested | None = None
    paused: RunPaused | None = None
    ended: RunEnded | None = None

    @property
    def is_open(self) -> bool:
        """Not ended; it may be paused."""
        return self.ended is None

    def count_invalid(self) -> None:
        """A reply all of whose calls were unusable is one round closer to `stuck`.

        A rejected final answer has its own bound.
        """
        if self.rejected:
            return
        for call in self.batch:
            outcome = call.outcome
            if outcome is None or outcome.status not in _UNUSABLE:
                self.invalid_rounds = 0
                return
        self.invalid_rounds += 1

    def note_evidence(self, record: EvidenceRecorded, seq: int) -> None:
        """A check that was under way has found something."""
        started = self.checking
        if started is None or started.evidence_id != record.evidence_id:
            return
        self.checking = None
        found = Evidence(
            record.evidence_id,
            started.check,
            record.result,
            0 if record.interrupted else self.checking_seq,
            started.fingerprint,
            record.output,
        )
        self.evidence = {**self.evidence, started.check: found}
        if record.repair:
            self.repairs = record.repair
            self.repair_seq = seq
            self.final_call = None

    def is_current(self, evidence: Evidence) -> bool:
        """Nothing has happened since that the check did not see."""
        changed = max(self.effects.values(), default=0)
        return max(changed, self.placed_seq) <= evidence.start_seq

    @property
    def verification(self) -> Verification:
        """What the evidence says of the run's effects (run semantics 2.8)."""
        if not self.effects:
            return "not_applicable"
        results = {
            found.result if self.is_current(found) else "stale"
            for found in self.evidence.values()
            if found.start_seq
        }
        if "failed" in results:
            return "failed"
        if "passed" in results and "error" not in results:
            return "stale" if "stale" in results else "passed"
        return "stale" if "stale" in results else "unverified"


class SessionState:
    """A session: its open run, its queues, its small durable state."""

    __slots__ = (
        "advertised",
        "epoch",
        "inbox_seen",
        "owned",
        "parent_call_id",
        "parked",
        "pending",
        "reservations",
        "resume_attempts",
        "root_session_id",
        "run",
        "seq",
        "session_id",
        "values",
        "workspace_path",
    )

    def __init__(self, session_id: str) -> None:
        self.session_id: str = session_id
        self.root_session_id: str = session_id
        self.parent_call_id: str | None = None
        self.workspace_path: str | None = None
        self.seq: int = 0
        self.epoch: int = 0
        self.owned: bool = False
        """The last owner has not released."""
        self.inbox_seen: int = 0
        """Inbox position up to which items are folded in."""
        self.pending: dict[str, InputAccepted] = {}
        """Accepted and not placed, in order of acceptance."""
        self.parked: dict[str, InputAccepted] = NONE
        self.reservations: dict[str, Charge] = {}
        self.advertised: str = ""
        """Digest of the tools the model was last offered."""
        self.resume_attempts: int = 0
        self.run: RunState | None = None
        self.values: dict[str, JsonValue] = NONE

    @property
    def open_run(self) -> RunState | None:
        """The run that has not ended, if there is one."""
        run = self.run
        return run if run is not None and run.ended is None else None
