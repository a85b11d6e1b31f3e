"""The records that end a run at a cut of its journal, where no owner can do it."""

from __future__ import annotations

from agentcore.journal.state import CallState, RunState, SessionState
from agentcore.types import records as r
from agentcore.types.content import Effect, TextPart, ToolCallPart
from agentcore.types.runs import Stop


def closing_records(state: SessionState, cause: str) -> list[r.Record]:
    """What makes the session of a cut journal idle.

    A request in flight is unknown, a call that had started too (its effect belongs to
    the journal that was cut, not to this one), and what had not started never will.
    """
    closing: list[r.Record] = []
    run = state.open_run
    if run is not None:
        usage = run.totals
        if run.request is not None:
            req_id, attempt = run.request.req_id, run.request.attempt
            closing.append(r.ModelOutcome(req_id, attempt, "unknown"))
        asked = run.request or run.outcome
        for name in state.reservations:
            # Cut off between the reservation and its request, nothing was used.
            sent = asked is not None and asked.req_id == name
            closing.append(r.UsageRecorded(name, None, sent, released=not sent))
            usage.unknown_requests += sent
        planned = [call for call in run.batch if call.outcome is None]
        unplanned = _unplanned(run)
        closing += unplanned
        closing += [_outcome(call, cause) for call in planned]
        closing += [_not_started(plan.call_id, cause) for plan in unplanned]
        stop = Stop("cancelled", "host", f"the session was cut here: {cause}")
        closing.append(r.RunEnded(run.run_id, stop, usage.usage()))
    return closing


def _unplanned(run: RunState) -> list[r.ToolPlanned]:
    """The calls of the last reply, where the cut parts it from their plans."""
    reply = run.outcome
    if reply is None or reply.status not in ("ok", "length"):
        return []
    calls = [part for part in reply.content if type(part) is ToolCallPart]
    return [
        r.ToolPlanned(
            part.call_id, reply.req_id, index, part.name, "", part.provider_call_id
        )
        for index, part in enumerate(calls)
        if part.call_id not in run.calls
    ]


def _not_started(call_id: str, cause: str) -> r.ToolOutcome:
    text = TextPart("not executed: the session was cut here")
    return r.ToolOutcome(call_id, "not_started", "none", (text,), cause)


def _outcome(call: CallState, cause: str) -> r.ToolOutcome:
    call_id = call.planned.call_id
    if not call.started:
        return _not_started(call_id, cause)
    text = TextPart("its outcome lies behind the cut")
    effect: Effect = "none" if call.effects == "none" else "unknown"
    return r.ToolOutcome(call_id, "unknown", effect, (text,), cause)
