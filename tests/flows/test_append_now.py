"""A store that can append on the spot is asked for that first (`AppendsNow`)."""

import asyncio
import random
from collections.abc import Coroutine, Sequence
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.flows.kit import KeptStore
from typing_extensions import override

from agentcore import ToolLoopAgent, tool
from agentcore.errors import StoreFailed
from agentcore.protocols.store import Appended
from agentcore.testing import FunctionModel, Gate, ScriptedModel, assert_valid, call
from agentcore.testing.contracts._sample import text_input
from agentcore.types.inbox import InboxItem, StateChange
from agentcore.types.model import ModelRequest
from agentcore.types.records import CancelRequested, Record, RunEnded, StateChanged
from agentcore.types.runs import Lease


def pushed(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of what a memory store does, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it suspended")


class Sometimes(KeptStore):
    """Appends on the spot, or suspends, as the dice fall."""

    commits_inline = False

    def __init__(self, chance: float, dice: random.Random | None = None) -> None:
        super().__init__()
        self.chance = chance
        self.dice = dice or random.Random(0)
        self.under_way = self.at_once = self.waited = 0
        self.breaks: BaseException | None = None
        self.late: InboxItem | None = None
        """Accepted just before the run would end."""

    @override
    async def append(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        self.under_way += 1
        self.waited += 1
        await checkpoint()
        done = await super().append(
            lease, records, expected_seq=expected_seq, expected_inbox=expected_inbox
        )
        await checkpoint()
        self.under_way -= 1
        return done

    def append_now(
        self, lease: Lease, records: Sequence[Record], **expected: Any
    ) -> Appended | None:
        assert not self.under_way, "it overtook an append"
        if self.breaks is not None:
            raise self.breaks
        if self.dice.random() >= self.chance or self.stops.keys() & {
            type(record) for record in records
        }:
            return None
        self.at_once += 1
        late, ending = self.late, any(isinstance(r, RunEnded) for r in records)
        if late is not None and ending:
            self.late = None
            pushed(super().accept("s", late))
        appended: Appended = pushed(super().append(lease, records, **expected))
        return appended


class Wrapped(Sometimes):
    """A subclass that knows of `append` alone."""

    @override
    async def append(self, *given: Any, **expected: Any) -> Appended:
        return await super().append(*given, **expected)


@tool(effects="none", parallel=True)
async def look(n: int = 0) -> int:
    """Look."""
    await anyio.sleep(0.001 * (n % 3))
    return n


def script() -> ScriptedModel:
    several = [call("look", n=n) for n in range(5)]
    return ScriptedModel([call("look"), several, "done"])


async def kinds(store: KeptStore) -> list[str]:
    stored = [stored async for stored in store.read("s")]
    assert_valid(stored)
    return [s.record.kind for s in stored]


async def test_it_writes_the_same_journal_whether_an_append_waits_or_not() -> None:
    found = []
    for chance in (0.0, 1.0):
        store = Sometimes(chance)
        agent = ToolLoopAgent(script(), tools=[look], store=store)
        assert (await agent.run("hi", session="s")).output == "done"
        found.append(sorted(await kinds(store)))
        assert (store.at_once > 0, store.waited > 0) == (chance == 1, chance == 0)
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(5))
async def test_an_append_on_the_spot_never_overtakes_one_that_waits(seed: int) -> None:
    store = Sometimes(0.5, random.Random(seed))
    agent = ToolLoopAgent(script(), tools=[look], store=store)
    async with agent.start("hi", session="s") as run:
        for n in range(3):
            await run.steer(f"and {n}")
            await checkpoint()
        await run.result()
    assert store.at_once
    assert store.waited
    await kinds(store)


@pytest.mark.parametrize("kind", [CancelRequested, StateChanged])
async def test_a_run_that_ends_waits_for_an_append_under_way(kind: type[Any]) -> None:
    store = Sometimes(1.0)
    writing = store.stop(kind)
    answering = Gate()

    async def reply(_: ModelRequest) -> str:
        await answering.wait()
        return "done"

    agent = ToolLoopAgent(FunctionModel(reply), store=store)
    async with (
        agent.start("hi", session="s") as run,
        anyio.create_task_group() as group,
    ):
        await answering.reached()
        await store.accept("s", StateChange("change", "k", "v"))
        group.start_soon(run.cancel)
        await writing.reached()
        answering.open()
        for _ in range(20):
            await checkpoint()
        writing.open()
        await run.result()
    await kinds(store)
    assert store.waited


async def test_an_input_just_before_the_end_is_not_lost() -> None:
    """The finish is refused on the spot, and made again with what came in."""
    store = Sometimes(1.0)
    store.late = text_input("late")
    agent = ToolLoopAgent(ScriptedModel(["one", "two"]), store=store)
    result = await agent.run("hi", session="s")
    found = await kinds(store)
    assert found.count("input.accepted") == 2
    assert found.index("run.ended") > 0
    assert (result.stop.status, store.waited) == ("completed", 0)


async def test_a_store_that_breaks_on_the_spot_is_not_written_to_again() -> None:
    store = Sometimes(1.0)

    async def reply(_: ModelRequest) -> str:
        store.breaks = RuntimeError("a cable")
        return "done"

    agent = ToolLoopAgent(FunctionModel(reply), store=store)
    with pytest.raises(StoreFailed, match="a cable"):
        await agent.run("hi", session="s")
    assert not any(isinstance(r, RunEnded) for a in store.appends for r in a)
    assert not store.waited


async def test_a_store_whose_append_was_changed_sees_every_append() -> None:
    store = Wrapped(1.0)
    agent = ToolLoopAgent(script(), tools=[look], store=store)
    assert (await agent.run("hi", session="s")).output == "done"
    assert not store.at_once


@pytest.mark.parametrize("seed", range(4))
def test_a_run_cancelled_at_any_moment_leaves_a_sound_journal(seed: int) -> None:
    dice = random.Random(seed)

    def reply(request: ModelRequest) -> Any:
        return call("look", n=2) if len(request.messages) % 4 == 1 else "done"

    async def story() -> None:
        store = Sometimes(0.5, dice)
        agent = ToolLoopAgent(FunctionModel(reply), tools=[look], store=store)
        for turn in range(6):
            task = asyncio.create_task(agent.run(f"turn {turn}", session="s"))
            await asyncio.sleep(dice.random() * 0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        last = await asyncio.wait_for(agent.run("at last", session="s"), 10)
        assert last.stop.status == "completed"
        await kinds(store)

    asyncio.run(story())
