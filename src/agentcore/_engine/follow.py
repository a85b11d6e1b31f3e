"""Follows a session somebody else owns, by reading its journal."""

from __future__ import annotations

from typing import Any, Final

from agentcore._engine.deps import Setup
from agentcore._engine.feed import Feed
from agentcore._engine.results import result_of
from agentcore.journal.apply import apply
from agentcore.journal.state import RunState, SessionState
from agentcore.protocols.store import RunStore, Watch
from agentcore.types import records as r
from agentcore.types.runs import RunResult

_POLL_SECONDS: Final = 0.05
"""How often a store that cannot be watched is looked at."""


class Follower:
    """Folds another owner's journal forward until an input has been served."""

    __slots__ = ("_projector", "_result", "_setup", "_store", "_wanted", "state")

    def __init__(
        self, setup: Setup, store: RunStore, session_id: str, wanted: str
    ) -> None:
        self._setup = setup
        self._store = store
        self._wanted = wanted
        self._projector = setup.projector()
        self._result: RunResult[Any] | None = None
        self.state = SessionState(session_id)

    async def was_served(self) -> bool:
        """Read what is there; tells whether the input has been served by then."""
        served = False
        async for stored in self._store.read(self.state.session_id, self.state.seq):
            served = self._take(stored) or served
        if not served:
            self._result = None  # paused, at most
        return served

    async def follow(self, feed: Feed, *, shown_after: int | None = None) -> bool:
        """Read along until the input is served (true) or nobody owns the session.

        Readers are shown what is committed after `shown_after`, by default after what
        was there when following began.
        """
        shown = shown_after
        while self._result is None:
            fresh = [
                stored
                async for stored in self._store.read(
                    self.state.session_id, self.state.seq
                )
            ]
            if shown is None:
                shown = fresh[-1].seq if fresh else self.state.seq
            for stored in fresh:
                ended = self._take(stored)
                if stored.seq > shown and feed.readers:
                    feed.commit(stored.seq, [stored.record])
                if ended:
                    return True
            if self._result is None:
                if not self.state.owned:
                    return False
                await self._wait()
        return True

    def result(self) -> RunResult[Any]:
        """The result of the run that served the input."""
        if self._result is None:
            raise RuntimeError("the input has not been served")
        return self._result

    def _take(self, stored: r.StoredRecord) -> bool:
        """Fold a record in; tells whether it is the end of the run that serves us."""
        record = stored.record
        apply(self.state, record)
        self._projector.add(record)
        run = self.state.run
        if run is None or self._wanted not in run.input_ids:
            return False
        if isinstance(record, (r.RunEnded, r.RunPaused)):
            self._keep(run)
        elif isinstance(record, r.RunUnpaused):
            self._result = None  # that pause is over
        return isinstance(record, r.RunEnded)

    def _keep(self, run: RunState) -> None:
        self._result = result_of(
            run,
            self._projector.window(0, self._projector.count),
            self.state.session_id,
            self._setup.output,
        )

    async def _wait(self) -> None:
        store = self._store
        if isinstance(store, Watch):
            await store.wait(self.state.session_id, self.state.seq)
        else:
            await self._setup.clock.sleep(_POLL_SECONDS)
