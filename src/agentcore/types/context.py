"""What a running tool is handed: dependencies, the call, the run, and a few doors."""

from __future__ import annotations

from typing import Generic, Protocol

from typing_extensions import TypeVar

from agentcore.types.actor import Actor
from agentcore.types.content import BlobRef
from agentcore.types.policy import Answer, Question
from agentcore.types.runs import RunView
from agentcore.types.tools import ToolCall, ToolResult

DepsT = TypeVar("DepsT", default=None)


class ToolDoors(Protocol):
    """What the engine does for a running tool. Tools reach it through `ToolContext`."""

    def progress(
        self, call_id: str, message: str, progress: float | None, total: float | None
    ) -> None:
        """Show progress to the host; never stored."""
        ...

    async def record_process(
        self, call_id: str, pgid: int, started: float | None
    ) -> None:
        """Journal a process group before it may run user code."""
        ...

    async def save(self, data: bytes, media_type: str) -> BlobRef:
        """Keep bytes in the run's store."""
        ...

    def late_result(self, call_id: str, result: ToolResult) -> None:
        """Note what a call came to after it was given up; from any thread."""
        ...

    async def ask(self, call_id: str, question: Question) -> Answer:
        """Ask the user."""
        ...


class ToolContext(Generic[DepsT]):
    """The context of one tool call; it is injected and never part of the schema.

    Annotate a parameter of a tool with `ToolContext` or `ToolContext[MyDeps]`.
    """

    __slots__ = ("_doors", "call", "deps", "view")

    def __init__(
        self, deps: DepsT, call: ToolCall, view: RunView, doors: ToolDoors
    ) -> None:
        self.deps: DepsT = deps
        """The typed dependencies the host gave to this run."""
        self.call: ToolCall = call
        """The call being executed."""
        self.view: RunView = view
        """The run, read-only."""
        self._doors = doors

    @property
    def actor(self) -> Actor | None:
        """Who is being served, where the input named somebody."""
        actors = self.view.actors
        return actors[0] if actors else None

    def progress(
        self,
        message: str = "",
        *,
        progress: float | None = None,
        total: float | None = None,
    ) -> None:
        """Tell the host how far the call is, as a live `ToolProgress` event."""
        self._doors.progress(self.call.id, message, progress, total)

    async def record_process(self, pgid: int, started: float | None = None) -> None:
        """Journal a child's process group, before the child runs anything.

        `started` is when the group's leader started, in clock ticks since boot, so that
        a recycled id is never mistaken for it; it is looked up where left out.
        """
        await self._doors.record_process(self.call.id, pgid, started)

    async def save(
        self, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> BlobRef:
        """Keep bytes in the run's store; equal bytes are stored once."""
        return await self._doors.save(data, media_type)

    def late_result(self, result: ToolResult) -> None:
        """For executors: what the call came to after it was given up as unknown.

        It is kept beside the outcome, which stays as it is; the model is not told.
        Callable from any thread; without an open run it is dropped.
        """
        self._doors.late_result(self.call.id, result)

    async def ask(self, question: Question) -> Answer:
        """Ask the user and wait for the answer.

        Raises:
            ToolError: nobody is there to answer, or not in time.
        """
        return await self._doors.ask(self.call.id, question)
