"""A host is told of what did not stop the run."""

from agentcore import RunWarning, ToolLoopAgent, tool
from agentcore.testing import ScriptedModel, call


@tool(effects="none", output_cap=10)
async def recite() -> str:
    """Recite."""
    return "x" * 1000


async def test_a_shortened_result_is_announced_with_where_the_whole_is() -> None:
    agent = ToolLoopAgent(ScriptedModel([call("recite"), "ok"]), tools=[recite])
    async with agent.start("go") as run:
        warnings = [event async for event in run if isinstance(event, RunWarning)]
    assert [w.code for w in warnings] == ["tool_output_shortened"]
    assert "recite has 1000 bytes" in warnings[0].message
