"""What comes in from outside is folded in once, whoever owns the session."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit

from agentcore import MemoryRunStore, RunResult, ToolLoopAgent
from agentcore.errors import ConfigError
from agentcore.testing import ScriptedModel, call
from agentcore.types.inbox import StateChange
from agentcore.types.records import StateChanged


async def test_a_state_change_is_folded_in_by_one_owner_only() -> None:
    store = MemoryRunStore()
    agent = ToolLoopAgent(ScriptedModel(["one", "two", "three"]), store=store)
    await agent.run("hello", session="s")
    await store.accept("s", StateChange("x", "key", 1))
    await agent.run("again", session="s")
    await agent.run("and again", session="s")
    changes = [
        stored.record
        async for stored in store.read("s")
        if isinstance(stored.record, StateChanged)
    ]
    assert [(c.key, c.value, c.position) for c in changes] == [("key", 1, 2)]


async def test_a_caller_whose_input_a_cancel_set_aside_is_told(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "never", "new intent served"])
    results: list[RunResult[Any]] = []

    async def second() -> None:
        results.append(await agent.run("second", session="s", input_id="two"))

    started = agent.start("first", session="s")
    async with anyio.create_task_group() as group, started as run:
        await gate.reached()
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        await run.cancel()
        await agent.submit("new intent", session="s")
    stop = results[0].stop
    assert (stop.status, stop.reason) == ("cancelled", "user")
    assert "release it" in stop.detail


async def test_resuming_a_session_in_which_nothing_waits_says_so() -> None:
    agent = ToolLoopAgent(ScriptedModel([]), store=MemoryRunStore())
    await agent.submit("hello", session="s", input_id="i")
    await agent.withdraw("s", "i")
    with pytest.raises(ConfigError, match="nothing to resume"):
        await agent.resume("s")


async def test_a_cancel_of_what_waits_holds_when_somebody_comes_to_serve_it(
    kit: Kit,
) -> None:
    agent = kit.agent(["never"])
    await agent.submit("hello", session="s")
    await agent.cancel(session="s")
    result = await agent.resume("s")
    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert not kit.requests()
