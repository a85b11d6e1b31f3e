"""asyncio's own cancellation cuts no append in two, whatever the store waits for."""

import asyncio
import random
from typing import Any

import pytest
from typing_extensions import override

from agentcore import MemoryRunStore, ToolLoopAgent, tool
from agentcore.testing import FunctionModel, assert_valid, call
from agentcore.types.model import ModelRequest


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
