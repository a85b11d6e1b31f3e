"""The local executor runs tools as they are, and blocking ones off the loop."""

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from agentcore.errors import ConfigError, InvalidArguments, NotFound, Retryable
from agentcore.executors._workers import WorkerPool
from agentcore.executors.local import LocalToolExecutor
from agentcore.protocols.tools import ChecksArguments, ToolExecutor
from agentcore.tools import FunctionTool, tool
from agentcore.types.context import ToolContext
from agentcore.types.tools import ToolCall, ToolSpec


@tool(effects="none")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def who(ctx: ToolContext[str]) -> str:
    """Who is asking."""
    return f"{ctx.deps} {threading.current_thread() is threading.main_thread()}"


@tool
def who_sync(ctx: ToolContext[str]) -> str:
    """Who is asking."""
    return f"{ctx.deps} {threading.current_thread() is threading.main_thread()}"


@tool
def sleep(seconds: float) -> str:
    """Block."""
    time.sleep(seconds)
    return "slept"


@tool
async def fails() -> str:
    """Fail."""
    raise Retryable("later")


@tool
def fails_sync() -> str:
    """Fail."""
    raise Retryable("later")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("call_1", name, arguments)


def context(deps: Any = None) -> ToolContext[Any]:
    nothing = cast("Any", None)
    return ToolContext(deps, call("any"), nothing, nothing)


def executor(*tools: FunctionTool[..., Any], workers: int = 8) -> LocalToolExecutor:
    return LocalToolExecutor(tools, workers=workers)


@asynccontextmanager
async def ticker(delays: list[float]) -> AsyncIterator[None]:
    """Record how late a sleep of 10 ms ends, as long as the block runs."""

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.01)
            delays.append(time.perf_counter() - before - 0.01)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        yield
        group.cancel_scope.cancel()


async def test_it_lists_its_tools_in_order_and_always_the_same_list() -> None:
    local = executor(add, sleep)

    listed = await local.list_tools()
    assert list(listed) == [add.spec, sleep.spec]
    assert await local.list_tools(context()) is listed


async def test_it_has_the_protocols_and_may_be_entered_again_and_again() -> None:
    local = executor(add)

    assert isinstance(local, ToolExecutor)
    assert isinstance(local, ChecksArguments)
    async with local as first, local as second:
        assert first is second is local
    assert (await local.execute(call("add", a=1, b=2), context())).structured == 3


async def test_async_tools_run_on_the_loop_and_sync_ones_in_a_thread() -> None:
    local = executor(who, who_sync)

    result = await local.execute(call("who"), context("ann"))
    assert result.text == "ann True"
    result = await local.execute(call("who_sync"), context("ann"))
    assert result.text == "ann False"


async def test_arguments_are_checked_by_name_and_again_at_the_call() -> None:
    local = executor(add, sleep)

    assert local.check("add", '{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    with pytest.raises(InvalidArguments, match="b: Field required"):
        local.check("add", '{"a": 1}')
    with pytest.raises(InvalidArguments, match="b: Field required"):
        await local.execute(call("add", a=1), context())
    with pytest.raises(InvalidArguments, match="seconds: "):
        await local.execute(call("sleep", seconds="long"), context())


async def test_an_unknown_tool_is_not_found_and_the_known_are_named() -> None:
    local = executor(add, sleep)

    with pytest.raises(NotFound, match="no tool named 'sub'; there are: add, sleep"):
        await local.execute(call("sub"), context())
    with pytest.raises(NotFound, match="no tool named 'sub'"):
        local.check("sub", "{}")
    with pytest.raises(NotFound, match="there are: none"):
        executor().check("sub", "{}")
    many = executor(*(add.renamed(f"add{i}") for i in range(100)))
    with pytest.raises(NotFound) as caught:
        many.check("sub", "{}")
    assert str(caught.value).endswith("add19, …")


async def test_what_a_tool_raises_comes_out_as_it_is() -> None:
    local = executor(fails, fails_sync)

    for name in ("fails", "fails_sync"):
        with pytest.raises(Retryable, match="later"):
            await local.execute(call(name), context())


async def test_a_blocking_tool_never_delays_a_ticker() -> None:
    delays: list[float] = []

    async with ticker(delays):
        result = await executor(sleep).execute(call("sleep", seconds=0.5), context())

    assert result.text == "slept"
    assert len(delays) >= 8
    assert max(delays) < 0.05


async def test_an_abandoned_tool_holds_its_worker_visibly() -> None:
    local = LocalToolExecutor([sleep, add], workers=1, grace=0)
    delays: list[float] = []
    assert local.held_workers == 0

    async with ticker(delays):
        with anyio.move_on_after(0.05) as scope:
            await local.execute(call("sleep", seconds=0.4), context())
        assert scope.cancelled_caught
        assert local.held_workers == 1
        # Async tools need no worker; the next blocking one waits for the held one.
        assert (await local.execute(call("add", a=1, b=2), context())).ok
        assert (await local.execute(call("sleep", seconds=0), context())).ok

    assert local.held_workers == 0
    assert max(delays) < 0.05


async def test_executors_may_share_a_pool() -> None:
    pool = WorkerPool(1)
    one = LocalToolExecutor([sleep], workers=pool, grace=0)
    other = LocalToolExecutor([sleep], workers=pool)

    with anyio.move_on_after(0.05):
        await one.execute(call("sleep", seconds=0.2), context())
    assert other.held_workers == 1


class Slotless:
    spec = ToolSpec("slotless", "No methods.", {})


@pytest.mark.parametrize("thing", [lambda: "", "add", None, FunctionTool, Slotless()])
def test_what_is_no_tool_is_refused(thing: Any) -> None:
    with pytest.raises(ConfigError, match=r"takes tools, not .*decorate a function"):
        LocalToolExecutor([thing])


def test_two_tools_of_one_name_are_both_named() -> None:
    with pytest.raises(ConfigError, match=r"two tools are named 'add': .*add.*sleep"):
        LocalToolExecutor([add, sleep.renamed("add")])


def test_workers_below_one_are_refused() -> None:
    with pytest.raises(ConfigError, match="use at least 1"):
        LocalToolExecutor([add], workers=0)
