"""What somebody can do with a session without owning it: look on, and cancel it."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, Self, cast

import anyio
from typing_extensions import override

from agentcore._engine.attachments import stow
from agentcore._engine.deps import MakeInput, RunSetup, Setup
from agentcore._engine.feed import Feed
from agentcore._engine.loop import Loop
from agentcore._engine.owner import Owner
from agentcore._engine.results import result_of
from agentcore._engine.session import cancel_open_run, open_session
from agentcore.errors import ConfigError, SessionBusy
from agentcore.journal.apply import apply
from agentcore.journal.state import SessionState
from agentcore.protocols.store import RunStore, Watch
from agentcore.types import inbox as i
from agentcore.types.events import Committed
from agentcore.types.runs import Receipt, RunResult

_POLL_SECONDS: Final = 0.05
_PAGE: Final = 256
"""Records read at a time."""


class Voice:
    """What may be said to a session that is run."""

    __slots__ = ()

    async def steer(self, message: Any, *, input_id: str | None = None) -> Receipt:
        """Say something before the next model request. Durable on return."""
        return await self._say(message, "steer", input_id)

    async def follow_up(self, message: Any, *, input_id: str | None = None) -> Receipt:
        """Say something for a run of its own after this one. Durable on return."""
        return await self._say(message, "follow_up", input_id)

    @abstractmethod
    async def _say(
        self, message: Any, delivery: i.Delivery, input_id: str | None
    ) -> Receipt:
        """Accept a message durably."""


class Attachment(Voice):
    """A session somebody else may be running: its events, and its result (settled 4).

    Iterating gives the committed records after `after`, gap-free, until nobody owns the
    session. An owner that was killed has not let go: the stream waits for the next one.
    """

    __slots__ = (
        "_after", "_buffer", "_make_input", "_projector", "_setup", "_state", "_store",
        "session_id",
    )  # fmt: skip

    def __init__(
        self,
        setup: Setup,
        make_input: MakeInput,
        store: RunStore,
        session_id: str,
        after: int,
    ) -> None:
        self._setup = setup
        self._make_input = make_input
        self._store = store
        self.session_id: str = session_id
        """The session."""
        self._after = after
        self._state = SessionState(session_id)
        self._projector = setup.projector()
        self._buffer: deque[Committed] = deque()

    async def __aenter__(self) -> Self:
        """Find the session.

        Raises:
            SessionNotFound: there is no such session.
        """
        await self._store.inbox(self.session_id)
        await self._read()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Look away; the session does not notice."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Committed:
        while not self._buffer:
            if not await self._read():
                if not self._state.owned:
                    raise StopAsyncIteration
                await self._news()
        return self._buffer.popleft()

    async def result(self) -> RunResult[Any]:
        """Wait until nobody owns the session; the result of its last run.

        Raises:
            ConfigError: no run was ever started in it.
        """
        while await self._read() or self._state.owned:
            await self._news()
        run = self._state.run
        if run is None:
            raise ConfigError(f"session {self.session_id!r} has had no run yet")
        messages = self._projector.window(0, self._projector.count)
        return result_of(run, messages, self.session_id, self._setup.output)

    async def cancel(self, reason: str = "") -> Receipt:
        """Stop the open run; what had started is settled honestly."""
        item = i.Cancel(self._setup.ids.new("cancel"), reason=reason)
        return await cancel_session(self._setup, self._store, self.session_id, item)

    async def pause(self) -> None:
        """Not from outside.

        Raises:
            ConfigError: always. Only who runs a session can pause it.
        """
        raise ConfigError(
            "only who runs a session can pause it; from outside, cancel it"
        )

    @override
    async def _say(
        self, message: Any, delivery: i.Delivery, input_id: str | None
    ) -> Receipt:
        input_id = input_id or self._setup.ids.new("input")
        item = self._make_input(message, delivery, input_id, RunSetup())
        item = await stow(self._store, item)
        return await self._store.accept(self.session_id, item)

    async def _read(self) -> bool:
        """Take the next page of records; tells whether there were any."""
        state, count = self._state, 0
        reading = cast("Any", self._store.read(self.session_id, state.seq))
        async with aclosing(reading):
            async for stored in reading:
                apply(state, stored.record)
                self._projector.add(stored.record)
                if stored.seq > self._after:
                    self._buffer.append(Committed(stored.seq, stored.record))
                count += 1
                if count == _PAGE:
                    break
        return count > 0

    async def _news(self) -> None:
        store = self._store
        if isinstance(store, Watch):
            await store.wait(self.session_id, self._state.seq)
        else:
            await self._setup.clock.sleep(_POLL_SECONDS)


async def cancel_session(
    setup: Setup, store: RunStore, session_id: str, item: i.Cancel
) -> Receipt:
    """Ask for the open run to be stopped; where nobody owns it, stop it here.

    Raises:
        SessionNotFound: there is no such session.
    """
    receipt = await cancel_open_run(store, session_id, item)
    if receipt.note:
        return receipt
    try:
        writer = await open_session(setup, store, session_id, Feed())
    except SessionBusy:
        return receipt  # its owner hears of it
    writer.inbox_version = writer.inbox_seen + 1
    owner = Owner(setup, RunSetup(), writer, "")
    owner.facts.halted = True  # settle the cancel, and start nothing
    loop = Loop(owner, lambda run, count: None)
    with anyio.CancelScope(shield=True):
        if owner.state.open_run is not None:
            await loop.prepare()
        await loop.drive()
    return receipt
