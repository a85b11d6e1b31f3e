"""How each record changes a session's state. Pure: no clock, no ids, no I/O.

`apply(state, record)` folds the next record in; `seq` is counted here, so a state knows
how long its journal is. A record of an unknown kind only moves the count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from agentcore.journal.state import CallState, RunState, SessionState
from agentcore.types import records as r
from agentcore.types.content import ToolCallPart
from agentcore.types.policy import Approve, Deny
from agentcore.types.tools import OUTPUT_TOOL


def apply(state: SessionState, record: Any) -> None:
    """Fold the next record of the journal into the state."""
    state.seq += 1
    change = CHANGES.get(type(record))
    if change is not None:
        change(state, record)


def fold(session_id: str, records: Iterable[r.StoredRecord]) -> SessionState:
    """The state of a session from its whole journal."""
    state = SessionState(session_id)
    for stored in records:
        apply(state, stored.record)
        state.epoch = stored.epoch
    return state


def _run(state: SessionState) -> RunState:
    run = state.run
    if run is None:
        raise ValueError(f"record {state.seq} belongs to a run, but none was started")
    return run


# --- session ----------------------------------------------------------------------


def _created(state: SessionState, record: r.SessionCreated) -> None:
    state.root_session_id = record.root_session_id or record.session_id
    state.parent_call_id = record.parent_call_id
    state.workspace_path = record.workspace.path if record.workspace else None


def _acquired(state: SessionState, record: r.OwnerAcquired) -> None:
    state.owned = True


def _released(state: SessionState, record: r.OwnerReleased) -> None:
    state.owned = False


def _resumed(state: SessionState, record: r.ResumeAttempted) -> None:
    state.resume_attempts = record.n


def _migrated(state: SessionState, record: r.CwdMigrated) -> None:
    state.workspace_path = record.new.path


def _value(state: SessionState, record: r.StateChanged) -> None:
    _seen(state, record.position)
    if record.value is None:
        state.values.pop(record.key, None)
    else:
        state.values = {**state.values, record.key: record.value}


def _seen(state: SessionState, position: int) -> None:
    """The inbox is folded in up to here; no later owner does it again."""
    state.inbox_seen = max(state.inbox_seen, position)


# --- inputs -----------------------------------------------------------------------


def _accepted(state: SessionState, record: r.InputAccepted) -> None:
    state.pending[record.input_id] = record
    state.inbox_seen = max(state.inbox_seen, record.position)


def _placed(state: SessionState, record: r.InputPlaced) -> None:
    item = state.pending.pop(record.input_id)
    run = _run(state)
    run.input_ids.append(record.input_id)
    run.placed_seq = state.seq
    run.repetition.reset()
    if item.actor is not None and item.actor not in run.actors:
        run.actors = (*run.actors, item.actor)


def _parked(state: SessionState, record: r.InputParked) -> None:
    item = state.pending.pop(record.input_id)
    state.parked = {**state.parked, record.input_id: item}


def _unparked(state: SessionState, record: r.InputReleased) -> None:
    _seen(state, record.position)
    item = state.parked.pop(record.input_id)
    waiting = [*state.pending.values(), item]
    waiting.sort(key=lambda accepted: accepted.position)
    state.pending = {accepted.input_id: accepted for accepted in waiting}


def _redelivered(state: SessionState, record: r.InputRedelivered) -> None:
    _seen(state, record.position)
    item = state.pending[record.input_id]
    state.pending[record.input_id] = r.InputAccepted(
        item.input_id,
        item.position,
        item.content,
        record.delivery,
        item.source,
        item.actor,
        item.content_hash,
        item.traceparent,
        item.settings,
    )


def _withdrawn(state: SessionState, record: r.InputWithdrawn) -> None:
    _seen(state, record.position)
    state.pending.pop(record.input_id, None)
    state.parked.pop(record.input_id, None)


def _cancelled(state: SessionState, record: r.CancelRequested) -> None:
    state.inbox_seen = max(state.inbox_seen, record.position)
    run = _run(state)
    if run.cancel is None:
        run.cancel = record


# --- the run ----------------------------------------------------------------------


def _started(state: SessionState, record: r.RunStarted) -> None:
    state.run = RunState(record.run_id, state.seq)


def _paused(state: SessionState, record: r.RunPaused) -> None:
    run = _run(state)
    run.paused = record
    if record.reason == "confirm_unknown":
        run.unconfirmed = record.subjects


def _unpaused(state: SessionState, record: r.RunUnpaused) -> None:
    _run(state).paused = None


def _ended(state: SessionState, record: r.RunEnded) -> None:
    run = _run(state)
    run.ended = record
    run.paused = None
    state.resume_attempts = 0


# --- the model --------------------------------------------------------------------


def _request(state: SessionState, record: r.ModelIntent) -> None:
    run = _run(state)
    run.request = record
    run.partials = ()
    run.head_seq = record.head_seq
    run.totals.requests += 1


def _partial(state: SessionState, record: r.ModelPartial) -> None:
    run = _run(state)
    run.partials = (*run.partials, record.text)


def _reply(state: SessionState, record: r.ModelOutcome) -> None:
    run = _run(state)
    intent = run.request
    run.request = None
    if intent is not None and intent.purpose != "main":
        return
    run.outcome = record
    run.final_call = None
    run.rejected = ""
    status = record.status
    if status == "ok":
        _count_ok(state, run, record)
    elif status == "length":
        run.attempts = run.empty_rounds = 0
        run.truncated_rounds += 1
        run.batch = []
        run.totals.turns += 1
        state.resume_attempts = 0
    elif status == "empty":
        run.attempts = 0
        state.resume_attempts = 0
        if record.finish == "tool_calls":
            run.missing_call_rounds += 1
        else:
            run.empty_rounds += 1
    elif status == "aborted":
        run.attempts = 0  # stopped from here: no failure of the model's
    else:
        run.attempts += 1


def _count_ok(state: SessionState, run: RunState, record: r.ModelOutcome) -> None:
    run.attempts = run.empty_rounds = run.missing_call_rounds = 0
    run.truncated_rounds = 0
    run.batch = []
    run.totals.turns += 1
    state.resume_attempts = 0


def _rejected(state: SessionState, record: r.OutputRejected) -> None:
    run = _run(state)
    run.rejected = record.errors
    run.output_rejections += 1


# --- tools ------------------------------------------------------------------------


def _advertised(state: SessionState, record: r.ToolsAdvertised) -> None:
    state.advertised = record.digest


def _planned(state: SessionState, record: r.ToolPlanned) -> None:
    run = _run(state)
    call = CallState(record, _written_arguments(run, record))
    run.batch.append(call)
    run.calls[record.call_id] = call
    run.open_calls += 1


def _written_arguments(run: RunState, record: r.ToolPlanned) -> str:
    """The call as the model wrote it; its place in the reply is at `index` or later."""
    content = run.outcome.content if run.outcome is not None else ()
    for part in islice(content, record.index, None):
        if type(part) is ToolCallPart and part.call_id == record.call_id:
            return part.arguments
    return ""


def _intent(state: SessionState, record: r.ToolIntent) -> None:
    run = _run(state)
    call = run.calls[record.call_id]
    call.started = True
    call.effects = record.effects
    call.replay = record.replay
    call.changed = record.arguments
    run.totals.tool_calls += 1
    uses = run.tool_uses
    uses[record.tool] = uses.get(record.tool, 0) + 1


def _outcome(state: SessionState, record: r.ToolOutcome) -> None:
    run = _run(state)
    call = run.calls[record.call_id]
    call.outcome = record
    run.open_calls -= 1
    if run.waiting:  # stopped before the answer came: nobody need decide any more
        run.waiting.pop(record.call_id, None)
    if run.groups:
        run.groups.pop(record.call_id, None)
    planned = call.planned
    if record.effect != "none":
        effects = run.effects
        if not effects:
            effects = run.effects = {}
        effects[planned.name] = state.seq
    if planned.name == OUTPUT_TOOL and record.status == "ok":
        run.final_call = call
    elif call.started:
        state.resume_attempts = 0
        if not record.meta:
            run.repetition.add((planned.name, planned.args_hash, record.content))
        else:
            _note_meta(run, call, record)
    elif "limit" in record.meta:
        run.exhausted = record.meta["limit"]
    if not run.open_calls:
        run.count_invalid()


def _note_meta(run: RunState, call: CallState, record: r.ToolOutcome) -> None:
    meta = record.meta
    if not meta.get("polling"):
        run.repetition.add((call.planned.name, call.planned.args_hash, record.content))
    if meta.get("on_fatal") == "end":
        run.fatal_call = call


# --- decisions and the ledger -----------------------------------------------------


def _asked(state: SessionState, record: r.ApprovalRequested | r.QuestionAsked) -> None:
    run = _run(state)
    run.waiting = {**run.waiting, record.call_id: record}


def _decided(state: SessionState, record: r.ApprovalDecided) -> None:
    _seen(state, record.position)
    run = _run(state)
    call_id, decision = record.call_id, record.decision
    run.waiting.pop(call_id, None)
    if isinstance(decision, (Approve, Deny)):
        run.decisions = {**run.decisions, call_id: decision}
    run.unconfirmed = tuple(name for name in run.unconfirmed if name != call_id)


def _answered(state: SessionState, record: r.QuestionAnswered) -> None:
    _seen(state, record.position)
    run = _run(state)
    call_id = record.call_id
    run.waiting.pop(call_id, None)
    run.answers = {**run.answers, call_id: (*run.answers.get(call_id, ()), record)}


def _progress(state: SessionState, record: r.ToolCheckpoint) -> None:
    if record.pgid is not None:
        run = _run(state)
        group = (record.pgid, record.started)
        run.groups = {**run.groups, record.call_id: group}


def _reserved(state: SessionState, record: r.UsageReserved) -> None:
    state.reservations[record.reservation_id] = record.charge


def _recorded(state: SessionState, record: r.UsageRecorded) -> None:
    state.reservations.pop(record.reservation_id, None)
    run = state.run
    if run is not None and not record.released:
        run.totals.add(record.usage)


# --- evidence ---------------------------------------------------------------------


def _checking(state: SessionState, record: r.EvidenceStarted) -> None:
    run = _run(state)
    run.checking = record
    run.checking_seq = state.seq


def _evidence(state: SessionState, record: r.EvidenceRecorded) -> None:
    _run(state).note_evidence(record, state.seq)


CHANGES: Final[dict[type, Callable[[SessionState, Any], None]]] = {
    r.SessionCreated: _created,
    r.OwnerAcquired: _acquired,
    r.OwnerReleased: _released,
    r.ResumeAttempted: _resumed,
    r.CwdMigrated: _migrated,
    r.StateChanged: _value,
    r.InputAccepted: _accepted,
    r.InputPlaced: _placed,
    r.InputParked: _parked,
    r.InputReleased: _unparked,
    r.InputRedelivered: _redelivered,
    r.InputWithdrawn: _withdrawn,
    r.CancelRequested: _cancelled,
    r.RunStarted: _started,
    r.RunPaused: _paused,
    r.RunUnpaused: _unpaused,
    r.RunEnded: _ended,
    r.ModelIntent: _request,
    r.ModelPartial: _partial,
    r.ModelOutcome: _reply,
    r.OutputRejected: _rejected,
    r.ToolsAdvertised: _advertised,
    r.ToolPlanned: _planned,
    r.ToolIntent: _intent,
    r.ToolOutcome: _outcome,
    r.ApprovalRequested: _asked,
    r.ApprovalDecided: _decided,
    r.QuestionAsked: _asked,
    r.QuestionAnswered: _answered,
    r.ToolCheckpoint: _progress,
    r.UsageReserved: _reserved,
    r.UsageRecorded: _recorded,
    r.EvidenceStarted: _checking,
    r.EvidenceRecorded: _evidence,
}
"""What each kind of record changes; `apply` counts and looks up here."""
