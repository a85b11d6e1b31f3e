"""A chat bot: a session per chat, streamed, steered by what comes in meanwhile.

A line on standard input is a message, `chat: text`. Offline unless a model is named:

    printf 'ann: find my order\nann: the last one\nbob: hi\n' | python chatbot.py
"""

import sys

import anyio
from anyio.abc import TaskGroup, TaskStatus

from agentcore import MemoryRunStore, Run, TextDelta, ToolLoopAgent, UserMessage, tool
from agentcore.testing import FunctionModel, StepLike, call, step
from agentcore.types.model import ModelRequest


@tool(effects="none", replay="safe")
async def look_up(words: str) -> str:
    """Look something up in the orders."""
    await anyio.sleep(0.3)
    return f"Two orders match {words!r}."


def offline(request: ModelRequest) -> StepLike:
    said = [m.text for m in request.messages if isinstance(m, UserMessage)]
    if isinstance(request.messages[-1], UserMessage):
        return call("look_up", words=said[-1])
    return step(chunks=[f"You said: {' + '.join(said)}. ", "Here it is."])


model = sys.argv[1] if len(sys.argv) > 1 else FunctionModel(offline)
agent = ToolLoopAgent(model, tools=[look_up], store=MemoryRunStore())
running: dict[str, Run] = {}


async def receive(chat: str, text: str, tasks: TaskGroup) -> None:
    if run := running.get(chat):
        await run.steer(text)  # reaches the model with its next request
    else:
        await tasks.start(answer, chat, text)


async def answer(chat: str, text: str, *, task_status: TaskStatus[None]) -> None:
    async with agent.start(text, session=chat) as run:
        running[chat] = run
        task_status.started()  # the message is durable: take the next one
        async for event in run:
            if isinstance(event, TextDelta):
                print(f"{chat} < {event.text}", flush=True)
        del running[chat]


async def main() -> None:
    async with agent, anyio.create_task_group() as tasks:
        async for line in anyio.wrap_file(sys.stdin):
            chat, colon, text = line.partition(":")
            if colon and text.strip():
                await receive(chat.strip(), text.strip(), tasks)


if __name__ == "__main__":
    anyio.run(main)
