"""A host sees what an agent holds."""

import threading

import anyio

from agentcore import ToolLoopAgent, tool
from agentcore.testing import ScriptedModel, call


async def test_a_timed_out_blocking_tool_holds_its_worker_until_it_returns() -> None:
    release = threading.Event()

    @tool(effects="none", timeout=0.05)
    def block() -> str:
        """Wait for ever."""
        release.wait(5)
        return "late"

    model = ScriptedModel([call("block"), "gave up"])
    agent = ToolLoopAgent(model, tools=[block])
    try:
        result = await agent.run("go")
        assert result.output == "gave up"
        assert [c.status for c in result.tool_calls] == ["error"]
        assert agent.health().held_workers == 1
    finally:
        release.set()
    with anyio.fail_after(5):
        while agent.health().held_workers:  # noqa: ASYNC110 - a thread ends it
            await anyio.sleep(0.01)
