"""Decisions from outside: checked against what waits, accepted, folded in.

A decision holds once, for one call and for the arguments that were shown. Everything is
checked before the first one is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentcore._base.describe import type_name
from agentcore._engine.outcome import interrupted
from agentcore._engine.writer import Writer
from agentcore.errors import AlreadySettled, ConfigError
from agentcore.journal.apply import apply
from agentcore.journal.state import CallState, RunState, SessionState
from agentcore.protocols.store import RunStore
from agentcore.types import inbox as i
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.content import TextPart
from agentcore.types.policy import (
    Answer,
    Approve,
    Decision,
    Deny,
    DidNotHappen,
    Happened,
    LeaveUnknown,
)

_APPROVALS: Final = (Approve, Deny)
_ANSWERS: Final = (Answer, Deny)
_CONFIRMATIONS: Final = (Happened, DidNotHappen, LeaveUnknown)
_SUPERSEDED: Final = "denied: the user wrote something else instead of deciding"


async def accept_decisions(
    store: RunStore,
    session_id: str,
    decisions: Mapping[str, Decision],
    actor: Actor | None,
) -> None:
    """Store decisions on what waits in a session; durable when this returns.

    Raises:
        SessionNotFound: there is no such session.
        AlreadySettled: one was decided before, or what it was about is over.
        ConfigError: nothing waits under an id, or the decision is of a wrong kind.
        InputConflict: another decision on it is on its way already.
    """
    state = SessionState(session_id)
    asked: set[str] = set()
    async for stored in store.read(session_id):
        record = stored.record
        apply(state, record)
        if isinstance(record, (r.ApprovalRequested, r.QuestionAsked)):
            asked.add(record.call_id)
        elif isinstance(record, r.RunPaused):
            asked.update(record.subjects)
    page = await store.inbox(session_id, state.inbox_seen)
    _check_mail(decisions, [item for _, item in page.items])
    items = [
        _item(state, asked, subject, decision, actor)
        for subject, decision in decisions.items()
    ]
    for item in items:
        await store.accept(session_id, item)


def _check_mail(decisions: Mapping[str, Decision], mail: list[i.InboxItem]) -> None:
    """What came in since the pause and is not folded in yet may have settled it."""
    for item in mail:
        if isinstance(item, i.Cancel):
            raise AlreadySettled(
                f"{min(decisions)!r} is no longer open: the run is being cancelled"
            )
        if isinstance(item, i.Input) and item.source == "user":
            raise AlreadySettled(
                f"{min(decisions)!r} is no longer open: input {item.id!r} came instead "
                "of a decision. Resume without decisions to go on"
            )


def _item(
    state: SessionState,
    asked: set[str],
    subject: str,
    decision: Decision,
    actor: Actor | None,
) -> i.Decide:
    run = state.open_run
    waiting = run.waiting.get(subject) if run is not None else None
    if isinstance(waiting, r.ApprovalRequested):
        _check_kind(subject, "an approval", decision, _APPROVALS)
        bound = waiting.args_hash
        return i.Decide(
            f"decide-{subject}-{bound[:16]}", subject, decision, actor, bound
        )
    if waiting is not None and run is not None:
        _check_kind(subject, "a question", decision, _ANSWERS)
        number = len(run.answers.get(subject, ()))
        return i.Decide(f"answer-{subject}-{number}", subject, decision, actor)
    if run is not None and subject in run.unconfirmed:
        _check_kind(subject, "a call of unknown outcome", decision, _CONFIRMATIONS)
        return i.Decide(f"confirm-{subject}", subject, decision, actor)
    if subject in asked:
        raise AlreadySettled(f"{subject!r} in session {state.session_id!r} is settled")
    open_ids = [*run.waiting, *run.unconfirmed] if run is not None else []
    raise ConfigError(
        f"nothing waits under {subject!r} in session {state.session_id!r}; what waits: "
        f"{', '.join(map(repr, open_ids)) or 'nothing'}"
    )


def _check_kind(
    subject: str, what: str, decision: object, fitting: tuple[type, ...]
) -> None:
    if not isinstance(decision, fitting):
        names = " or ".join(kind.__name__ for kind in fitting)
        raise ConfigError(
            f"{subject!r} is {what}: it takes {names}, not {type_name(decision)}"
        )


def fold_decision(writer: Writer, position: int, item: i.Decide) -> None:
    """Put a decision on record, unless what it was about is over by now."""
    run = writer.state.open_run
    if run is None:
        return
    subject, decision, actor = item.subject, item.decision, item.actor
    waiting = run.waiting.get(subject)
    if isinstance(waiting, r.ApprovalRequested):
        bound = waiting.args_hash
        if isinstance(decision, _APPROVALS) and item.args_hash in ("", bound):
            writer.stage(r.ApprovalDecided(subject, bound, decision, actor, position))
    elif isinstance(waiting, r.QuestionAsked):
        if isinstance(decision, Answer):
            writer.stage(r.QuestionAnswered(subject, decision, "", actor, position))
        elif isinstance(decision, Deny):
            error = f"user_rejected: {decision.reason}"
            writer.stage(r.QuestionAnswered(subject, None, error, actor, position))
    elif subject in run.unconfirmed and isinstance(decision, _CONFIRMATIONS):
        writer.stage(r.ApprovalDecided(subject, "", decision, actor, position))


def supersede(writer: Writer, item: i.Input) -> None:
    """A user's words never approve anything: they take the place of the decision.

    What waits is denied, what stood behind it does not start, and the run goes on with
    the words (settled 37).
    """
    run = writer.state.open_run
    if run is None or run.paused is None or not run.waiting or run.cancel is not None:
        return
    if item.source != "user":
        return
    for call in run.batch:
        if call.outcome is None:
            writer.stage(_superseded(run, call, item.id))
    writer.stage(r.RunUnpaused(run.run_id, (), item.actor, item.traceparent))
    for pending in list(writer.state.pending.values()):
        if pending.delivery == "steer" or pending.input_id == item.id:
            writer.stage(r.InputPlaced(pending.input_id, run.run_id, "steer"))


def _superseded(run: RunState, call: CallState, cause: str) -> r.ToolOutcome:
    call_id = call.planned.call_id
    if call.started:
        return interrupted(call, cause)
    content = (TextPart(_SUPERSEDED),)
    if call_id in run.waiting:
        meta = {"category": "policy_denied"}
        return r.ToolOutcome(call_id, "denied", "none", content, cause, meta=meta)
    return r.ToolOutcome(call_id, "not_started", "none", content, cause)
