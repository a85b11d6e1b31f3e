"""The rules behind `invariants`, one method a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentcore.journal._book import Book, Call, Run
from agentcore.types import records as r
from agentcore.types.content import TextPart, ThinkingPart, ToolCallPart
from agentcore.types.tools import OUTPUT_TOOL

# What an outcome says of whether the call was started.
_NEEDS_INTENT: Final = frozenset({"ok", "error", "cancelled"})
# A call may be stopped between its intent and its start, which gives `not_started`.
_NEEDS_NO_INTENT: Final = frozenset({"denied", "duplicate"})
_NO_EFFECT: Final = frozenset(
    {"denied", "duplicate", "not_started", "invalid_args", "unavailable", "cancelled"}
)


class Checker(Book):
    """Takes the records of one journal in order and collects what is wrong."""

    def take(self, stored: r.StoredRecord) -> None:
        """Check the next record."""
        record = stored.record
        self.envelope(stored)
        check = _CHECKS.get(type(record))
        if check is not None:
            check(self, record)

    # --- inputs ---------------------------------------------------------------------

    def _in_order(self, position: int) -> None:
        self.expect(position > self.position, "I3", "folded out of inbox order")
        self.position = max(self.position, position)

    def _move(self, input_id: str, to: str, *allowed: str) -> None:
        now = self.inputs.get(input_id, "unknown")
        self.expect(now in allowed, "I3", f"input {input_id} is {now}, not {allowed}")
        self.inputs[input_id] = to

    def accept(self, record: r.InputAccepted) -> None:
        self._move(record.input_id, "pending", "unknown")
        self._in_order(record.position)
        self.accepted[record.input_id] = record
        self.delivery[record.input_id] = record.delivery

    def place(self, record: r.InputPlaced) -> None:
        self._move(record.input_id, "placed", "pending")
        run = self.open_run("input.placed")
        if run is None:
            return
        same = run.run_id == record.run_id
        self.expect(same, "I3", f"placed in {record.run_id}, open is {run.run_id}")
        self.expect(run.cancel is None, "W7", "an input placed after the cancel")
        run.placed_seq = self.seq

    def park(self, record: r.InputParked) -> None:
        self._move(record.input_id, "parked", "pending")
        run = self.open_run("input.parked")
        if run is not None:
            self.expect(run.cancel, "Q6", "parked without a cancel")

    def release(self, record: r.InputReleased) -> None:
        self._move(record.input_id, "pending", "parked")

    def redeliver(self, record: r.InputRedelivered) -> None:
        self._move(record.input_id, "pending", "pending")
        self.delivery[record.input_id] = record.delivery

    def withdraw(self, record: r.InputWithdrawn) -> None:
        self._move(record.input_id, "withdrawn", "pending", "parked")

    def _pending(self) -> list[str]:
        return [key for key, state in self.inputs.items() if state == "pending"]

    # --- runs -----------------------------------------------------------------------

    def start(self, record: r.RunStarted) -> None:
        self.expect(self.run is None, "I2", "a second run beside the open one")
        self.expect(record.run_id not in self.runs, "I2", "a run id used twice")
        self.runs.add(record.run_id)
        self.run = Run(record.run_id)

    def cancel(self, record: r.CancelRequested) -> None:
        run = self.open_run("cancel.requested")
        if record.position:
            self._in_order(record.position)
        if run is not None:
            self.expect(run.cancel is None, "W7", "a second cancel of one run")
            self.expect(record.run_id == run.run_id, "W7", "a cancel of another run")
            run.cancel = record

    def pause(self, record: r.RunPaused) -> None:
        run = self.open_run("run.paused")
        if run is not None:
            self.expect(not run.paused, "2.4", "paused twice")
            self.expect(run.request is None, "2.4", "paused with a request in flight")
            calls = run.calls
            started = [
                k for k in run.open_calls() if calls[k].intent and not calls[k].question
            ]
            if record.reason == "confirm_unknown":
                # Nobody runs these; they do so again once the others are known.
                started = [k for k in started if not _is_safe(calls[k])]
            self.expect(not started, "2.4", f"paused with running calls {started}")
            run.paused = True

    def unpause(self, record: r.RunUnpaused) -> None:
        run = self.open_run("run.unpaused")
        if run is not None:
            self.expect(run.paused, "2.4", "unpaused without a pause")
            run.paused = False

    def end(self, record: r.RunEnded) -> None:
        run = self.open_run("run.ended")
        if run is None:
            return
        self.run = None
        stop = record.stop
        self.expect(record.run_id == run.run_id, "I2", "the end of another run")
        self.expect(run.request is None, "W3", "ended with a request in flight")
        self.all_settled(run, "run.ended")
        self.expect(not self.reserved, "W3", "ended with open reservations")
        cancelled = stop.status == "cancelled"
        if run.cancel is not None:
            self.expect(cancelled, "2.8", f"cancelled, but ended {stop.status}")
            self._parked(run.cancel)
        else:
            host = cancelled and stop.reason == "host"
            self.expect(host or not cancelled, "W7", "cancelled without a cancel")
        if stop.status == "completed":
            self._completed(run)
        self._totals(run, record)

    def _parked(self, cancel: r.CancelRequested) -> None:
        left = [
            key
            for key in self._pending()
            if self.accepted[key].position < cancel.position
        ]
        self.expect(not left, "Q6", f"inputs before the cancel are not parked: {left}")

    def _completed(self, run: Run) -> None:
        reply = run.reply
        if reply is None or reply.status != "ok" or _is_blank(reply):
            self.wrong("2.8", "completed without a good, non-empty reply")
        if run.placed_seq > run.head_seq:
            self.wrong("2.8", "completed with an input the model has not seen")
        steers = [k for k in self._pending() if self.delivery[k] == "steer"]
        self.expect(not steers, "2.8", f"completed with pending steers {steers}")

    def _totals(self, run: Run, record: r.RunEnded) -> None:
        for name in _TOTALS:
            said, found = getattr(record.usage, name), run.spent[name]
            self.expect(said == found, "I6", f"{name}: says {said}, records: {found}")

    # --- requests -------------------------------------------------------------------

    def reserve(self, record: r.UsageReserved) -> None:
        known = record.reservation_id in self.reserved
        self.expect(not known, "W3", f"reserved twice: {record.reservation_id}")
        self.reserved.add(record.reservation_id)

    def record_usage(self, record: r.UsageRecorded) -> None:
        known = record.reservation_id in self.reserved
        self.expect(known, "W3", f"nothing reserved as {record.reservation_id}")
        self.reserved.discard(record.reservation_id)
        usage = record.usage
        if self.run is None or record.released:
            return
        spent = self.run.spent
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            spent["unknown_requests"] += 1
        if usage is not None:
            spent["input_tokens"] += usage.input_tokens or 0
            spent["output_tokens"] += usage.output_tokens or 0

    def request(self, record: r.ModelIntent) -> None:
        run = self.open_run("model.intent")
        if run is None:
            return
        self.may_start(run, "a model request")
        self.expect(run.request is None, "W3", "a request beside one in flight")
        reserved = record.reservation_id in self.reserved
        self.expect(reserved, "W3", "no reservation before the request")
        self.expect(record.head_seq < self.seq, "I4", "head_seq lies ahead")
        if record.purpose == "main":
            self.all_settled(run, "model.intent")
            run.head_seq = record.head_seq
        before = self.attempts.get(record.req_id, 0)
        if record.attempt != before + 1:
            self.wrong("W3", f"attempt {record.attempt} follows attempt {before}")
        self.attempts[record.req_id] = record.attempt
        run.request = record
        run.spent["requests"] += 1

    def reply(self, record: r.ModelOutcome) -> None:
        run = self.open_run("model.outcome")
        if run is None:
            return
        intent, run.request = run.request, None
        asked = (intent.req_id, intent.attempt) if intent is not None else None
        same = asked == (record.req_id, record.attempt)
        self.expect(same, "W3", f"an outcome of no open request: {record.req_id}")
        if intent is None or intent.purpose != "main":
            return
        run.reply = record
        calls = [part for part in record.content if type(part) is ToolCallPart]
        run.unplanned = [part.call_id for part in calls]
        self.expect(all(run.unplanned), "W4", "a call without a host id")
        if record.status in ("ok", "length"):
            run.spent["turns"] += 1

    # --- calls ----------------------------------------------------------------------

    def plan(self, record: r.ToolPlanned) -> None:
        run = self.open_run("tool.planned")
        if run is None:
            return
        reply = run.reply
        same = reply is not None and reply.req_id == record.req_id
        self.expect(same, "W4", "planned for another reply than the last")
        expected = run.unplanned[0] if run.unplanned else None
        if record.call_id != expected:
            self.wrong("W4", f"planned {record.call_id}, the reply has {expected}")
        run.unplanned = run.unplanned[1:]
        self.expect(record.call_id not in self.call_ids, "I1", "planned twice")
        self.call_ids.add(record.call_id)
        run.calls[record.call_id] = Call(record)

    def _call(self, call_id: str, what: str) -> Call | None:
        run = self.open_run(what)
        call = run.calls.get(call_id) if run is not None else None
        if call is None:
            self.wrong("I1", f"{what} of {call_id}, which was not planned")
        return call

    def intend(self, record: r.ToolIntent) -> None:
        run, call = self.run, self._call(record.call_id, "tool.intent")
        if run is None or call is None:
            return
        self.may_start(run, f"call {record.call_id}")
        self.expect(call.intent is None, "W5", "a second intent of one call")
        self.expect(call.outcome is None, "W5", "an intent after the outcome")
        self.expect(not run.unplanned, "W4", "started before all calls were planned")
        if call.asked is not None:
            self.expect(call.approved, "2.13", "started without the approval it needs")
        same = record.args_hash == call.planned.args_hash
        changed = record.arguments is not None
        self.expect(same or changed, "2.13", "started with other arguments")
        call.intent = record
        run.spent["tool_calls"] += 1

    def outcome(self, record: r.ToolOutcome) -> None:
        call = self._call(record.call_id, "tool.outcome")
        if call is None:
            return
        self.expect(call.outcome is None, "I1", "a second outcome of one call")
        call.outcome = record
        self._started_or_not(call, record)
        if record.status in _NO_EFFECT:
            none = record.effect == "none"
            self.expect(none, "2.6", f"{record.status} with effect {record.effect}")
        if call.intent is not None and call.intent.effects == "none":
            none = record.effect == "none"
            self.expect(none, "2.6", f"effects none, and effect {record.effect}")
        elif record.status == "unknown":
            unknown = record.effect == "unknown"
            self.expect(unknown, "2.6", f"unknown with effect {record.effect}")

    def _started_or_not(self, call: Call, record: r.ToolOutcome) -> None:
        status = record.status
        if status in _NEEDS_INTENT and call.planned.name != OUTPUT_TOOL:
            self.expect(call.intent, "W5", f"{status} without an intent")
        if status in _NEEDS_NO_INTENT:
            self.expect(call.intent is None, "W5", f"{status}, but it was started")

    def late(self, record: r.ToolLateResult) -> None:
        call = self._call(record.call_id, "tool.late_result")
        if call is not None:
            outcome = call.outcome
            unknown = outcome is not None and outcome.status == "unknown"
            self.expect(unknown, "2.6", "a late result of a call that is not unknown")
            self.expect(not call.late, "2.6", "a second late result")
            call.late = True

    def ask(self, record: r.ApprovalRequested) -> None:
        call = self._call(record.call_id, "approval.requested")
        if call is not None:
            call.asked, call.approved = record, None

    def decide(self, record: r.ApprovalDecided) -> None:
        call = self._call(record.call_id, "approval.decided")
        if call is None:
            return
        if record.position:
            self._in_order(record.position)
        if record.decision.kind in _CONFIRMS:
            unknown = call.outcome is not None and call.outcome.status == "unknown"
            self.expect(unknown, "2.7", "confirmed a call that is not unknown")
            self.expect(not call.confirmed, "2.7", "confirmed twice")
            call.confirmed = True
            return
        asked = call.asked
        same = asked is not None and asked.args_hash == record.args_hash
        self.expect(same, "2.13", "a decision on what was not asked")
        self.expect(call.approved is None, "2.13", "decided twice")
        call.approved = record.decision.kind == "approve"

    def question(self, record: r.QuestionAsked) -> None:
        call = self._call(record.call_id, "question.asked")
        if call is not None:
            self.expect(call.intent, "2.13", "a question of a call that never started")
            self.expect(not call.question, "2.13", "a second question at once")
            call.question = True

    def answer(self, record: r.QuestionAnswered) -> None:
        call = self._call(record.call_id, "question.answered")
        if record.position:
            self._in_order(record.position)
        if call is not None:
            self.expect(call.question, "2.13", "an answer to no question")
            call.question = False


_CONFIRMS: Final = frozenset({"happened", "did_not_happen", "leave_unknown"})
_TOTALS: Final = (
    "requests",
    "turns",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "unknown_requests",
)


def _is_safe(call: Call) -> bool:
    return call.intent is not None and call.intent.replay == "safe"


def _is_blank(reply: r.ModelOutcome) -> bool:
    return all(
        type(part) is ThinkingPart or (type(part) is TextPart and not part.text.strip())
        for part in reply.content
    )


_CHECKS: Final[dict[type, Callable[[Checker, Any], None]]] = {
    r.InputAccepted: Checker.accept,
    r.InputPlaced: Checker.place,
    r.InputParked: Checker.park,
    r.InputReleased: Checker.release,
    r.InputRedelivered: Checker.redeliver,
    r.InputWithdrawn: Checker.withdraw,
    r.RunStarted: Checker.start,
    r.CancelRequested: Checker.cancel,
    r.RunPaused: Checker.pause,
    r.RunUnpaused: Checker.unpause,
    r.RunEnded: Checker.end,
    r.UsageReserved: Checker.reserve,
    r.UsageRecorded: Checker.record_usage,
    r.ModelIntent: Checker.request,
    r.ModelOutcome: Checker.reply,
    r.ToolPlanned: Checker.plan,
    r.ToolIntent: Checker.intend,
    r.ToolOutcome: Checker.outcome,
    r.ToolLateResult: Checker.late,
    r.ApprovalRequested: Checker.ask,
    r.ApprovalDecided: Checker.decide,
    r.QuestionAsked: Checker.question,
    r.QuestionAnswered: Checker.answer,
}
