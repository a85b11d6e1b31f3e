"""What the caller of a run can do with it while it is on."""

from __future__ import annotations

from typing import Any, Final

import anyio
from typing_extensions import override

from agentcore._engine.attachments import stow
from agentcore._engine.checks import record_evidence
from agentcore._engine.deps import Place, RunSetup, Setup
from agentcore._engine.loop import Loop
from agentcore._engine.outside import Voice
from agentcore._engine.session import cancel_open_run
from agentcore.errors import ConfigError
from agentcore.protocols.store import RunStore
from agentcore.types import inbox as i
from agentcore.types.runs import CheckResult, Receipt, RunResult

NOT_ENTERED: Final = "the run has not been started: use `async with agent.start(...)`"


class Controls(Voice):
    """The doors of a run handle that do not drive."""

    __slots__ = ()

    session_id: str
    _setup: Setup
    _yours: RunSetup
    _place: Place
    _store: RunStore
    _loop: Loop | None
    _result: RunResult[Any] | None
    _done: anyio.Event | None

    @override
    async def _say(
        self, message: Any, delivery: i.Delivery, input_id: str | None
    ) -> Receipt:
        if self._done is None:
            raise ConfigError(NOT_ENTERED)
        loop = self._loop
        if self._place.private and loop is not None and loop.finished:
            raise ConfigError(
                "this run is over, and without a store so is its session; give the "
                "agent a store to go on in a session"
            )
        name = input_id or self._setup.ids.new("input")
        item = self._place.make_input(message, delivery, name, self._yours)
        item = await stow(self._store, item)
        return await self._store.accept(self.session_id, item)

    async def cancel(self, reason: str = "") -> Receipt:
        """Stop the run; what had started is settled honestly.

        `reason` goes on record and into `stop.detail`.
        """
        if self._done is None:
            raise ConfigError(NOT_ENTERED)
        name = self._setup.ids.new("cancel")
        item = i.Cancel(name, self._yours.actor, reason=reason)
        if self._result is not None:
            return Receipt(item.id, 0, note="already_ended")
        loop = self._loop
        if loop is None:
            return await cancel_open_run(self._store, self.session_id, item)
        run = loop.owner.state.open_run
        if run is not None and run.cancel is not None:
            return Receipt(run.cancel.cancel_id, run.cancel.position, duplicate=True)
        return await self._store.accept(self.session_id, item)

    async def pause(self) -> None:
        """Let the current batch end, then pause at the next boundary."""
        if self._done is None:
            raise ConfigError(NOT_ENTERED)
        if self._loop is not None:
            self._loop.owner.facts.pausing = True

    async def record_evidence(
        self, check: str, found: CheckResult, *, fingerprint: str | None = None
    ) -> None:
        """Keep what the host found out about the open run by itself.

        Raises:
            ConfigError: no run is open here, or this handle does not own the session.
        """
        loop = self._loop
        if loop is None or loop.owner.state.open_run is None:
            raise ConfigError("evidence needs an open run that this handle drives")
        await record_evidence(loop.owner, check, found, fingerprint)
