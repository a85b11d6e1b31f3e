"""Many executors behind one: each call goes to the one that offers its tool."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from agentcore._base.describe import type_name
from agentcore.errors import ConfigError, NotFound
from agentcore.protocols.tools import ChecksArguments, ToolExecutor
from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import ToolCall, ToolResult, ToolSpec


class RouterExecutor:
    """Offers the tools of several executors, in the order the executors are given.

    Raises (when listing):
        ConfigError: two of them offer a tool of the same name.
    """

    def __init__(self, *executors: ToolExecutor) -> None:
        for executor in executors:
            if isinstance(executor, type) or not isinstance(executor, ToolExecutor):
                raise ConfigError(
                    f"RouterExecutor takes executors, not {type_name(executor)} "
                    f"{executor!r}"
                )
        if not executors:
            raise ConfigError("RouterExecutor needs at least one executor")
        self._executors = executors
        self._routes: dict[str, ToolExecutor] = {}
        self._listed: tuple[Sequence[ToolSpec], ...] = ()
        self._specs: tuple[ToolSpec, ...] = ()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for executor in self._executors:
                await stack.enter_async_context(executor)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        """All tools; the same object as before while none of the lists changed."""
        listed = tuple([await e.list_tools(context) for e in self._executors])
        if len(listed) == len(self._listed) and all(
            new is old for new, old in zip(listed, self._listed, strict=True)
        ):
            return self._specs
        routes: dict[str, ToolExecutor] = {}
        for executor, specs in zip(self._executors, listed, strict=True):
            for spec in specs:
                if spec.name in routes:
                    raise ConfigError(
                        f"two executors offer a tool named {spec.name!r}; "
                        "rename one of them"
                    )
                routes[spec.name] = executor
        self._routes, self._listed = routes, listed
        self._specs = tuple(spec for specs in listed for spec in specs)
        return self._specs

    def check(self, name: str, arguments: str) -> JsonObject:
        """Validate by the executor that offers the tool, where it can.

        Raises:
            InvalidArguments: the arguments do not fit.
            NotFound: no executor that can check offers the tool.
        """
        executor: Any = self._routes.get(name)
        if isinstance(executor, ChecksArguments):
            return executor.check(name, arguments)
        raise NotFound(f"no executor here can check the arguments of {name!r}")

    async def execute(self, call: ToolCall, context: ToolContext[Any]) -> ToolResult:
        """Run the call where its tool is offered.

        Raises:
            NotFound: nowhere; nothing ran.
        """
        executor = self._routes.get(call.name)
        if executor is None:
            raise NotFound(f"no executor offers a tool named {call.name!r}")
        return await executor.execute(call, context)
