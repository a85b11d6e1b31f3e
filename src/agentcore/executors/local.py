"""Runs tools in this process: async ones on the event loop, blocking ones in threads.

Deadlines, caps and what a model reads of an exception are the engine's, for every
executor alike; nothing here adds to what the tool itself does.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from agentcore.errors import ConfigError, NotFound
from agentcore.executors._workers import DEFAULT_SIZE, WorkerPool
from agentcore.protocols.tools import SyncTool, Tool
from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import ToolCall, ToolResult, ToolSpec

_Call: TypeAlias = Callable[[JsonObject, ToolContext[Any]], Awaitable[ToolResult]]
_SyncCall: TypeAlias = Callable[[JsonObject, ToolContext[Any]], ToolResult]

_NAMES_SHOWN = 20
GRACE_SECONDS = 2.0
"""Between a cancel and the end of patience with a blocking tool."""


class LocalToolExecutor:
    """Runs tools in this process.

    A tool that is a `SyncTool` runs in a worker thread, so it never holds up the event
    loop; a cancelled call abandons its thread, which stays counted until the tool
    returns. Entering costs nothing; leaving ends the threads that are idle. Both may
    happen any number of times, on any event loop.

    Args:
        tools: `@tool` functions, or anything with the `Tool` protocol.
        workers: Threads at most for blocking tools, or a pool to share with others.
        grace: Seconds a blocking tool that is cancelled has to return by itself.

    Raises:
        ConfigError: something is no tool, or two tools share a name.
    """

    opens_nothing = True  # so nobody has to count who is inside

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        workers: WorkerPool | int = DEFAULT_SIZE,
        grace: float = GRACE_SECONDS,
    ) -> None:
        if not isinstance(grace, (int, float)) or grace < 0:
            raise ConfigError(f"grace must be seconds of at least 0, not {grace!r}")
        self._grace = grace
        self._tools = _by_name(tools)
        self._specs = tuple(tool.spec for tool in self._tools.values())
        self._calls: dict[str, _Call] = {}
        self._blocking: dict[str, _SyncCall] = {}
        for name, tool in self._tools.items():
            if isinstance(tool, SyncTool):
                self._blocking[name] = tool.call_sync
            else:
                self._calls[name] = tool.call
        self._workers = (
            workers if isinstance(workers, WorkerPool) else WorkerPool(workers)
        )

    @property
    def held_workers(self) -> int:
        """Threads whose call was cancelled and whose tool still runs."""
        return self._workers.held

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end_idle_workers()

    def end_idle_workers(self) -> None:
        """End threads that have nothing to do; without it they stay ten seconds."""
        self._workers.end_idle()

    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        """All its tools, in the order given; the same for everybody."""
        return self._specs

    def check(self, name: str, arguments: str) -> JsonObject:
        """Parse and validate the JSON text of a call, without running anything.

        Raises:
            InvalidArguments: the text does not fit; the message is for the model.
            NotFound: no such tool here.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise self._not_found(name)
        return tool.check(arguments)

    async def execute(self, call: ToolCall, context: ToolContext[Any]) -> ToolResult:
        """Run one call to its end. The tool validates its arguments once more.

        Raises:
            NotFound, InvalidArguments: the call never ran.
            Unavailable: it never ran, as no worker thread could be started.
            Exception: whatever the tool raises, as it is.
        """
        run = self._calls.get(call.name)
        if run is not None:
            return await run(call.arguments, context)
        blocking = self._blocking.get(call.name)
        if blocking is None:
            raise self._not_found(call.name)
        return await self._workers.run(
            functools.partial(blocking, call.arguments, context),
            grace=functools.partial(self._grace_of, call, time.monotonic()),
            late=context.late_result,
        )

    def _grace_of(self, call: ToolCall, started: float) -> float:
        """Who is out of time has had its time; who is cancelled gets some more."""
        out_of_time = time.monotonic() - started >= call.timeout
        return 0.0 if out_of_time else self._grace

    def _not_found(self, name: str) -> NotFound:
        names = ", ".join(list(self._tools)[:_NAMES_SHOWN]) or "none"
        more = ", …" if len(self._tools) > _NAMES_SHOWN else ""
        return NotFound(f"no tool named {name!r}; there are: {names}{more}")


def _by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in tools:
        spec: Any = getattr(tool, "spec", None)
        # A class has its instances' methods, so the protocol alone does not tell.
        if not isinstance(spec, ToolSpec) or not isinstance(tool, Tool):
            raise ConfigError(
                f"LocalToolExecutor takes tools, not {tool!r}; decorate a function "
                "with @tool, or pass it to the agent's tools="
            )
        if spec.name in found:
            raise ConfigError(
                f"two tools are named {spec.name!r}: {found[spec.name]!r} and "
                f"{tool!r}; rename one"
            )
        found[spec.name] = tool
    return found
