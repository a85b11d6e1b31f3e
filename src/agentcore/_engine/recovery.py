"""What becomes of effects that were cut short: by a cancel, or by their owner's death.

Nothing is guessed. While the owner lives (`settle`, run semantics 2.6), a request keeps
what it had streamed, a call that returned keeps its real outcome, one that was running
is cancelled only if it can have done nothing, and what had not started says so. After
its death (`recover`, rules R1 to R9) a request in flight is unknown, a started call is
run again only if that can do no harm, and about a call that may have reached the
outside world a person is asked. Nothing new starts here.
"""

from __future__ import annotations

from typing import Final

from agentcore._engine.checks import settle_check
from agentcore._engine.inbox import fold_inbox
from agentcore._engine.model_step import ModelStep
from agentcore._engine.outcome import (
    interrupted,
    lost,
    not_started,
    outcome_of,
    timed_out,
)
from agentcore._engine.owner import Owner
from agentcore._engine.planning import may_rerun
from agentcore._engine.tool_step import ToolStep
from agentcore.journal.state import RunState
from agentcore.types import records as r
from agentcore.types.content import TextPart
from agentcore.types.records.model import ModelStatus
from agentcore.types.runs import Stop

_LOOP: Final = (
    "the run was resumed {0} times in a row and each time its process ended before it "
    "made any progress"
)


async def settle(
    owner: Owner, model: ModelStep, tools: ToolStep, *, ending: bool = False
) -> None:
    """Write the outcome of everything that was in flight.

    `ending`: the run is over, so that nothing of it will start or be decided any more.
    """
    run = owner.state.open_run
    if run is None:
        return
    model.settle(run)
    settle_check(owner, "stopped before it ended")
    await tools.settle()
    await _settle_calls(owner, run, ending=ending)
    await owner.writer.commit()


async def _settle_calls(owner: Owner, run: RunState, *, ending: bool) -> None:
    facts, writer = owner.facts, owner.writer
    over = ending or run.cancel is not None or facts.out_of_time
    stopping = over or facts.halted
    # What waits for a decision goes on waiting, unless it was to be given just now.
    waits = () if over or owner.handler is not None else tuple(run.waiting)
    cause = owner.stop_cause()
    for call in list(run.batch):
        call_id = call.planned.call_id
        if call.outcome is not None or call_id in waits:
            continue
        spec = owner.toolbox.by_name.get(call.planned.name)
        if not call.started:
            # Without a stop, the rest of the batch simply runs next.
            if stopping:
                writer.stage(not_started(call_id, cause))
        elif not stopping and spec is not None:
            result = timed_out(spec)
            writer.stage(await outcome_of(call, spec, result, writer.store))
        else:
            writer.stage(interrupted(call, cause))


async def recover(owner: Owner) -> Stop | None:
    """Settle what was in flight, hear what came in, and unpause if that is due.

    Returns why the run must end instead, or `None`.
    """
    run = owner.run
    await _end_orphans(run)
    _lose_request(owner, run)
    settle_check(owner, "its owner ended before it did")
    unknown = _lose_calls(owner, run)
    attempts = owner.state.resume_attempts
    await fold_inbox(owner.writer)
    if run.paused is None and run.cancel is None:
        if attempts > owner.setup.max_resumes:
            return Stop("failed", "resume_loop", _LOOP.format(attempts - 1))
        if unknown and owner.setup.on_unknown == "pause":
            owner.writer.stage(r.RunPaused(run.run_id, "confirm_unknown", unknown))
    _unpause(owner)
    return None


async def _end_orphans(run: RunState) -> None:
    """What tools left running ends before their outcome is called unknown (R3)."""
    if not run.groups:
        return
    # Loaded for those few who need it: it is not on the way of any other run.
    from agentcore._base.processes import end_group  # noqa: PLC0415

    for pgid, started in list(run.groups.values()):
        await end_group(pgid, started)


def _lose_request(owner: Owner, run: RunState) -> None:
    """The request in flight counts as an attempt, whatever became of it (R5)."""
    if run.request is None:
        return
    status: ModelStatus = "aborted" if run.cancel is not None else "unknown"
    text = "".join(run.partials)
    content = (TextPart(text),) if text else ()
    request = run.request
    outcome = r.ModelOutcome(request.req_id, request.attempt, status, content)
    owner.writer.stage(outcome)
    owner.writer.stage(r.UsageRecorded(outcome.req_id, None, estimated=True))


def _lose_calls(owner: Owner, run: RunState) -> tuple[str, ...]:
    """Settle started calls that cannot run again; returns what nobody may guess (R6).

    One that waits for an answer has not run: it goes on waiting.
    """
    unknown: list[str] = []
    for call in run.batch:
        call_id = call.planned.call_id
        if not call.started or call.outcome is not None or call_id in run.waiting:
            continue
        if may_rerun(owner, call):
            continue
        owner.writer.stage(lost(call, "owner lost"))
        if call.effects == "external":
            unknown.append(call_id)
    return tuple(unknown)


def _unpause(owner: Owner) -> None:
    """Go on if the pause is over; otherwise the run stays as it is."""
    run = owner.state.open_run
    if run is None or run.paused is None or run.cancel is not None:
        return
    paused = run.paused
    decided = tuple(name for name in paused.subjects if not _is_open(run, name))
    if paused.reason in ("approval", "question"):
        over = bool(decided) or owner.handler is not None
    elif paused.reason == "confirm_unknown":
        over = not run.unconfirmed
    else:
        over = paused.reason == "host"
    if over:
        actor = owner.yours.actor
        owner.writer.stage(r.RunUnpaused(run.run_id, decided, actor))


def _is_open(run: RunState, subject: str) -> bool:
    return subject in run.waiting or subject in run.unconfirmed
