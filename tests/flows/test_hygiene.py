"""Loops, threads, tasks and memory: an agent is a good guest in any process."""

import asyncio
import gc
import subprocess
import sys
import weakref
from typing import Any

import anyio
import pytest
import trio
from tests.flows.kit import Kit
from typing_extensions import override

from agentcore import Committed, ToolLoopAgent
from agentcore.errors import ConfigError
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    FakeExecutor,
    FunctionModel,
    Gate,
    ScriptedModel,
    assert_valid,
    call,
    step,
)
from agentcore.types import codec
from agentcore.types import records as r
from agentcore.types.content import TextPart
from agentcore.types.json import Unknown
from agentcore.types.messages import AssistantMessage

SCENARIO = pytest.mark.scenario


async def ro() -> str:
    """Read."""
    return "read"


def new_agent(**settings: Any) -> ToolLoopAgent[Any, Any]:
    def answer(request: Any) -> Any:
        return "ok" if len(request.messages) > 1 else call("ro")

    return ToolLoopAgent(FunctionModel(answer), tools=[ro], **settings)


# --- event loops --------------------------------------------------------------------
def test_without_a_loop_run_sync_runs() -> None:
    assert new_agent().run_sync("hi").output == "ok"


async def test_inside_a_loop_run_sync_names_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"await agent\.run"):
        new_agent().run_sync("hi")


@SCENARIO("peers-T25")
def test_one_agent_serves_one_loop_after_another_of_either_kind() -> None:
    agent = new_agent(store=MemoryRunStore())

    async def run() -> str:
        result = await agent.run("hi")
        return str(result.output)

    assert asyncio.run(run()) == "ok"
    assert asyncio.run(run()) == "ok"
    assert trio.run(run) == "ok"
    assert agent.run_sync("hi").output == "ok"


def test_one_session_goes_on_in_another_loop() -> None:
    model = ScriptedModel(["one", "two"])
    agent = ToolLoopAgent(model, store=MemoryRunStore())

    assert agent.run_sync("a", session="s").output == "one"
    assert trio.run(_run, agent, "b") == "two"
    assert len(model.requests[1].messages) == 3


async def _run(agent: ToolLoopAgent[Any, Any], text: str) -> Any:
    return (await agent.run(text, session="s")).output


async def test_two_loops_in_two_threads_share_one_agent() -> None:
    agent = new_agent(store=MemoryRunStore())

    def elsewhere() -> Any:
        return agent.run_sync("there").output

    async with anyio.create_task_group() as tasks:
        outputs: list[Any] = []

        async def there() -> None:
            outputs.append(await anyio.to_thread.run_sync(elsewhere))

        for _ in range(4):
            tasks.start_soon(there)
        outputs.append((await agent.run("here")).output)

    assert outputs == ["ok"] * 5


# --- what is left behind ------------------------------------------------------------
@SCENARIO("peers-T25")
def test_an_agent_that_was_used_can_go() -> None:
    agent = new_agent(store=MemoryRunStore())
    agent.run_sync("hi")
    watch = weakref.ref(agent)
    del agent
    gc.collect()

    assert watch() is None


async def test_an_agent_that_streamed_can_go() -> None:
    agent = new_agent()
    async with agent.start("hi") as run:
        assert [event async for event in run]
        result = await run.result()
    watch = weakref.ref(agent)
    del agent, run
    gc.collect()

    assert result.output == "ok"
    assert watch() is None


@SCENARIO("peers-T25")
def test_many_runs_leave_next_to_nothing_in_memory() -> None:
    code = """
import gc, tracemalloc
import anyio
from tests.flows.test_hygiene import new_agent

async def main():
    agent = new_agent()
    agent_model = agent.model
    for _ in range(50):
        await agent.run("hi")
    agent_model._requests.clear()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(500):
        await agent.run("hi")
    agent_model._requests.clear()
    gc.collect()
    print((tracemalloc.get_traced_memory()[0] - before) / 500)

anyio.run(main)
"""
    output = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=".")

    assert float(output) < 1024


async def test_no_task_outlives_its_run(kit: Kit) -> None:
    before = len(anyio.get_running_tasks())
    agent = kit.agent([[call("par"), call("parw")], "ok"] * 3)
    await agent.run("hi", session="a")
    async with agent.start("hi", session="b") as run:
        await run.result()
    async with agent.start("hi", session="c"):
        pass
    await anyio.wait_all_tasks_blocked()

    assert len(anyio.get_running_tasks()) == before


async def test_the_models_stream_is_closed_however_the_run_ends(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("never", gate=gate, gate_after=1)])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.cancel()
        await run.result()

    assert kit.models[0].active == 0


async def test_an_executor_is_open_while_somebody_runs_and_no_longer(
    kit: Kit,
) -> None:
    executor = FakeExecutor({"t": "x"})
    agent = kit.agent([call("t"), "a", call("t"), "b"], tools=[], executor=executor)
    await agent.run("hi", session="s")
    assert executor.entered == 0

    async with agent:
        assert executor.entered == 1
        await agent.run("hi", session="s")
        assert executor.entered == 1
    assert executor.entered == 0


# --- many at once -------------------------------------------------------------------
@SCENARIO("peers-R25")
async def test_fifty_runs_at_once_some_cancelled_do_not_touch_each_other(
    kit: Kit,
) -> None:
    executor = FakeExecutor({"echo": lambda call: call.arguments["text"]})

    def answer(request: Any) -> Any:
        said = request.messages[-1]
        if said.kind == "user":
            return call("echo", text=said.text)
        return said.results[0].text

    agent = kit.agent(FunctionModel(answer), tools=[], executor=executor)
    results: dict[int, Any] = {}

    async def ask(number: int) -> None:
        name = f"n{number}"
        async with agent.start(name, session=name) as run:
            if number % 5 == 0:
                await run.cancel()
            results[number] = await run.result()

    before = len(anyio.get_running_tasks())
    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(ask, number)
    await anyio.wait_all_tasks_blocked()

    assert len(anyio.get_running_tasks()) == before
    assert executor.entered == 0
    for number, result in results.items():
        if result.stop.status == "completed":
            assert result.output == f"n{number}"
        else:
            assert (number % 5, result.stop.reason) == (0, "user")
    assert sum(r.stop.status == "completed" for r in results.values()) >= 40


# --- what is not known --------------------------------------------------------------
@SCENARIO("peers-T24")
async def test_records_of_a_newer_version_are_shown_as_they_are(kit: Kit) -> None:
    agent = kit.agent(["one", "two"])
    await agent.run("a", session="s")
    odd = Unknown("weather.changed", {"kind": "weather.changed", "sun": True})
    lease = await kit.store.acquire("s", "a newer version")
    last = (await kit.records())[-1].seq
    await kit.store.append(
        lease, [r.OwnerAcquired("a newer version"), odd], expected_seq=last
    )
    await kit.store.append(lease, [r.OwnerReleased()], expected_seq=last + 2)
    await kit.store.release(lease)

    result = await agent.run("b", session="s")
    records = await kit.records()

    assert result.output == "two"
    assert [
        stored.record for stored in records if isinstance(stored.record, Unknown)
    ] == [odd]
    assert_valid(records)
    assert codec.RECORDS.load_many(codec.dump_many([odd])) == [odd]


@SCENARIO("peers-T24")
async def test_a_stream_goes_on_past_a_delta_nobody_knows(kit: Kit) -> None:
    class Newer(ScriptedModel):
        """Sends something of its own between the usual deltas."""

        @override
        def stream(self, request: Any) -> Any:
            return _WithOdd(super().stream(request))

    agent = kit.agent(Newer(["one two"]))
    async with agent.start("hi", session="s") as run:
        events = [event async for event in run]
        result = await run.result()

    assert result.output == "one two"
    assert any(isinstance(event, Unknown) for event in events)
    assert isinstance(events[-1], Committed)


class _WithOdd:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __aenter__(self) -> Any:
        return self._deltas(await self.inner.__aenter__())

    async def __aexit__(self, *exc: object) -> Any:
        return await self.inner.__aexit__(*exc)

    async def _deltas(self, stream: Any) -> Any:
        async for delta in stream:
            yield delta
            yield Unknown("sparkle", {"kind": "sparkle"})


async def test_a_part_nobody_knows_is_kept_in_the_history(kit: Kit) -> None:
    odd = Unknown("hologram", {"kind": "hologram", "x": 1})
    agent = kit.agent([step(content=[TextPart("see"), odd]), "two"])
    await agent.run("a", session="s")
    await agent.run("b", session="s")

    reply = kit.requests()[1].messages[1]
    assert isinstance(reply, AssistantMessage)
    assert odd in reply.content
