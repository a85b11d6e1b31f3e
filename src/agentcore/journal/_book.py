"""What the rules of `invariants` keep in mind while they read a journal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from typing_extensions import override

from agentcore.types import records as r


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a journal breaks."""

    rule: str
    """As in the run semantics: `I1` to `I7`, `W3` …, `Q5`, `2.8`, `seq`, `epoch`."""
    seq: int
    """The record that shows it."""
    what: str

    @override
    def __str__(self) -> str:
        return f"{self.rule} at record {self.seq}: {self.what}"


@dataclass(slots=True)
class Call:
    planned: r.ToolPlanned
    intent: r.ToolIntent | None = None
    outcome: r.ToolOutcome | None = None
    late: bool = False
    asked: r.ApprovalRequested | None = None
    approved: bool | None = None
    question: bool = False
    """It waits for an answer: begun, and yet nothing of it runs."""
    confirmed: bool = False


@dataclass(slots=True)
class Run:
    run_id: str
    request: r.ModelIntent | None = None
    head_seq: int = 0
    placed_seq: int = 0
    reply: r.ModelOutcome | None = None
    """The last outcome of a main request."""
    unplanned: list[str] = field(default_factory=list)
    """Calls of the last reply that have no `tool.planned`."""
    calls: dict[str, Call] = field(default_factory=dict)
    cancel: r.CancelRequested | None = None
    paused: bool = False
    spent: Counter[str] = field(default_factory=Counter)

    def open_calls(self) -> list[str]:
        return [key for key, call in self.calls.items() if call.outcome is None]


class Book:
    """The journal so far, and what was wrong in it."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.seq = 0
        self.epoch = 0
        self.owned = False
        self.copied = 0
        """Records up to here were copied from another session."""
        self.run: Run | None = None
        self.inputs: dict[str, str] = {}
        self.accepted: dict[str, r.InputAccepted] = {}
        self.delivery: dict[str, str] = {}
        self.position = 0
        self.runs: set[str] = set()
        self.call_ids: set[str] = set()
        self.reserved: set[str] = set()
        self.attempts: dict[str, int] = {}

    def wrong(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, self.seq, what))

    def expect(self, holds: object, rule: str, what: str) -> None:
        if not holds:
            self.wrong(rule, what)

    def open_run(self, what: str) -> Run | None:
        if self.run is None:
            self.wrong("I2", f"{what} outside of a run")
        return self.run

    # --- envelope and session -------------------------------------------------------

    def envelope(self, stored: r.StoredRecord) -> None:
        expected, self.seq = self.seq + 1, stored.seq
        self.expect(stored.seq == expected, "seq", f"expected {expected}")
        record = stored.record
        if type(record) is r.SessionCreated:
            self.expect(stored.seq == 1, "seq", "session.created is not the first")
            self.copied = record.fork_of.seq if record.fork_of is not None else 0
        elif stored.seq <= self.copied:
            # What the copy was made of had owners of its own.
            self.epoch, self.owned = stored.epoch, type(record) is not r.OwnerReleased
        elif type(record) is r.OwnerAcquired:
            risen = stored.epoch > self.epoch
            self.expect(risen, "epoch", f"a new owner, and still {stored.epoch}")
            self.epoch, self.owned = stored.epoch, True
        else:
            self.expect(self.owned, "I5", f"{record.kind} without an owner")
        if stored.epoch != self.epoch:
            self.wrong("I5", f"epoch {stored.epoch}, the owner has {self.epoch}")
        if type(record) is r.OwnerReleased:
            self.owned = False
            request = self.run is not None and self.run.request is not None
            self.expect(not request, "W3", "released with a request in flight")

    # --- shared ---------------------------------------------------------------------

    def may_start(self, run: Run, what: str) -> None:
        self.expect(run.cancel is None, "W7", f"{what} started after the cancel")
        self.expect(not run.paused, "2.4", f"{what} started while paused")

    def all_settled(self, run: Run, before: str) -> None:
        left = run.open_calls()
        self.expect(not left, "I1", f"{before} with open calls {left}")
        left, run.unplanned = run.unplanned, []
        self.expect(not left, "W4", f"{before} with calls never planned: {left}")
