"""Parts are open while somebody uses them, and closed after the last."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import anyio
import pytest
from typing_extensions import override

from agentcore import ToolLoopAgent, tool
from agentcore.executors.local import LocalToolExecutor
from agentcore.executors.router import RouterExecutor
from agentcore.testing import (
    FakeExecutor,
    FunctionModel,
    Gate,
    ScriptedModel,
    call,
    tool_spec,
)
from agentcore.types.model import ModelRequest


class Door(FakeExecutor):
    """Opens slowly, and knows whether it is open."""

    def __init__(self, fails: int = 0) -> None:
        super().__init__({"far": "ok"}, specs=[tool_spec("far")])
        self.gate = Gate()
        self.open = 0
        self.listed_closed = 0
        self.fails = fails

    @override
    async def __aenter__(self) -> Self:
        await self.gate.wait()
        if self.fails:
            self.fails -= 1
            raise OSError("no way in")
        self.open += 1
        return self

    @override
    async def __aexit__(self, *exc: object) -> None:
        self.open -= 1

    @override
    async def list_tools(self, context: Any = None) -> Any:
        self.listed_closed += not self.open
        return await super().list_tools(context)


def reply(request: ModelRequest) -> Any:
    return call("far") if len(request.messages) == 1 else "done"


async def test_runs_side_by_side_share_what_is_open_and_the_last_closes_it() -> None:
    door = Door()
    door.gate.open()
    agent = ToolLoopAgent(FunctionModel(reply), executor=door)
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(partial(agent.run, f"hi {number}"))
    assert (door.open, door.listed_closed) == (0, 0)


async def test_after_a_cancelled_opener_the_next_one_opens() -> None:
    door = Door()
    agent = ToolLoopAgent(FunctionModel(reply), executor=door)
    outputs: list[str | None] = []

    async def waiting() -> None:
        outputs.append((await agent.run("second")).output)

    async with anyio.create_task_group() as group:
        opener = anyio.CancelScope()
        with opener:
            async with anyio.create_task_group() as inner:
                inner.start_soon(lambda: agent.run("first"))
                await door.gate.reached()
                group.start_soon(waiting)
                await anyio.wait_all_tasks_blocked()
                opener.cancel()
        await anyio.wait_all_tasks_blocked()
        door.gate.open()
    assert outputs == ["done"]
    assert (door.open, door.listed_closed) == (0, 0)


async def test_a_cancelled_waiter_is_no_user() -> None:
    door = Door()
    agent = ToolLoopAgent(FunctionModel(reply), executor=door)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: agent.run("first"))
        await door.gate.reached()
        with anyio.move_on_after(0.01):
            await agent.run("second")
        door.gate.open()
    assert door.open == 0


async def test_all_who_wait_hear_why_a_part_did_not_open() -> None:
    door = Door(fails=1)
    agent = ToolLoopAgent(FunctionModel(reply), executor=door)
    errors: list[str] = []

    async def attempt() -> None:
        try:
            await agent.run("hi")
        except OSError as error:
            errors.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(attempt)
        group.start_soon(attempt)
        await door.gate.reached()
        await anyio.wait_all_tasks_blocked()
        door.gate.open()
    assert errors == ["no way in"] * 2
    assert (await agent.run("again")).output == "done"
    assert door.open == 0


@tool(effects="none")
def block() -> str:
    """Block for a moment, in a thread."""
    return "done"


def workers() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name == "agentcore-worker"}


@pytest.mark.parametrize(
    "parts",
    [
        lambda: {"tools": [block]},
        lambda: {"executor": LocalToolExecutor([block])},
        lambda: {"executor": RouterExecutor(LocalToolExecutor([block]))},
        lambda: {"tools": [block], "executor": FakeExecutor({"far": "ok"})},
    ],
    ids=["tools", "an executor", "a router", "both"],
)
async def test_leaving_the_agent_leaves_no_thread(
    parts: Callable[[], dict[str, Any]],
) -> None:
    before = workers()
    model = ScriptedModel([[call("block"), call("block")], "one", call("block"), "two"])
    agent = ToolLoopAgent(model, **parts())
    async with agent:
        assert (await agent.run("hi")).output == "one"
        assert workers() - before
    assert workers() <= before
    async with agent:  # and it can be entered again
        assert (await agent.run("hi")).output == "two"
    assert workers() <= before


async def test_a_block_around_the_agent_keeps_its_parts_open() -> None:
    door = Door()
    door.gate.open()
    agent = ToolLoopAgent(FunctionModel(reply), executor=door)
    async with agent:
        await agent.run("one")
        assert door.open == 1
        await agent.run("two")
        assert door.open == 1
    assert door.open == 0
