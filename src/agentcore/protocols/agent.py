"""The contracts of an agent, of its sessions, and of a run in flight."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypeVar, Unpack

from agentcore.types.actor import Actor
from agentcore.types.content import UserPart
from agentcore.types.events import RunEvent
from agentcore.types.inbox import Delivery
from agentcore.types.messages import UserMessage
from agentcore.types.policy import Decision
from agentcore.types.runs import Receipt, RunOptions, RunResult, RunSnapshot

OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)

Prompt: TypeAlias = str | UserMessage | Sequence[UserPart | str]
"""What a user may say: a text, parts, or a whole message."""


class Run(Protocol[OutputT_co]):
    """A run in flight. Iterating it gives its events, gap-free."""

    @property
    def session_id(self) -> str:
        """The session it runs in."""
        ...

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        """The events, until the run that served this caller's input has stopped."""
        ...

    async def steer(self, message: Prompt, *, input_id: str | None = None) -> Receipt:
        """Say something before the next model request. Durable on return."""
        ...

    async def follow_up(
        self, message: Prompt, *, input_id: str | None = None
    ) -> Receipt:
        """Say something for a run of its own after this one. Durable on return."""
        ...

    async def cancel(self, reason: str = "") -> Receipt:
        """Stop the run; what had started is settled honestly."""
        ...

    async def pause(self) -> None:
        """Let the current batch end, then pause at the next boundary."""
        ...

    async def result(self) -> RunResult[Any]:
        """Wait for the run that served this caller's input, and return its result."""
        ...


class Starting(Protocol[OutputT_co]):
    """What `start` returns: enter it for a `Run`, or await it for the result."""

    async def __aenter__(self) -> Run[OutputT_co]:
        """The input is durable when this returns."""
        ...

    async def __aexit__(self, *exc: object) -> bool | None:
        """Leaving early pauses the run; it can be resumed."""
        ...

    def __await__(self) -> Any:
        """Drain the run and return its `RunResult`."""
        ...


@runtime_checkable
class Agent(Protocol):
    """Anything that answers a prompt by running: local, remote, or made of others."""

    @property
    def name(self) -> str:
        """Short name, for registries and traces."""
        ...

    @property
    def description(self) -> str:
        """What it is good for, in a sentence another model can read."""
        ...

    def start(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        input_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Any:
        """Begin a run; see `Starting`."""
        ...

    def resume(
        self, session: str, *, decisions: Mapping[str, Decision] | None = None
    ) -> Any:
        """Continue a paused or interrupted session; see `Starting`."""
        ...

    def run(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        input_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Awaitable[RunResult[Any]]:
        """Drain `start`."""
        ...


@runtime_checkable
class Sessions(Protocol):
    """The doors to sessions that need no run of one's own."""

    def submit(
        self,
        prompt: Prompt,
        *,
        session: str,
        delivery: Delivery = "follow_up",
        input_id: str | None = None,
        actor: Actor | None = None,
    ) -> Awaitable[Receipt]:
        """Accept an input durably; never drives anything."""
        ...

    def cancel(self, *, session: str, actor: Actor | None = None) -> Awaitable[Receipt]:
        """Ask for the open run to be stopped."""
        ...

    def attach(
        self, session: str, *, after: int = 0
    ) -> AbstractAsyncContextManager[Run[Any]]:
        """Follow a session's events without owning it."""
        ...

    def fork(self, session: str, *, at: int) -> Awaitable[str]:
        """A new session with the records up to `at`; returns its id."""
        ...

    def snapshot(self, session: str) -> Awaitable[RunSnapshot]:
        """The session as one JSON-able value."""
        ...

    def release(
        self, session: str, input_ids: Sequence[str] | None = None
    ) -> Awaitable[Receipt]:
        """Return parked inputs to the queue."""
        ...

    def withdraw(self, session: str, input_id: str) -> Awaitable[Receipt]:
        """Take back an input that has not been placed."""
        ...

    def migrate_workspace(
        self, session: str, path: str, *, actor: Actor | None = None
    ) -> Awaitable[None]:
        """Move a session to another working directory."""
        ...

    def compact(self, session: str) -> Awaitable[None]:
        """Summarise now.

        Raises:
            SessionBusy: a run is open.
        """
        ...

    def shutdown(self) -> Awaitable[None]:
        """Pause everything this agent runs, and let go of its sessions."""
        ...
