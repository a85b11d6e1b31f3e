"""Follows a session somebody else owns, by reading its journal."""

from __future__ import annotations

from typing import Any, Final

import anyio

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
_PATIENCE_SECONDS: Final = 1.0
"""How long an owner may write nothing before it is tried whether it lives."""
_LOOKS: Final = round(_PATIENCE_SECONDS / _POLL_SECONDS)


class Follower:
    """Folds another owner's journal forward until an input has been served."""

    __slots__ = (
        "_looks", "_projector", "_result", "_setup", "_shown", "_store", "_wanted",
        "state",
    )  # fmt: skip

    def __init__(
        self, setup: Setup, store: RunStore, session_id: str, wanted: str
    ) -> None:
        self._setup = setup
        self._store = store
        self._wanted = wanted
        self._projector = setup.projector()
        self._result: RunResult[Any] | None = None
        self._looks = 0
        self._shown: int | None = None
        """Up to here, records are none of a reader's news."""
        self.state = SessionState(session_id)

    async def was_served(self) -> bool:
        """Read what is there; tells whether the input has been served by then."""
        served = False
        async for stored in self._store.read(self.state.session_id, self.state.seq):
            served = self._take(stored) or served
        if not served:
            self._result = None  # paused, at most
        return served

    async def follow(self, feed: Feed) -> bool:
        """Read along until the input is served (true) or somebody else may own (false).

        That is so once the owner has let go; and when nothing was written for a while,
        because an owner that was killed says nothing any more.
        """
        while self._result is None:
            if await self.catch_up(feed):
                return True
            if self._result is None and not (self.state.owned and await self._news()):
                return False
        return True

    async def catch_up(self, feed: Feed) -> bool:
        """Read what is there and show it; tells whether the input is served by then."""
        fresh = [
            stored
            async for stored in self._store.read(self.state.session_id, self.state.seq)
        ]
        if self._shown is None:  # what was there before is no news to anybody
            self._shown = fresh[-1].seq if fresh else self.state.seq
        for stored in fresh:
            ended = self._take(stored)
            if stored.seq > self._shown and feed.readers:
                feed.commit(stored.seq, [stored.record])
            if ended:
                return True
        return False

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

    async def _news(self) -> bool:
        """Wait for a record; false if there was none for a while."""
        store, state = self._store, self.state
        if not isinstance(store, Watch):
            # Whether there is any, the next look will tell.
            await self._setup.clock.sleep(_POLL_SECONDS)
            self._looks = (self._looks + 1) % _LOOKS
            return self._looks > 0
        with anyio.move_on_after(_PATIENCE_SECONDS) as patience:
            await store.wait(state.session_id, state.seq)
        return not patience.cancelled_caught
