"""A small command line around an agent: prompts, tool events, approvals, a step cap.

Offline unless a model is named: python cli.py openai:gpt-5-mini
"""

import sys
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from agentcore import Committed, MemoryRunStore, TextDelta, ToolLoopAgent, tool
from agentcore.testing import FunctionModel, StepLike, call
from agentcore.types.messages import ToolMessage
from agentcore.types.model import ModelRequest
from agentcore.types.policy import Answer, ApprovalRequest, Approve, Budget, Deny
from agentcore.types.records import ToolIntent, ToolOutcome


@tool(effects="local", approval="ask")
def save_note(text: str) -> str:
    """Append a note to the file notes.txt."""
    with Path("notes.txt").open("a", encoding="utf-8") as notes:
        notes.write(text + "\n")
    return "saved"


async def ask(request: object) -> Approve | Deny | Answer:
    if not isinstance(request, ApprovalRequest):  # a question of a tool
        return Answer(await run_sync(input, f"{request} "))
    said = await run_sync(input, f"run {request.tool} {dict(request.arguments)}? y/n ")
    return Approve() if said.strip() == "y" else Deny("the user said no")


def offline(request: ModelRequest) -> StepLike:
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"The tool said: {last.results[0].text}."
    return call("save_note", text=getattr(last, "text", ""))


async def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else FunctionModel(offline)
    cap, store = Budget(turns=20), MemoryRunStore()
    agent = ToolLoopAgent(model, tools=[save_note], asks=ask, budget=cap, store=store)
    while text := (await run_sync(input, "> ")).strip():  # an empty line ends
        async with agent.start(text, session="cli") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    print(event.text, end="", flush=True)
                elif isinstance(event, Committed):
                    if isinstance(event.record, ToolIntent):
                        print(f"[{event.record.tool} runs]")
                    elif isinstance(event.record, ToolOutcome):
                        print(f"[{event.record.status}]")
            print(f"\n[{(await run.result()).stop.status}]")


if __name__ == "__main__":
    anyio.run(main)
