"""An agent's sinks see what it drives, however it came to drive it."""

import anyio

from agentcore import Committed, MemoryRunStore, ToolLoopAgent
from agentcore.testing import Gate, ScriptedModel, step
from agentcore.types.events import RunEvent
from agentcore.types.records import RunEnded


class Log:
    def __init__(self) -> None:
        self.ended: list[str] = []

    async def emit(self, event: RunEvent) -> None:
        if isinstance(event, Committed) and isinstance(event.record, RunEnded):
            self.ended.append(event.record.stop.status)


async def test_a_second_caller_that_takes_over_brings_its_sinks() -> None:
    store, gate, log = MemoryRunStore(), Gate(), Log()
    failing = ScriptedModel([step(gate=gate, raise_=ValueError("broken"))])
    first = ToolLoopAgent(failing, store=store)
    second = ToolLoopAgent(ScriptedModel(["fine"]), store=store, sinks=[log])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: first.run("a", session="s"))
        await gate.reached()
        # The first owner fails, so what the second one said is still to be done.
        group.start_soon(gate_soon, gate)
        result = await second.run("b", session="s")
    assert result.output == "fine"
    assert log.ended == ["completed"]


async def gate_soon(gate: Gate) -> None:
    await anyio.sleep(0.05)
    gate.open()
