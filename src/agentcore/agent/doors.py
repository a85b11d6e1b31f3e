"""Doors to a session that need no run of one's own: submit, cancel, withdraw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import anyio

from agentcore._base.describe import type_name
from agentcore._engine.deps import RunSetup
from agentcore._engine.outside import Attachment, cancel_session
from agentcore._engine.session import (
    accept_input,
    withdraw_input,
)
from agentcore.agent.options import check_id, input_item
from agentcore.errors import ConfigError
from agentcore.protocols.agent import Prompt
from agentcore.protocols.runtime import IdSource
from agentcore.protocols.store import RunStore
from agentcore.types.actor import Actor
from agentcore.types.inbox import Cancel, Delivery, InboxItem, Release, Withdraw
from agentcore.types.runs import Receipt

if TYPE_CHECKING:
    from agentcore.agent.wiring import Wiring

_TURN_SECONDS: Final = 0.005


class SessionDoors:
    """The part of an agent that reaches sessions through the store's inbox.

    Each is durable when it returns, and works from any process that shares the store,
    whether or not it owns the session.
    """

    __slots__ = ()

    store: RunStore | None
    ids: IdSource

    @abstractmethod
    def _wiring(self) -> Wiring:
        """The agent's parts, put together."""

    async def submit(
        self,
        prompt: Prompt,
        *,
        session: str,
        delivery: Delivery = "follow_up",
        input_id: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Say something to a session without running it.

        `steer` reaches the open run before its next model request; `follow_up` becomes
        a run of its own after it.

        Raises:
            ConfigError: bad input, or the agent has no store; nothing was stored.
            InputConflict: the id was used with other content.
        """
        if delivery not in ("steer", "follow_up"):
            raise ConfigError(
                f"delivery must be 'steer' or 'follow_up', not {delivery!r}"
            )
        input_id = check_id("input_id", input_id or self.ids.new("input"))
        item = input_item(prompt, delivery, input_id, RunSetup(actor=actor))
        return await accept_input(self._store(), check_id("session", session), item)

    async def cancel(
        self, *, session: str, actor: Actor | None = None, reason: str = ""
    ) -> Receipt:
        """Ask for the open run to be stopped; what had started is settled honestly.

        A second cancel gets the receipt of the first; with nothing to stop, the
        receipt's note is `already_ended` and nothing is stored.

        Raises:
            SessionNotFound: there is no such session.
        """
        if actor is not None and not isinstance(actor, Actor):
            raise ConfigError(f"actor must be an Actor, not {type_name(actor)}")
        item = Cancel(self.ids.new("cancel"), actor, reason=reason)
        check_id("session", session)
        return await cancel_session(self._wiring().setup, self._store(), session, item)

    async def withdraw(self, session: str, input_id: str) -> Receipt:
        """Take back an input that has not been placed.

        Raises:
            SessionNotFound: there is no such session.
            InputConflict: it has been placed, or there is no such input.
        """
        item = Withdraw(self.ids.new("item"), input_id)
        return await withdraw_input(self._store(), check_id("session", session), item)

    async def release(
        self, session: str, input_ids: Sequence[str] | None = None
    ) -> Receipt:
        """Return parked inputs to the queue, in their original order.

        Without `input_ids`, all of them.

        Raises:
            SessionNotFound: there is no such session.
            ConfigError: `input_ids` is no list of ids.
        """
        listed = isinstance(input_ids, Sequence) and not isinstance(input_ids, str)
        if input_ids is not None and not (listed and input_ids):
            raise ConfigError(
                "input_ids must be a list of at least one id, or left out to release "
                f"all, not {input_ids!r}"
            )
        item = Release(self.ids.new("item"), tuple(input_ids or ()))
        return await self._send(session, item)

    def attach(self, session: str, *, after: int = 0) -> Attachment:
        """Look on while a session is run, by whatever process, without owning it.

        `async with agent.attach(session) as run`: iterate it for the records after
        number `after`, gap-free, until nobody owns the session; `await run.result()`
        for what its last run came to.

        Raises:
            ConfigError: the agent has no store, or `after` is no record's number.
        """
        if not isinstance(after, int) or isinstance(after, bool) or after < 0:
            raise ConfigError(f"after must be the number of a record, not {after!r}")
        check_id("session", session)
        return Attachment(
            self._wiring().setup, input_item, self._store(), session, after
        )

    async def shutdown(self) -> None:
        """Pause everything this agent runs here, and let go of its sessions.

        No cancel: what runs is settled as at the end of `async with agent.start(…)`,
        and `resume` goes on with it, in any process. Returns when all is let go.
        """
        live = self._wiring().live
        while live:
            for handle in list(live):
                handle.halt()
            await anyio.sleep(_TURN_SECONDS)

    async def fork(self, session: str, *, at: int) -> str:
        """Make a new session of the records up to number `at`; returns its id.

        "Edit and resend" is a fork right before the input. A run that is open there is
        ended in the fork; the session itself stays as it is.

        Raises:
            SessionNotFound: there is no such session.
            ConfigError: it has no record `at`.
        """
        check_id("session", session)
        if not isinstance(at, int) or isinstance(at, bool):
            raise ConfigError(f"at must be the number of a record, not {at!r}")
        # Few sessions are ever forked: nobody else pays for it at import.
        from agentcore.stores.transfer import fork_session  # noqa: PLC0415

        target = self.ids.new("session")
        await fork_session(self._store(), session, at=at, target=target)
        return target

    async def _send(self, session: str, item: InboxItem) -> Receipt:
        return await self._store().accept(check_id("session", session), item)

    def _store(self) -> RunStore:
        if self.store is None:
            raise ConfigError(
                "this needs an agent with a store: ToolLoopAgent(store=…)"
            )
        return self.store
