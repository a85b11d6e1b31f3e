"""A word to an agent at work: it reads it before its next model request. Offline."""

import anyio

from agentcore import (
    Committed,
    MemoryRunStore,
    ToolLoopAgent,
    UserMessage,
    tool,
)
from agentcore.testing import FunctionModel, StepLike, call
from agentcore.types.model import ModelRequest
from agentcore.types.records import InputPlaced, ToolIntent, ToolOutcome

CITIES = ["Paris", "Rome", "Oslo", "Bern"]


@tool(effects="none", replay="safe")
async def get_weather(city: str) -> str:
    """Current weather in a city."""
    await anyio.sleep(0.05)
    return f"sunny in {city}"


def offline(request: ModelRequest) -> StepLike:
    """Look at one city after the other, until the user says that it is enough."""
    said = [m.text for m in request.messages if isinstance(m, UserMessage)]
    seen = sum(1 for m in request.messages if m.role == "tool")
    if len(said) > 1 or seen == len(CITIES):
        return f"I looked at {seen} of {len(CITIES)}, and heard: {' '.join(said[1:])}"
    return call("get_weather", city=CITIES[seen])


async def main() -> None:
    store = MemoryRunStore()
    agent = ToolLoopAgent(FunctionModel(offline), tools=[get_weather], store=store)
    async with agent.start("How is the weather in Europe?", session="s1") as run:
        calls = 0
        async for event in run:
            match event:
                case Committed(record=ToolIntent()):
                    calls += 1
                    print("call", calls)
                    if calls == 2:  # while the second call runs
                        await run.steer("That is enough.")
                case Committed(record=ToolOutcome(status=status)):
                    print("tool", status)
                case Committed(record=InputPlaced(position="steer")):
                    print("the agent has read it")
        print((await run.result()).output)


if __name__ == "__main__":
    anyio.run(main)
