"""What a session is: the fold of its journal, mutable only by `apply`."""

from __future__ import annotations

from typing import Any

from agentcore.journal.repetition import Repetition
from agentcore.types.actor import Actor
from agentcore.types.json import JsonValue
from agentcore.types.records import (
    ApprovalRequested,
    CancelRequested,
    InputAccepted,
    ModelIntent,
    ModelOutcome,
    QuestionAsked,
    RunEnded,
    RunPaused,
    ToolIntent,
    ToolOutcome,
    ToolPlanned,
)
from agentcore.types.usage import RunUsage, Usage


class CallState:
    """One planned call: where it stands."""

    __slots__ = ("arguments", "intent", "outcome", "planned")

    def __init__(self, planned: ToolPlanned, arguments: str) -> None:
        self.planned = planned
        self.arguments = arguments
        """The model's JSON text."""
        self.intent: ToolIntent | None = None
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
        self.requests = 0
        self.turns = 0
        self.tool_calls = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_input_tokens = 0
        self.cache_write_tokens = 0
        self.reasoning_tokens = 0
        self.cost_usd = 0.0
        self.unknown_requests = 0

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


class RunState:
    """The open run, or the last one."""

    __slots__ = (
        "actors",
        "attempts",
        "batch",
        "calls",
        "cancel",
        "empty_rounds",
        "ended",
        "exhausted",
        "fatal_call",
        "final_call",
        "head_seq",
        "input_ids",
        "invalid_rounds",
        "missing_call_rounds",
        "open_calls",
        "outcome",
        "output_rejections",
        "paused",
        "placed_seq",
        "rejected",
        "repetition",
        "request",
        "run_id",
        "started_seq",
        "tool_uses",
        "totals",
        "truncated_rounds",
        "waiting",
    )

    def __init__(self, run_id: str, seq: int) -> None:
        self.run_id = run_id
        self.started_seq = seq
        self.input_ids: list[str] = []
        self.actors: tuple[Actor, ...] = ()
        self.placed_seq = 0
        """Where the last input was placed."""
        self.request: ModelIntent | None = None
        """The request in flight."""
        self.head_seq = 0
        """Prefix the last request showed the model."""
        self.outcome: ModelOutcome | None = None
        """The last outcome of a main request."""
        self.attempts = 0
        """Failed attempts in a row."""
        self.batch: list[CallState] = []
        """The calls of the last reply, in source order."""
        self.calls: dict[str, CallState] = {}
        """All calls of the run."""
        self.open_calls = 0
        self.final_call: CallState | None = None
        """The accepted call of the output tool."""
        self.fatal_call: CallState | None = None
        """A failed call of a tool that declares `on_fatal="end"`."""
        self.exhausted = ""
        """The limit that forbade a call."""
        self.tool_uses: dict[str, int] = {}
        self.rejected = False
        """The last reply was not accepted as output."""
        self.output_rejections = 0
        self.empty_rounds = 0
        self.missing_call_rounds = 0
        self.truncated_rounds = 0
        self.invalid_rounds = 0
        self.repetition = Repetition()
        self.totals = Totals()
        self.waiting: dict[str, ApprovalRequested | QuestionAsked] = {}
        """What must be decided, by call id."""
        self.cancel: CancelRequested | None = None
        self.paused: RunPaused | None = None
        self.ended: RunEnded | None = None

    @property
    def is_open(self) -> bool:
        """Not ended; it may be paused."""
        return self.ended is None


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
        self.session_id = session_id
        self.root_session_id = session_id
        self.parent_call_id: str | None = None
        self.workspace_path: str | None = None
        self.seq = 0
        self.epoch = 0
        self.owned = False
        """The last owner has not released."""
        self.inbox_seen = 0
        """Inbox position up to which items are folded in."""
        self.pending: dict[str, InputAccepted] = {}
        """Accepted and not placed, in order of acceptance."""
        self.parked: dict[str, InputAccepted] = {}
        self.reservations: dict[str, Any] = {}
        self.advertised = ""
        """Digest of the tools the model was last offered."""
        self.resume_attempts = 0
        self.run: RunState | None = None
        self.values: dict[str, JsonValue] = {}

    @property
    def open_run(self) -> RunState | None:
        """The run that has not ended, if there is one."""
        run = self.run
        return run if run is not None and run.ended is None else None
