"""Which calls of a batch may start now.

Calls start in source order, alone or beside neighbours declared `parallel`. One that
waits for a decision holds back whatever comes after it and may have an effect; later
calls that have none go ahead (settled 39).
"""

from __future__ import annotations

from typing import Final

from agentcore._base.canonical import json_digest
from agentcore._engine.gate import (
    NeedsApproval,
    charge,
    denied_by_user,
    judge,
    nobody_there,
)
from agentcore._engine.outcome import lost
from agentcore._engine.owner import Owner
from agentcore._engine.planning import Ready, change_arguments
from agentcore.types import records as r
from agentcore.types.policy import Approve, Deny

_GO: Final = "go"
_WAIT: Final = "wait"


def admit_next(owner: Owner, queue: list[Ready]) -> list[Ready]:
    """Stage the intents of the next calls that may start together.

    They leave the queue, and so do calls that are refused. What is left is for later,
    or waits for a decision, which takes time: what is staged is committed first.
    """
    segment: list[Ready] = []
    left: list[Ready] = []
    held_back = False
    for index, ready in enumerate(queue):
        if held_back and ready.spec.effects != "none":
            left.append(ready)
            _ask_with_the_others(owner, ready)
            continue
        beside = not segment or (ready.spec.parallel and segment[-1].spec.parallel)
        if not beside or not owner.may_start_effects():
            left += queue[index:]
            break
        verdict = _pass_gate(owner, ready)
        if isinstance(verdict, r.ToolOutcome):
            owner.writer.stage(verdict)
        elif verdict is _WAIT:
            held_back = True
            left.append(ready)
        else:
            if not ready.rerun:
                _stage_intent(owner, ready)
            segment.append(ready)
    queue[:] = left
    return segment


def _pass_gate(owner: Owner, ready: Ready) -> r.ToolOutcome | str:
    """The one gate: decisions of people, permission, budget."""
    if ready.rerun:  # it passed before it was lost; only a prohibition is news
        forbidden = isinstance(judge(owner, ready.spec, ready.call), r.ToolOutcome)
        return lost(ready.state, "no longer allowed") if forbidden else _GO
    run, call_id = owner.run, ready.call.id
    decision = run.decisions.get(call_id)
    refusal = _heed(owner, ready, decision) if decision is not None else None
    if refusal is not None:
        return refusal
    verdict = judge(owner, ready.spec, ready.call)
    if isinstance(verdict, r.ToolOutcome):
        return verdict
    asked = call_id in run.waiting
    if decision is None and (asked or isinstance(verdict, NeedsApproval)):
        if not asked and not owner.may_ask:
            return nobody_there(call_id)
        ready.why = verdict.why if verdict is not None else ready.why
        return _WAIT
    return charge(owner, ready.call) or _GO


def _ask_with_the_others(owner: Owner, ready: Ready) -> None:
    """A call that is held back anyway may be decided on already."""
    call_id = ready.call.id
    if call_id not in owner.run.decisions and owner.may_ask and not ready.rerun:
        verdict = judge(owner, ready.spec, ready.call)
        if isinstance(verdict, NeedsApproval):
            ready.why = verdict.why


def _heed(owner: Owner, ready: Ready, decision: Approve | Deny) -> r.ToolOutcome | None:
    """Take what a person decided: a denial, or the call as it was approved."""
    if isinstance(decision, Deny):
        return denied_by_user(ready.call.id, decision)
    if decision.arguments is None:
        return None
    return change_arguments(owner, ready, decision.arguments)


def _stage_intent(owner: Owner, ready: Ready) -> None:
    spec, call = ready.spec, ready.call
    changed = call.arguments if ready.args_hash == "" else None
    owner.writer.stage(
        r.ToolIntent(
            call.id,
            call.name,
            ready.args_hash or json_digest(call.arguments),
            spec.effects,
            spec.replay,
            changed,
            spec.version,
        )
    )
