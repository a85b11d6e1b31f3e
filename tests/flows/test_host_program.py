"""What a chat bot does with an agent, in the few lines a host would write."""

from typing import Any

from agentcore import (
    Actor,
    Approve,
    Committed,
    MemoryRunStore,
    TextDelta,
    ToolLoopAgent,
    tool,
)
from agentcore.testing import Gate, ScriptedModel, call
from agentcore.types.policy import ApprovalRequest
from agentcore.types.records import InputAccepted, ToolIntent


async def test_a_chat_is_streamed_steered_followed_up_and_read_again() -> None:
    gate = Gate()

    @tool(effects="none", replay="safe")
    async def report(months: int) -> str:
        """Report."""
        await gate.wait()
        return f"{months} months"

    model = ScriptedModel([call("report", months=12), "Only March.", "Mailed."])
    agent = ToolLoopAgent(model, tools=[report], store=MemoryRunStore())
    shown: list[str] = []
    ann = Actor("ann", group_id="sales")
    async with agent.start("Report", session="c", input_id="m1", actor=ann) as run:
        async for event in run:
            match event:
                case TextDelta(text=piece):
                    shown.append(piece)
                case Committed(record=ToolIntent(tool=name)):
                    shown.append(f"[{name}]")
                    await agent.submit("March only", session="c", delivery="steer")
                    await agent.submit("and mail it", session="c", input_id="m2")
                    gate.open()
                case _:
                    pass
        first = await run.result()

    assert "".join(shown) == "[report]Only March."
    assert first.output == "Only March."
    mailed = await agent.run("and mail it", session="c", input_id="m2")
    assert mailed.output == "Mailed."
    assert (await agent.cancel(session="c")).note == "already_ended"

    async with agent.attach("c", after=2) as looking:
        inputs = [e.record async for e in looking if type(e.record) is InputAccepted]
    assert [i.actor for i in inputs] == [ann, None, None]


async def test_who_asks_and_who_decides_need_only_share_a_store() -> None:
    @tool(approval="ask")
    async def pay(invoice: int) -> str:
        """Pay."""
        return f"paid {invoice}"

    store = MemoryRunStore()

    def bot(*answers: Any) -> ToolLoopAgent:
        model = ScriptedModel(list(answers))
        return ToolLoopAgent(model, tools=[pay], store=store, asks="pause")

    paused = await bot(call("pay", invoice=17)).run("Pay invoice 17", session="s1")
    (request,) = paused.pending
    assert isinstance(request, ApprovalRequest)
    assert (request.tool, dict(request.arguments)) == ("pay", {"invoice": 17})

    result = await bot("It is paid.").resume("s1", decisions={request.id: Approve()})
    assert result.output == "It is paid."
    assert [c.text for c in result.tool_calls] == ["paid 17"]
