"""What comes in from outside is folded in once, whoever owns the session."""

from agentcore import MemoryRunStore, ToolLoopAgent
from agentcore.testing import ScriptedModel
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
