"""One small run, crashed at each of its writes in turn, and its recovery as well."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import ToolLoopAgent
from agentcore._base.ids import RandomIds
from agentcore.policies.retry import RetryPolicy
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    FaultyStore,
    FunctionModel,
    Gate,
    ScriptedModel,
    assert_journal,
    call,
    check_pairing,
    crashes,
    effect_tools,
)
from agentcore.testing.steps import StepLike
from agentcore.types import records as r
from agentcore.types.messages import ToolMessage
from agentcore.types.model import ModelRequest

S = "s"
MOST_WRITES = 60
BATCH = [call("rw"), call("idem"), call("ro")]
WHEN = pytest.mark.parametrize("when", ["before", "after"])


class Case:
    """A session that several processes in a row work on."""

    def __init__(self, batch: Sequence[Any]) -> None:
        self.storage = MemoryRunStore()
        self.effects: list[str] = []
        self.batch = batch
        self.tools = effect_tools(lambda context: self.effects.append(context.call.id))
        self.ids = RandomIds()

    def answer(self, request: ModelRequest) -> StepLike:
        assert check_pairing(request.messages) == []
        done = any(isinstance(message, ToolMessage) for message in request.messages)
        return "done" if done else list(self.batch)

    async def process(self, at: str = "") -> bool:
        """A process says what it came for; true if it was crashed."""
        store = FaultyStore(self.storage, *([crashes(at)] if at else []))
        agent: ToolLoopAgent = ToolLoopAgent(
            FunctionModel(self.answer),
            tools=self.tools,
            store=store,
            ids=self.ids,
            retry=RetryPolicy(base=0),
        )
        with store.process():
            await agent.run("go", session=S, input_id="i1")
        return store.crashed

    async def journal(self) -> list[r.StoredRecord]:
        return [stored async for stored in self.storage.read(S)]

    async def judge(self) -> None:
        """The run has ended, or asks; every call has one result, if it has."""
        records = await self.journal()
        assert_journal(records, self.effects)
        kinds = Counter(stored.record.kind for stored in records)
        assert kinds["input.accepted"] == kinds["input.placed"] == 1
        assert kinds["run.started"] == 1
        last = [s.record for s in records if s.record.kind.startswith("run.")][-1]
        if isinstance(last, r.RunEnded):
            assert last.stop.status == "completed"
            assert kinds["tool.planned"] == kinds["tool.outcome"] == len(self.batch)
        else:
            assert isinstance(last, r.RunPaused)


@WHEN
@pytest.mark.scenario("peers-R1", "peers-R9", "run-58")
async def test_a_crash_at_any_write_costs_no_call_its_one_result(when: str) -> None:
    crashed = 0
    for number in range(1, MOST_WRITES):
        case = Case(BATCH)
        if not await case.process(f"{when}:write#{number}"):
            break
        crashed += 1
        await case.process()
        await case.judge()
    assert 8 < crashed < MOST_WRITES - 1


async def test_a_crash_at_any_write_of_a_recovery_costs_nothing_either() -> None:
    for first in range(1, MOST_WRITES):
        for second in range(1, MOST_WRITES):
            case = Case(BATCH)
            if not await case.process(f"after:write#{first}"):
                return
            crashed = await case.process(f"before:write#{second}")
            await case.process()
            await case.judge()
            if not crashed:
                break
    pytest.fail("the run never came to its end")


@pytest.mark.scenario("peers-R2")
async def test_eight_results_that_come_at_once_are_all_kept_in_order() -> None:
    for _ in range(100):
        store = FaultyStore(MemoryRunStore(), pause=lambda _: checkpoint())
        arrived, barrier = 0, Gate()

        async def effect(context: Any, barrier: Gate = barrier) -> None:
            nonlocal arrived
            arrived += 1
            if arrived == 8:
                barrier.open()
            await barrier.wait()

        model = ScriptedModel([[call("par", text=str(n)) for n in range(8)], "done"])
        agent: ToolLoopAgent = ToolLoopAgent(
            model, tools=effect_tools(effect), store=store
        )
        with anyio.fail_after(10):
            await agent.run("go", session=S)
        records = [stored async for stored in store.read(S)]
        assert_journal(records)
        assert [s.record.kind for s in records].count("tool.outcome") == 8
        message = model.requests[1].messages[-1]
        assert isinstance(message, ToolMessage)
        assert [result.text for result in message.results] == [
            f"par {n}" for n in range(8)
        ]


@pytest.mark.scenario("peers-R12")
async def test_of_a_half_answered_batch_nothing_is_skipped_silently() -> None:
    case = Case([call("parw", text=str(n)) for n in range(3)])
    gates = [Gate(), Gate(), Gate()]
    gates[1].open()

    async def effect(context: Any) -> None:
        case.effects.append(context.call.id)
        await gates[int(context.call.arguments["text"])].wait()

    case.tools = effect_tools(effect)
    assert await case.process("after:tool.outcome")
    for gate in gates:
        gate.open()
    await case.process()

    await case.judge()
    statuses = [
        stored.record.status
        for stored in await case.journal()
        if isinstance(stored.record, r.ToolOutcome)
    ]
    assert sorted(statuses) == ["ok", "unknown", "unknown"]
    assert len(case.effects) == 3
