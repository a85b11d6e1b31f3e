"""A run as its caller holds it: entered for events, or awaited for the result.

Awaiting drives the session in the caller's own task: no task, no queue, no lock per
step. Entering starts a task that drives while the caller reads, steers or cancels;
leaving early is the graceful stop (settled 37). Where somebody else owns the session,
the same handle follows the journal until its input has been served (settled 4).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, cast

import anyio
from anyio.abc import TaskGroup

from agentcore._engine.attachments import stow
from agentcore._engine.cancellation import endure
from agentcore._engine.controls import NOT_ENTERED, Controls
from agentcore._engine.decisions import accept_decisions
from agentcore._engine.deps import Place, RunSetup, Setup
from agentcore._engine.feed import NOBODY, Feed, Reader
from agentcore._engine.follow import Follower
from agentcore._engine.inbox import stage_item
from agentcore._engine.loop import Loop
from agentcore._engine.owner import Owner
from agentcore._engine.results import (
    result_of,
    result_of_unserved,
    result_of_waiting,
    result_of_withdrawn,
)
from agentcore._engine.session import (
    accept_input,
    open_session,
)
from agentcore._engine.sinks import SinkPump
from agentcore._engine.writer import Writer
from agentcore.errors import ConfigError, SessionBusy
from agentcore.journal.state import RunState
from agentcore.protocols.store import RunStore, Watch
from agentcore.types import inbox as i
from agentcore.types import records as r
from agentcore.types.json import EMPTY
from agentcore.types.policy import Decision
from agentcore.types.runs import RunResult

_UNOPENED: Final = cast("RunStore", None)
_RELEASE_SECONDS: Final = 0.005


class RunHandle(Controls):
    """What `ToolLoopAgent.start` and `.resume` return."""

    __slots__ = (
        "_decisions", "_done", "_error", "_feed", "_follower", "_fresh", "_group",
        "_halting", "_input", "_loop", "_place", "_position", "_reader", "_result",
        "_setup", "_stack", "_store", "_told", "_used", "_yours", "session_id",
    )  # fmt: skip

    def __init__(
        self,
        setup: Setup,
        yours: RunSetup,
        place: Place,
        session_id: str,
        item: i.Input | None,
        *,
        fresh: bool = False,
        decisions: Mapping[str, Decision] = EMPTY,
    ) -> None:
        self._setup = setup
        self._yours = yours
        self._place = place
        self._store: RunStore = _UNOPENED
        self.session_id: str = session_id
        """The session this run belongs to."""
        self._input = item
        self._fresh = fresh
        """The session cannot exist yet."""
        self._decisions = decisions
        self._position = 0
        self._used = self._halting = False
        self._feed = NOBODY
        self._loop: Loop | None = None
        self._follower: Follower | None = None
        self._result: RunResult[Any] | None = None
        self._error: BaseException | None = None
        self._told = False
        self._done: anyio.Event | None = None
        self._reader: Reader | None = None
        self._group: TaskGroup | None = None
        self._stack: AsyncExitStack | None = None

    def _use(self) -> None:
        if self._used:
            raise ConfigError(
                "this run was started before: call `agent.start(...)` again for "
                "another one, or inside `async with` use `await run.result()`"
            )
        self._used = True

    # --- awaited: drive here and now ----------------------------------------------

    def __await__(self) -> Generator[Any, Any, RunResult[Any]]:
        return self.drain().__await__()

    async def drain(self) -> RunResult[Any]:
        """Drive to the end; what awaiting the handle does."""
        self._use()
        place, setup = self._place, self._setup
        if setup.sinks:
            self._feed = Feed()
        self._store = place.store(bool(setup.sinks))
        await place.lifetimes.enter()
        place.live.add(self)
        try:
            await self._accept()
            if self._follower is None:
                await self._open()
            await self._work()
            await self._conclude()
        finally:
            await self._leave()
        return self._own_result()

    # --- entered: drive beside the caller -----------------------------------------

    async def __aenter__(self) -> Self:
        """The input is durable when this returns."""
        self._use()
        self._store = self._place.store(True)
        self._feed = Feed()
        async with AsyncExitStack() as stack:
            await self._place.lifetimes.enter()
            stack.push_async_callback(self._leave)
            self._place.live.add(self)
            await self._accept()
            if self._follower is None:
                await self._open()
            done = self._done = anyio.Event()
            reader = self._reader = self._feed.open(self._reread)
            self._group = await stack.enter_async_context(anyio.create_task_group())
            self._group.start_soon(self._background, reader, done)
            stack.callback(self._feed.drop, reader)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Wait for the session's work, or, leaving early, pause it for the host."""
        stack, self._stack = self._stack, None
        if stack is None:
            raise ConfigError(NOT_ENTERED)
        loop = self._loop
        early = self._result is None or exc is not None
        if early and loop is not None and not loop.finished:
            loop.halt()
        if early and loop is None and self._group is not None:
            self._group.cancel_scope.cancel()  # only reading along: nothing to settle
        # Not handed on: the caller gets its own error as it is, not in a group.
        await stack.__aexit__(None, None, None)
        if exc is None and self._error is not None and not self._told:
            raise self._error
        return None

    async def _leave(self) -> None:
        self._place.live.discard(self)
        await self._place.lifetimes.leave()

    def halt(self) -> None:
        """The host shuts down: settle what runs, pause, release. From any thread."""
        self._halting = True
        if self._loop is not None:
            self._loop.owner.call_soon(Loop.halt, self._loop)

    async def _background(self, reader: Reader, done: anyio.Event) -> None:
        try:
            await self._work()
            await self._conclude()
        except Exception as error:  # noqa: BLE001 - given to whoever waits for the run
            self._error = reader.failure = error
        finally:
            self._feed.close()
            done.set()

    # --- the run ------------------------------------------------------------------

    def __aiter__(self) -> Reader:
        """The events up to the end of the run that served this caller's input."""
        if self._reader is None:
            raise ConfigError(NOT_ENTERED)
        return self._reader

    async def result(self) -> RunResult[Any]:
        """Wait for the run that served this caller's input.

        Raises:
            StoreError: the journal failed under the run.
        """
        if self._done is None:
            raise ConfigError(NOT_ENTERED)
        await self._done.wait()
        if self._error is not None:
            self._told = True
            raise self._error
        return self._own_result()

    # --- opening and driving ------------------------------------------------------

    async def _accept(self) -> None:
        if self._decisions:
            await accept_decisions(
                self._store, self.session_id, self._decisions, self._yours.actor
            )
        if self._input is not None:
            self._input = await stow(self._store, self._input)
            receipt = await accept_input(
                self._store, self.session_id, self._input, fresh=self._fresh
            )
            self._position = receipt.position
            if receipt.duplicate:
                earlier = self._follow(self._input)
                if await earlier.was_served():
                    self._follower = earlier

    def _follow(self, item: i.Input | None) -> Follower:
        wanted = item.id if item is not None else ""
        return Follower(self._setup, self._store, self.session_id, wanted)

    async def _open(self) -> None:
        """Become the owner, or follow the one there is."""
        item = self._input
        try:
            writer = await open_session(
                self._setup,
                self._store,
                self.session_id,
                self._feed,
                fresh=self._place.private,
            )
        except SessionBusy:
            if item is None and not self._decisions:
                raise
            if self._follower is None:
                self._follower = self._follow(item)
            return
        try:
            await self._take_over(writer)
        except BaseException:
            await endure(partial(self._store.release, writer.lease))
            raise

    async def _take_over(self, writer: Writer) -> None:
        """Count the attempt, hear the caller's input, and settle what was left open."""
        item = self._input
        if self._follower is not None:
            await self._follower.catch_up(self._feed)
            self._follower = None
        run = writer.state.open_run
        if run is not None and run.paused is None:
            attempt = writer.state.resume_attempts + 1
            writer.stage(r.ResumeAttempted(run.run_id, attempt))
            await writer.commit()  # counted before anything that could fail again
        if item is not None and self._position == writer.state.inbox_seen + 1:
            stage_item(writer, self._position, item)
            writer.inbox_seen = self._position
        # Whatever else waits in the inbox is read before the first decision: a message
        # may have been withdrawn since it was accepted.
        writer.inbox_version = writer.inbox_seen + (not self._place.private)
        wanted = item.id if item is not None else ""
        owner = Owner(self._setup, self._yours, writer, wanted)
        # An open run is what is resumed; without one, what is pending.
        owner.facts.resumed = item is None and run is None
        owner.facts.halted = self._halting
        self._loop = Loop(owner, self._on_stop)
        if run is not None:
            await self._loop.prepare()

    def _work(self) -> Awaitable[None]:
        """Bring the session to where this caller's input has been served."""
        alone = self._place.private and self._group is None and not self._setup.sinks
        if alone and self._loop is not None:
            return self._loop.drive()  # nobody else can reach it, or look on
        return self._work_with_others()

    async def _work_with_others(self) -> None:
        """Drive, or follow until the input is served; take over an ownerless one."""
        while self._follower is not None:
            if await self._follower.follow(self._feed):
                self._keep(self._follower.result())
                return
            if self._halting:
                self._keep(result_of_waiting(self.session_id))
                return
            await self._open()
            if self._follower is not None:  # released on record, not yet in the store
                await anyio.sleep(_RELEASE_SECONDS)
        loop = cast("Loop", self._loop)  # it follows nobody, so it owns
        async with AsyncExitStack() as stack:
            if self._setup.sinks:
                pump = SinkPump(self._setup.sinks, self._feed, self._reread)
                await stack.enter_async_context(pump)
            if self._place.watch:
                watched = cast("Watch", self._store)
                listening = watched.on_accept(self.session_id, loop.on_accept)
                stack.enter_context(listening)
            await loop.drive()

    async def _conclude(self) -> None:
        """The owner is done; if this caller has no result yet, say what there is."""
        loop = self._loop
        if self._result is not None or loop is None:
            return
        if self._input is not None and not self._place.private:
            earlier = self._follow(self._input)
            if await earlier.was_served():  # by the owner before this one
                self._keep(earlier.result())
                return
        state = loop.owner.state
        run = state.run
        unserved = result_of_unserved(state, self._input)
        if unserved is not None:
            self._keep(unserved)
            return
        if run is None:
            raise ConfigError(
                f"session {self.session_id!r} has nothing to resume: no run was "
                "started in it, and nothing waits"
            )
        # Whatever stopped the session kept it from coming to this caller's input.
        stopped = run.ended is None or run.ended.stop.status == "cancelled"
        count = loop.owner.writer.projector.count
        self._on_stop(run, count, whosever=stopped)
        if self._result is None:
            self._keep(result_of_withdrawn(self.session_id))

    def _on_stop(self, run: RunState, count: int, *, whosever: bool = False) -> None:
        """A run ended or paused; keep the result if it served this caller."""
        wanted = self._input.id if self._input is not None else ""
        loop = self._loop
        if loop is None or self._result is not None:
            return
        if wanted and wanted not in run.input_ids and not whosever:
            return
        messages = loop.owner.writer.projector.window(0, count)
        self._keep(result_of(run, messages, self.session_id, self._setup.output))

    def _keep(self, result: RunResult[Any]) -> None:
        self._result = result
        if self._reader is not None:
            self._feed.drop(self._reader)
        if self._done is not None:
            self._done.set()

    def _own_result(self) -> RunResult[Any]:
        if self._result is None:
            raise RuntimeError("the session stopped before the input was served")
        return self._result

    def _reread(self, after: int) -> AsyncIterator[r.StoredRecord]:
        return self._store.read(self.session_id, after)
