"""The calls of one reply: gated, started in source order, settled.

Neighbouring calls of tools declared `parallel` form a segment and run beside each
other; every other call is a segment of its own, so it overlaps nothing. The intents of
a segment share an append with the last outcome before them. Outcomes are journaled as
calls come back and projected in source order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio

from agentcore._engine.admission import admit_next
from agentcore._engine.cancellation import in_cancelled_scope, was_cancelled
from agentcore._engine.gate import (
    Questions,
    Suspended,
    ask_approval,
    request_approval,
)
from agentcore._engine.inbox import fold_cancel
from agentcore._engine.outcome import (
    defect_of,
    fits,
    not_a_result,
    not_started,
    outcome_now,
    outcome_with_blob,
    own_cancellation,
    result_of_error,
    shortened,
    timed_out,
)
from agentcore._engine.owner import Owner
from agentcore._engine.planning import Ready, plan_again, plan_calls
from agentcore.types import records as r
from agentcore.types.content import BlobRef, ToolCallPart
from agentcore.types.context import ToolContext
from agentcore.types.events import RunWarning, ToolProgress
from agentcore.types.policy import Answer, Question
from agentcore.types.tools import ToolResult

# Shared while there is nothing in it: a thousand runs in flight would hold thousands.
_NONE: list[Ready] = []
_NOTHING_BACK: list[tuple[Ready, ToolResult]] = []
_SUSPENDED: Final = ToolResult()
"""No result at all: the call waits for an answer."""


class ToolStep:
    """Runs tool calls, on behalf of one owner."""

    __slots__ = ("_finished", "_owner", "_questions", "_queue", "_segment", "_wake")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._queue = _NONE
        """Usable calls that have no intent, in source order."""
        self._segment = _NONE
        """Calls whose intent is staged and whose outcome is not."""
        self._finished = _NOTHING_BACK
        """Came back and not yet staged."""
        self._questions: Questions | None = None
        self._wake: anyio.Event
        """One of several calls came back; made anew for each time."""

    # --- planning -----------------------------------------------------------------

    def plan(self, req_id: str, calls: list[ToolCallPart], *, truncated: bool) -> None:
        """Stage what a reply asked for (write order W4).

        That is: every call, the outcomes of the unusable ones, and the intents of the
        first segment if it needs no question.
        """
        owner = self._owner
        queue = self._queue = plan_calls(owner, req_id, calls, truncated=truncated)
        self._segment = admit_next(owner, queue) if queue else _NONE

    # --- running ------------------------------------------------------------------

    async def run(self) -> None:
        """Run the next segment of the batch to its outcomes."""
        owner = self._owner
        if not self._segment:
            await self._open_segment()
        await owner.writer.commit()
        if owner.writer.has_mail:
            await fold_cancel(owner.writer)
        if not owner.may_start_effects():
            # Stopped between intent and effect: nothing of it has begun.
            for ready in self._segment:
                if not ready.rerun:
                    cause = owner.stop_cause()
                    owner.writer.stage(not_started(ready.call.id, cause))
            self._segment = _NONE
        if not self._segment:
            return
        if len(self._segment) == 1:
            await self._run_single(self._segment[0])
        else:
            await self._run_together(self._segment)

    async def _open_segment(self) -> None:
        owner = self._owner
        if not self._queue:
            self._queue = plan_again(owner)
        self._segment = admit_next(owner, self._queue)
        if self._segment or not owner.may_start_effects():
            return
        decided = owner.run.decisions
        for ready in self._queue:
            if not ready.why or ready.call.id in decided:
                continue
            if ready.call.id not in owner.run.waiting:
                request_approval(owner, ready.spec, ready.call, ready.why)
            if owner.handler is not None:
                asked: Any = owner.run.waiting[ready.call.id]
                await ask_approval(owner, owner.handler, asked)
                self._segment = admit_next(owner, self._queue)
                return
        owner.facts.blocked = bool(owner.run.waiting)

    async def _run_single(self, ready: Ready) -> None:
        owner = self._owner
        scope = owner.scope
        owner.in_effect = True
        owner.deadlines.set(scope, owner.now() + ready.spec.timeout)
        result = await self._execute(ready)
        owner.in_effect = False
        owner.deadlines.clear(scope, owner.run_deadline)
        if result is _SUSPENDED:
            self._segment = _NONE
            return
        if fits(result, ready.spec) and not scope.cancel_called:
            self._segment = _NONE
            owner.writer.stage(outcome_now(ready.state, ready.spec, result))
            return
        self._finished = [(ready, result)]
        if scope.cancel_called:
            return  # cut short, and yet it came back: settled with its real outcome
        self._segment = _NONE
        await self.drain()

    async def _run_together(self, segment: list[Ready]) -> None:
        owner = self._owner
        scope = owner.scope
        longest = max(ready.spec.timeout for ready in segment)
        owner.in_effect = True
        owner.deadlines.set(scope, owner.now() + longest)
        remaining = len(segment)
        self._finished = []
        self._wake = anyio.Event()
        try:
            async with anyio.create_task_group() as group:
                for ready in segment:
                    group.start_soon(self._run_one, ready, longest)
                while remaining:
                    await self._wake.wait()
                    self._wake = anyio.Event()
                    with anyio.CancelScope(shield=True):
                        remaining -= await self.drain()
                        await owner.writer.commit()
        except BaseExceptionGroup as errors:
            # What no tool may swallow (Ctrl-C, an exit) goes on as it came.
            raise errors.exceptions[0] from None
        owner.in_effect = False
        owner.deadlines.clear(scope, owner.run_deadline)
        self._segment = _NONE

    async def _run_one(self, ready: Ready, longest: float) -> None:
        """One of several calls, with its own deadline if it is shorter."""
        if ready.spec.timeout < longest:
            result = timed_out(ready.spec)
            with anyio.move_on_after(ready.spec.timeout):
                result = await self._execute(ready, in_cancelled_scope)
        else:
            result = await self._execute(ready, in_cancelled_scope)
        self._finished.append((ready, result))
        self._wake.set()

    async def _execute(
        self, ready: Ready, asked_for: Callable[[], bool] = was_cancelled
    ) -> ToolResult:
        """The one seam to an executor. Every exception becomes a result.

        So does a cancellation that nobody asked for, as `asked_for` tells.
        """
        owner = self._owner
        if self._questions is not None:
            self._questions.begin(ready.call.id)
        context: ToolContext[Any] = ToolContext(
            owner.yours.deps, ready.call, owner.view, self
        )
        try:
            result = await owner.setup.executor.execute(ready.call, context)
        except Suspended:
            return _SUSPENDED
        except anyio.get_cancelled_exc_class():
            if asked_for():
                raise
            return own_cancellation(ready.spec)
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            return result_of_error(error, ready.spec)
        if self._questions and self._questions.suspended(ready.call.id):
            return _SUSPENDED  # whatever it made of being put off
        defect = defect_of(result)
        return not_a_result(ready.spec, defect) if defect else result

    # --- ending -------------------------------------------------------------------

    async def drain(self) -> int:
        """Stage the outcomes of everything that came back; returns how many."""
        finished, writer = self._finished, self._owner.writer
        count = 0
        try:
            while count < len(finished):
                ready, result = finished[count]
                if result is _SUSPENDED:
                    pass  # it waits for an answer, and runs again then
                elif fits(result, ready.spec):
                    writer.stage(outcome_now(ready.state, ready.spec, result))
                else:
                    await self._stage_long(ready, result)
                count += 1
        finally:
            # A cancellation while a blob is stored must not lose what else came back.
            self._finished = finished[count:]
        return count

    async def _stage_long(self, ready: Ready, result: ToolResult) -> None:
        """A result the model is not shown whole; the host is told where it is."""
        writer = self._owner.writer
        record, full = await outcome_with_blob(
            ready.state, ready.spec, result, writer.store
        )
        writer.stage(record)
        message = (
            f"the result of {ready.spec.name} has {full.size} bytes; the model is "
            f"shown {ready.spec.output_cap} characters, the whole is blob {full.hash}"
        )
        writer.feed.delta(RunWarning("tool_output_shortened", message))

    async def settle(self) -> None:
        """The calls were cut short: an honest outcome for each (see `settle`)."""
        await self.drain()
        self._segment = self._queue = _NONE

    # --- what a running tool may do (ToolDoors) -----------------------------------

    def progress(
        self, call_id: str, message: str, progress: float | None, total: float | None
    ) -> None:
        """Show progress to the host; a blocking tool calls this from its thread."""
        event = ToolProgress(call_id, message, progress, total)
        owner, feed = self._owner, self._owner.writer.feed
        if threading.get_ident() == owner.thread:
            feed.delta(event)
        else:
            owner.call_soon(feed.delta, event)

    async def record_process(
        self, call_id: str, pgid: int, started: float | None
    ) -> None:
        """Journal a child's process group before it runs user code (W5)."""
        if started is None:
            # Loaded for those few tools that start processes.
            from agentcore._base.processes import start_time  # noqa: PLC0415

            started = start_time(pgid)
        writer = self._owner.writer
        await writer.turn()
        writer.stage(r.ToolCheckpoint(call_id, "", pgid, started))
        await writer.commit()

    async def save(self, data: bytes, media_type: str) -> BlobRef:
        """Keep bytes in the run's store."""
        return await self._owner.writer.store.put_blob(data, media_type=media_type)

    def late_result(self, call_id: str, result: ToolResult) -> None:
        """Note what a call came to after it was given up; from any thread."""
        self._owner.call_soon(self._look_at_late, (call_id, result))

    def _look_at_late(self, late: tuple[str, ToolResult]) -> None:
        """Back on the event loop: is there still a run that it belongs to?"""
        call_id, result = late
        owner = self._owner
        run = owner.state.open_run
        call = run.calls.get(call_id) if run is not None else None
        if call is None or owner.writer.closed or defect_of(result):
            return
        outcome = call.outcome
        if outcome is None or outcome.status != "unknown":
            return
        text = shortened(result, owner.toolbox.by_name.get(call.planned.name))
        owner.spawn(partial(self._note_late, r.ToolLateResult(call_id, text)))

    async def _note_late(self, record: r.ToolLateResult) -> None:
        owner = self._owner
        await owner.writer.turn()
        run = owner.state.open_run
        if run is not None and record.call_id in run.calls:  # it may just have ended
            owner.writer.stage(record)
            await owner.writer.commit()

    async def ask(self, call_id: str, question: Question) -> Answer:
        """Ask the user, and keep question and answer on record."""
        if self._questions is None:
            self._questions = Questions(self._owner)
        return await self._questions.ask(call_id, question)
