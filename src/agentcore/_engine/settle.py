"""What becomes of effects that were cut short (run semantics 2.6).

Nothing is guessed: a request keeps what it had streamed, a call that returned keeps its
real outcome, one that was running is cancelled only if it can have done nothing, and
everything that had not started says so.
"""

from __future__ import annotations

from agentcore._engine.model_step import ModelStep
from agentcore._engine.outcome import interrupted, not_started, outcome_of, timed_out
from agentcore._engine.owner import Owner
from agentcore._engine.tool_step import ToolStep
from agentcore.journal.state import RunState


async def settle(owner: Owner, model: ModelStep, tools: ToolStep) -> None:
    """Write the outcome of everything that was in flight."""
    run = owner.state.open_run
    if run is None:
        return
    model.settle(run)
    await tools.settle()
    await _settle_calls(owner, run)
    await owner.writer.commit()


async def _settle_calls(owner: Owner, run: RunState) -> None:
    facts, writer = owner.facts, owner.writer
    stopping = run.cancel is not None or facts.halted or facts.out_of_time
    cause = owner.stop_cause()
    for call in list(run.batch):
        if call.outcome is not None:
            continue
        spec = owner.toolbox.by_name.get(call.planned.name)
        call_id = call.planned.call_id
        if not call.started:
            # Without a stop, the rest of the batch simply runs next.
            if stopping:
                writer.stage(not_started(call_id, cause))
        elif not stopping and spec is not None:
            result = timed_out(spec)
            writer.stage(await outcome_of(call, spec, result, writer.store))
        else:
            writer.stage(interrupted(call_id, spec, cause))
