"""asyncio's own cancellation cuts no append in two, whatever the store waits for."""

import asyncio
import random
from typing import Any

import pytest
from typing_extensions import override

from agentcore import MemoryRunStore, ToolLoopAgent, tool
from agentcore.testing import FunctionModel, Gate, ScriptedModel, assert_valid, call
from agentcore.types.model import ModelRequest
from agentcore.types.records import RunPaused


class Slow(MemoryRunStore):
    """Suspends before and after everything that must not be cut."""

    commits_inline = False

    @override
    async def append(self, *args: Any, **options: Any) -> Any:
        await asyncio.sleep(0.001)
        done = await super().append(*args, **options)
        await asyncio.sleep(0.001)
        return done

    @override
    async def acquire(self, *args: Any) -> Any:
        lease = await super().acquire(*args)
        await asyncio.sleep(0.001)
        return lease

    @override
    async def release(self, *args: Any) -> None:
        await asyncio.sleep(0.001)
        await super().release(*args)
        await asyncio.sleep(0.001)


@tool(effects="none")
async def look() -> str:
    """Look."""
    await asyncio.sleep(0.001)
    return "seen"


@pytest.mark.parametrize("seed", range(8))
def test_a_run_cancelled_at_any_moment_leaves_a_sound_journal(seed: int) -> None:
    dice = random.Random(seed)

    def reply(request: ModelRequest) -> Any:
        return call("look") if len(request.messages) % 4 == 1 else "done"

    async def story() -> None:
        store = Slow()
        agent = ToolLoopAgent(FunctionModel(reply), tools=[look], store=store)
        for turn in range(6):
            task = asyncio.create_task(agent.run(f"turn {turn}", session="s"))
            await asyncio.sleep(dice.random() * 0.03)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        last = await asyncio.wait_for(agent.run("at last", session="s"), 10)
        assert last.stop.status == "completed"
        assert_valid([stored async for stored in store.read("s")])

    asyncio.run(story())


class Waiting(Slow):
    """Waits at gates a test opens: once the pause is written, or before it lets go."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = Gate()
        self.releasing = Gate()

    @override
    async def append(self, lease: Any, records: Any, **options: Any) -> Any:
        done = await super().append(lease, records, **options)
        if any(isinstance(record, RunPaused) for record in records):
            await self.paused.wait()
        return done

    @override
    async def release(self, *args: Any) -> None:
        await self.releasing.wait()
        await super().release(*args)


async def kinds(store: MemoryRunStore) -> list[str]:
    return [stored.record.kind async for stored in store.read("s")]


def test_a_session_is_let_go_even_if_the_caller_is_cancelled_meanwhile() -> None:
    async def story() -> None:
        store = Waiting()
        agent = ToolLoopAgent(FunctionModel(lambda _: "done"), store=store)
        task = asyncio.create_task(agent.run("hi", session="s"))
        await store.releasing.reached()
        task.cancel()
        store.releasing.open()
        with pytest.raises(asyncio.CancelledError):
            await task
        again = await asyncio.wait_for(agent.run("again", session="s"), 10)
        assert again.output == "done"
        assert (await kinds(store)).count("owner.released") == 2

    asyncio.run(story())


def test_a_loop_that_shuts_down_while_a_pause_is_written_pauses_once() -> None:
    async def story() -> None:
        store = Waiting()
        store.releasing.open()
        looking, seen = Gate(), Gate()

        @tool(effects="none")
        async def wait() -> str:
            """Wait."""
            looking.open()
            await seen.wait()
            return "seen"

        model = ScriptedModel([call("wait"), "done"])
        agent = ToolLoopAgent(model, tools=[wait], store=store)
        async with agent.start("hi", session="s") as run:
            await seen.reached()
            await run.pause()
            seen.open()
            await store.paused.reached()
            for task in asyncio.all_tasks():  # as a loop that is closed does
                if "RunHandle" in task.get_name():
                    task.cancel()
            store.paused.open()
            result = await run.result()
        assert (result.stop.status, result.stop.reason) == ("paused", "host")
        assert (await kinds(store)).count("run.paused") == 1
        assert (await agent.resume("s")).output == "done"

    asyncio.run(story())


def test_a_caller_cancelled_twice_keeps_nobody_out_of_the_session() -> None:
    async def story() -> None:
        store = Waiting()
        store.releasing.open()
        looking = Gate()

        @tool(effects="none")
        async def wait() -> str:
            """Wait."""
            await looking.wait()
            return "seen"

        model = ScriptedModel([call("wait"), "done"])
        agent = ToolLoopAgent(model, tools=[wait], store=store)
        task = asyncio.create_task(agent.run("hi", session="s"))
        await looking.reached()
        task.cancel()
        await store.paused.reached()
        task.cancel()
        store.paused.open()
        with pytest.raises(asyncio.CancelledError):
            await task
        looking.open()
        resumed = await asyncio.wait_for(agent.resume("s").drain(), 10)
        assert resumed.output == "done"

    asyncio.run(story())
