"""The one loop: ask what is next, write the intent, do it, write the outcome.

A `Loop` drives one session for as long as its owner holds it, until nothing is
startable. Every transition goes through the writer; every effect (a model request, tool
calls, a wait) runs inside the owner's one cancel scope, and nothing else is ever
cancelled by it. Leaving an effect by cancellation leads out of the scope, where what
had started is settled honestly, and back into the loop with a fresh scope.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar

import anyio

from agentcore._base.describe import error_text
from agentcore._engine import decide as d
from agentcore._engine.cancellation import endure
from agentcore._engine.checks import run_check, verification_at_end
from agentcore._engine.inbox import fold_cancel, fold_inbox, place_steers
from agentcore._engine.model_step import ModelStep
from agentcore._engine.owner import Owner
from agentcore._engine.recovery import recover, settle
from agentcore._engine.tool_step import ToolStep
from agentcore._engine.toolbox import open_toolbox
from agentcore.errors import ConfigError, StoreError
from agentcore.journal.state import RunState, SessionState
from agentcore.types import records as r
from agentcore.types.policy import Budget
from agentcore.types.runs import Stop, Verification

logger = logging.getLogger("agentcore")

OnStop = Callable[[RunState, int], None]
"""Told of every run that ended or paused, and of how many messages there were then."""


class Loop:
    """Drives one session."""

    __slots__ = (
        "_model",
        "_on_stop",
        "_released",
        "_starts",
        "_tools",
        "finished",
        "owner",
    )

    def __init__(self, owner: Owner, on_stop: OnStop) -> None:
        self.owner = owner
        self.finished = False
        self._tools = ToolStep(owner)
        self._model = ModelStep(owner, self._tools)
        self._starts = 0
        self._released = False
        self._on_stop = on_stop

    # --- driving ------------------------------------------------------------------

    async def drive(self) -> None:
        """Advance until nothing is startable, then let go of the session.

        Leaving by cancellation from outside is the graceful stop: what had started is
        settled and the run is paused for the host (settled 37).

        Raises:
            StoreError: the journal failed; nothing more was started.
        """
        owner = self.owner
        try:
            while not self.finished:
                with anyio.CancelScope(deadline=owner.run_deadline) as owner.scope:
                    await self._advance()
                if not self.finished:
                    await self._after_interruption()
            await self._let_go()
        except StoreError:
            with anyio.CancelScope(shield=True):
                await self._release()
            raise
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._stop_after(error)
            raise

    async def _stop_after(self, error: BaseException) -> None:
        """Pause, and let go whatever happens: nobody else could take the session."""
        try:
            await self._stop_for_host()
        except Exception as second:  # noqa: BLE001 - the first error is the one to see
            logger.warning(
                "session %s could not be settled after %s: %s",
                self.owner.state.session_id,
                error_text(error),
                error_text(second),
            )
            await self._release()
        except BaseException:  # asyncio's own cancel once more: no shield keeps it out
            await self._release()
            raise

    async def _release(self) -> None:
        """Give the lease back, once, even if the caller is cancelled meanwhile."""
        if self._released:
            return
        self._released = True
        writer = self.owner.writer
        try:
            if writer.inline:
                await writer.store.release(writer.lease)
                return
            done = await endure(partial(writer.store.release, writer.lease))
        except Exception as error:  # noqa: BLE001 - what is done is on record already
            logger.warning("a lease was not released: %s", error_text(error))
            return
        if done.cancelled is not None:
            raise done.cancelled

    async def _advance(self) -> None:
        """Take steps until done, or until an effect was interrupted."""
        owner = self.owner
        scope, writer = owner.scope, owner.writer
        while not self.finished:
            if writer.inbox_version > writer.inbox_seen:
                await fold_inbox(writer)
            action = d.decide(writer.state, owner.facts)
            stop = await self._HANDLERS[type(action)](self, action)
            if scope.cancel_called:
                return
            if stop is not None:
                await self._end(d.End(stop))

    async def _after_interruption(self) -> None:
        """An effect was cut short by a cancel, the host, or a deadline."""
        owner = self.owner
        owner.in_effect = False
        owner.deadlines.clear(owner.scope, owner.run_deadline)
        if anyio.current_time() >= owner.run_deadline:
            owner.facts.out_of_time = True
            owner.run_deadline = math.inf
        await settle(owner, self._model, self._tools)

    async def _stop_for_host(self) -> None:
        owner = self.owner
        owner.in_effect = False
        owner.deadlines.clear(owner.scope, math.inf)
        owner.facts.halted = True
        if not self.finished:
            await self._pause(d.PAUSE)
        await self._let_go()

    async def _let_go(self) -> None:
        self.finished = True
        writer = self.owner.writer
        await writer.turn()  # a cancel being folded in still belongs to this owner
        if not writer.closed:
            writer.closed = True
            writer.stage(r.OwnerReleased())
        await writer.commit()
        await self._release()

    # --- signals from other tasks -------------------------------------------------

    async def on_accept(self, version: int) -> None:
        """Something arrived in the inbox: a cancel is journaled, then felt (W7)."""
        if self.finished:
            return
        if threading.get_ident() == self.owner.thread:
            await self._look()
        else:
            # The journal is written in the owner's thread. Whoever accepted does not
            # wait for it: the item is durable, and the owner may be about to leave.
            self.owner.spawn_soon(self._look)

    async def _look(self) -> None:
        writer, cancelled = self.owner.writer, False
        try:
            cancelled = not self.finished and await fold_cancel(writer)
        finally:
            # Where it cannot be written, what runs is stopped all the same.
            if cancelled or writer.poisoned is not None:
                self.owner.interrupt()

    def halt(self) -> None:
        """The host leaves: settle what runs, pause, release."""
        self.owner.facts.halted = True
        self.owner.interrupt()

    # --- actions ------------------------------------------------------------------

    async def _start(self, action: d.Start) -> None:
        for record in self._opening():
            self.owner.writer.stage(record)
        await self.open()

    def _opening(self) -> tuple[r.Record, ...]:
        """The records that open a run: it, and the inputs it starts with, placed."""
        owner = self.owner
        owner.facts.resumed = owner.facts.blocked = False
        first = _inputs_to_start_with(owner.state, owner.facts.wanted)
        run_id = owner.setup.ids.new("run")
        position: Any = "follow_up" if self._starts else "start"
        self._starts += 1
        placed = [r.InputPlaced(input_id, run_id, position) for input_id in first]
        return (r.RunStarted(run_id, None, owner.yours.settings, first), *placed)

    async def open(self) -> None:
        """Limits, deadline and tools for a run that starts or goes on."""
        owner = self.owner
        if owner.yours.history == "none":
            owner.history_start = owner.writer.projector.count - len(
                owner.run.input_ids
            )
        owner.view.restart_clock()
        owner.facts.out_of_time = False
        mine, callers = owner.setup.limits, owner.yours.budget
        limits = mine.lowered_by(callers) if mine is not None else callers
        owner.budget = owner.setup.budget(limits) if limits is not None else None
        owner.run_deadline = _deadline(owner.yours.timeout, limits)
        if owner.scope is not None:
            owner.scope.deadline = owner.run_deadline
        try:
            owner.toolbox = await open_toolbox(owner.setup, owner.yours)
        except ConfigError as error:
            await self._end(d.End(Stop("failed", "config", str(error))))
            return
        except Exception as error:  # noqa: BLE001 - an executor may raise anything
            detail = f"the tools cannot be listed: {error_text(error)}"
            await self._end(d.End(Stop("failed", "tool", detail)))
            return
        toolbox = owner.toolbox
        if toolbox.digest != owner.state.advertised:
            owner.writer.stage(r.ToolsAdvertised(toolbox.digest, toolbox.specs))

    async def prepare(self) -> None:
        """`reopen`, and if that fails nobody keeps the session."""
        try:
            await self.reopen()
        except BaseException:
            await self._release()
            raise

    async def reopen(self) -> None:
        """An open run was found: what its last owner left is settled first."""
        if not self.owner.facts.halted:  # one that starts nothing needs no tools
            await self.open()
            if self.owner.state.open_run is None:
                return  # its tools cannot be had: it has ended
        stop = await recover(self.owner)
        if stop is not None:
            await self._end(d.End(stop))

    # The three commonest hand on an awaitable instead of wrapping it in one more.

    def _calls(self, action: d.Calls) -> Awaitable[None]:
        return self._tools.run()

    def _request(self, action: d.Request) -> Awaitable[Stop | None]:
        place_steers(self.owner.writer)
        return self._model.run(action.nudge)

    def _retry(self, action: d.Retry) -> Awaitable[Stop | None]:
        return self._model.retry()

    def _check(self, action: d.RunCheck) -> Awaitable[None]:
        return run_check(self.owner, action.number)

    async def _pause(self, action: d.Pause) -> None:
        owner = self.owner
        run = owner.state.open_run
        if run is not None and action.reason != "host":
            await self._pause_for_decisions(run, action)
            return
        await settle(owner, self._model, self._tools)
        if run is not None:
            if owner.yours.ephemeral:
                owner.writer.stage(_ended(run, Stop("cancelled", "host")))
            elif run.paused is None:
                owner.writer.stage(r.RunPaused(run.run_id, "host"))
            await owner.writer.commit()
            self._on_stop(run, owner.writer.projector.count)
        self.finished = True

    async def _pause_for_decisions(self, run: RunState, action: d.Pause) -> None:
        """Pause, unless something came in meanwhile: it may be the decision."""
        owner = self.owner
        owner.facts.blocked = False
        paused = r.RunPaused(run.run_id, action.reason, action.subjects)
        if await owner.writer.finish((paused,)):
            self._on_stop(run, owner.writer.projector.count)
            self.finished = True

    async def _idle(self, action: d.Idle) -> None:
        self.finished = True

    async def _end(self, action: d.End) -> None:
        """Write `run.ended`; a completed run only if nobody steered meanwhile."""
        owner = self.owner
        run, writer, stop = owner.run, owner.writer, action.stop
        if run.open_calls or run.request is not None:
            await settle(owner, self._model, self._tools, ending=True)
        if stop.status == "completed":
            await self._complete(run, stop)
            return
        self._park(run)
        writer.stage(_ended(run, stop))
        await writer.commit()
        self._on_stop(run, writer.projector.count)

    async def _complete(self, run: RunState, stop: Stop) -> None:
        """The conditional finish; a waiting follow-up starts in the same append."""
        owner = self.owner
        count = owner.writer.projector.count
        successor = bool(owner.state.pending) and not (
            owner.facts.halted or owner.facts.pausing
        )
        starts = self._starts
        verification = await verification_at_end(owner)
        tail: list[r.Record] = [_ended(run, stop, verification)]
        if successor:
            tail += self._opening()
        if not await owner.writer.finish(tuple(tail)):
            self._starts = starts
            return
        self._on_stop(run, count)
        if successor:
            await self.open()

    def _park(self, run: RunState) -> None:
        """A cancel sets aside what was accepted before it (run semantics Q6)."""
        cancel = run.cancel
        if cancel is None:
            return
        for item in list(self.owner.state.pending.values()):
            if item.position < cancel.position:
                self.owner.writer.stage(r.InputParked(item.input_id, cancel.cancel_id))

    _HANDLERS: ClassVar[dict[type, Callable[[Loop, Any], Awaitable[Stop | None]]]] = {
        d.Start: _start,
        d.Calls: _calls,
        d.Request: _request,
        d.RunCheck: _check,
        d.Retry: _retry,
        d.Pause: _pause,
        d.End: _end,
        d.Idle: _idle,
    }


def _ended(
    run: RunState, stop: Stop, verification: Verification | None = None
) -> r.RunEnded:
    final = run.outcome.req_id if run.outcome and stop.status == "completed" else None
    said = verification or run.verification
    return r.RunEnded(run.run_id, stop, run.totals.usage(), final, said)


def _inputs_to_start_with(state: SessionState, wanted: str) -> tuple[str, ...]:
    """All pending steers, or else exactly one follow-up (run semantics Q4).

    Steers said to a run that was about to start go along with its input, in order.
    """
    pending = state.pending.values()
    steers = [item.input_id for item in pending if item.delivery == "steer"]
    first = next((i.input_id for i in pending if i.delivery == "follow_up"), "")
    if not steers or first == wanted:
        steers = [i.input_id for i in pending if i.input_id in (first, *steers)]
    return tuple(steers)


def _deadline(timeout: float | None, limits: Budget | None) -> float:
    seconds = math.inf if timeout is None else timeout
    if limits is not None and limits.wall_time is not None:
        seconds = min(seconds, limits.wall_time)
    return math.inf if seconds == math.inf else anyio.current_time() + seconds
