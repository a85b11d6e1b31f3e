"""One process asks for an approval and ends; another one decides, and pays.

    python approval_elsewhere.py bot.db start     # pauses, prints what waits, exits
    python approval_elsewhere.py bot.db pending   # any time later: what waits
    python approval_elsewhere.py bot.db yes       # or `no`, or `yes 5` to pay only 5

Nothing is kept between the processes but the file. Offline.
"""

import sys

import anyio

from agentcore import (
    AgentCoreError,
    Approve,
    Deny,
    RunResult,
    SqliteRunStore,
    ToolLoopAgent,
    ToolMessage,
    tool,
)
from agentcore.testing import FunctionModel, StepLike, call
from agentcore.types.model import ModelRequest
from agentcore.types.policy import ApprovalRequest


@tool(effects="external", approval="ask")
async def pay(invoice: int, amount: int) -> str:
    """Pay an invoice."""
    return f"paid {amount} for invoice {invoice}"


def offline(request: ModelRequest) -> StepLike:
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"The tool said: {last.results[0].text}."
    return call("pay", invoice=17, amount=90)


def show(result: RunResult) -> None:
    print(result.stop.status, result.stop.reason)
    for waiting in result.pending:
        if isinstance(waiting, ApprovalRequest):
            print("waits:", waiting.tool, dict(waiting.arguments))
    if result.output:
        print(result.output)


async def main(path: str, command: str, amount: str = "") -> None:
    store = SqliteRunStore(path)
    agent = ToolLoopAgent(
        FunctionModel(offline), tools=[pay], store=store, asks="pause"
    )
    if command == "start":
        show(await agent.run("Pay invoice 17.", session="s1"))
        return
    async with agent.attach("s1") as looking:  # owns nothing, changes nothing
        paused = await looking.result()
    if command == "pending" or not paused.pending:
        show(paused)
        return
    (request,) = paused.pending
    decision = Deny("too much") if command == "no" else Approve()
    if amount and isinstance(request, ApprovalRequest):
        decision = Approve(arguments={**request.arguments, "amount": int(amount)})
    show(await agent.resume("s1", decisions={request.id: decision}))


if __name__ == "__main__":
    try:
        anyio.run(main, *sys.argv[1:])
    except AgentCoreError as error:
        sys.exit(f"{type(error).__name__}: {error}")
