"""A user interface can follow every call from its first streamed character."""

from collections.abc import Sequence

from agentcore import Approve, Deny, MemoryRunStore, ToolLoopAgent, tool
from agentcore.journal.tool_parts import ToolParts
from agentcore.testing import ScriptedModel, call, call_raw
from agentcore.testing.steps import StepLike
from agentcore.types.events import ToolPartState
from agentcore.types.policy import Decision


@tool(effects="none", approval="ask")
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@tool(effects="none")
async def fail() -> str:
    """Fail."""
    raise RuntimeError("no")


async def states_of(
    steps: Sequence[StepLike], answer: Decision
) -> tuple[list[ToolPartState], dict[str, ToolPartState]]:
    async def ask(request: object) -> Decision:
        return answer

    agent = ToolLoopAgent(
        ScriptedModel(steps),
        tools=[pay, fail],
        store=MemoryRunStore(),
        asks=ask,
    )
    seen: list[ToolPartState] = []
    parts = ToolParts()
    async with agent.start("go") as run:
        async for event in run:
            parts.add(event)
            for part in parts.parts.values():
                if not seen or seen[-1] != part.state:
                    seen.append(part.state)
    return seen, {p.name: p.state for p in parts.parts.values()}


async def test_an_approved_call_passes_through_every_state() -> None:
    seen, _ = await states_of([call("pay", amount=3), "done"], Approve())
    assert seen == [
        "input-streaming",
        "input-available",
        "approval-requested",
        "approval-responded",
        "executing",
        "output-available",
    ]


async def test_a_denied_call_ends_as_denied() -> None:
    _, last = await states_of([call("pay", amount=3), "done"], Deny("no"))
    assert last == {"pay": "output-denied"}


async def test_unusable_arguments_and_failures_are_told_apart() -> None:
    steps: list[StepLike] = [[call_raw("pay", '{"amount":'), call("fail")], "done"]
    _, last = await states_of(steps, Approve())
    assert last == {"pay": "input-error", "fail": "output-error"}
