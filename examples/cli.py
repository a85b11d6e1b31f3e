"""A small command line around an agent: prompts, tool events, approvals, a step cap.

Offline unless a model is named: python cli.py openai:gpt-5-mini
An empty line or Ctrl-D ends it, and so does Ctrl-C, whatever it is doing.
"""

import os
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


async def typed(prompt: str) -> str:
    try:
        return (await run_sync(input, prompt, abandon_on_cancel=True)).strip()
    except EOFError:  # Ctrl-D
        print()
        return ""


async def ask(request: object) -> Approve | Deny | Answer:
    if not isinstance(request, ApprovalRequest):  # a question of a tool
        return Answer(await typed(f"{request} "))
    said = await typed(f"run {request.tool} {dict(request.arguments)}? y/n ")
    return Approve() if said == "y" else Deny("the user said no")


def offline(request: ModelRequest) -> StepLike:
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"The tool said: {last.results[0].text}."
    return call("save_note", text=getattr(last, "text", ""))


async def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else FunctionModel(offline)
    cap, store = Budget(turns=20), MemoryRunStore()
    agent = ToolLoopAgent(model, tools=[save_note], asks=ask, budget=cap, store=store)
    while text := await typed("> "):
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
    try:
        anyio.run(main)
    except KeyboardInterrupt:  # the run is paused by now
        print("\nStopped.", file=sys.stderr, flush=True)
        os._exit(130)  # a plain exit would wait for the thread that waits for a line
