"""Stores that fail, other threads, no store at all, and everything at random."""

import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from tests.flows.kit import KeptStore, Kit, shown
from typing_extensions import override

from agentcore.errors import Overloaded, StoreError, StoreFailed
from agentcore.policies.retry import RetryPolicy
from agentcore.protocols.store import Appended
from agentcore.testing import FunctionModel, Gate, call, call_raw, step
from agentcore.types import records as r
from agentcore.types.runs import Lease

SCENARIO = pytest.mark.scenario


# --- without a store ----------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"ephemeral": True}], ids=str)
async def test_a_run_nobody_keeps_can_be_steered_and_followed(
    kit: Kit, options: Any
) -> None:
    gate = Gate()
    store = kit.store if options else None
    agent = kit.agent([step("early", gate=gate), "steered", "more"], store=store)
    async with agent.start("hi", **options) as run:
        await gate.reached()
        await run.steer("left")
        await run.follow_up("then")
        gate.open()
        result = await run.result()

    assert result.output == "steered"
    assert shown(kit.requests()[2].messages)[-1] == "user then"


@pytest.mark.parametrize("options", [{}, {"ephemeral": True}], ids=str)
async def test_a_run_nobody_keeps_can_be_cancelled(kit: Kit, options: Any) -> None:
    gate = kit.gate("hang")
    store = kit.store if options else None
    agent = kit.agent([call("rw", text="hang")], store=store)
    async with agent.start("hi", **options) as run:
        await gate.reached()
        first = await run.cancel()
        second = await run.cancel()
        result = await run.result()
        third = await run.cancel()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert [c.status for c in result.tool_calls] == ["unknown"]
    assert second.item_id == first.item_id
    assert third.note == "already_ended"


async def test_a_run_nobody_keeps_can_be_read_however_slowly(kit: Kit) -> None:
    agent = kit.agent(
        [*[call("ro", text=f"{n}") for n in range(250)], "done"], store=None
    )
    async with agent.start("hi") as run:
        await run.result()
        seen = [event.seq async for event in run if hasattr(event, "seq")]

    assert len(seen) > 1024
    assert seen == list(range(seen[0], seen[0] + len(seen)))


async def test_a_run_nobody_keeps_keeps_large_results_while_it_lasts(
    kit: Kit,
) -> None:
    async def big() -> str:
        """Return much."""
        return "x" * 100_000

    result = await kit.agent([call("big"), "ok"], tools=[big], store=None).run("hi")

    assert result.output == "ok"
    assert len(result.tool_calls[0].text) < 51_000


# --- failing stores -----------------------------------------------------------------
class FailingStore(KeptStore):
    """Fails at the append that holds a record of this kind, and from then on."""

    def __init__(self, kind: type[Any], error: Exception) -> None:
        super().__init__()
        self.kind = kind
        self.error = error
        self.broken = False

    @override
    async def append(
        self,
        lease: Lease,
        records: Sequence[r.Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        self.broken |= any(type(record) is self.kind for record in records)
        if self.broken:
            raise self.error
        return await super().append(
            lease, records, expected_seq=expected_seq, expected_inbox=expected_inbox
        )


@pytest.mark.parametrize("error", [StoreFailed("disk full"), OSError("I/O")], ids=repr)
@pytest.mark.parametrize(
    "kind", [r.RunStarted, r.ModelOutcome, r.ToolOutcome, r.RunEnded, r.OwnerReleased]
)
async def test_after_a_failed_write_nothing_more_is_started(
    kit: Kit, kind: type[Any], error: Exception
) -> None:
    kit.store = FailingStore(kind, error)
    agent = kit.agent([call("rw"), call("rw"), "done"])
    with anyio.fail_after(5), pytest.raises(StoreError):
        await agent.run("hi", session="s")

    allowed = {r.RunStarted: (0, 0), r.ModelOutcome: (1, 0), r.ToolOutcome: (1, 1)}
    requests, effects = allowed.get(kind, (3, 2))
    assert (len(kit.requests()), len(kit.effects)) == (requests, effects)


async def test_a_failed_write_reaches_whoever_reads_or_waits(kit: Kit) -> None:
    kit.store = FailingStore(r.ToolOutcome, StoreFailed("disk full"))
    async with kit.agent([call("rw"), "never"]).start("hi", session="s") as run:
        with pytest.raises(StoreError, match="disk full"):
            assert [event async for event in run]
        with pytest.raises(StoreError, match="disk full"):
            await run.result()


async def test_a_failed_write_nobody_asked_about_comes_out_at_the_end(
    kit: Kit,
) -> None:
    kit.store = FailingStore(r.ToolOutcome, StoreFailed("disk full"))
    gate = kit.gate("a")
    with pytest.raises(StoreError, match="disk full"):
        async with kit.agent([call("rw", text="a")]).start("hi", session="s"):
            await gate.reached()


async def test_a_failed_write_in_a_parallel_batch_is_one_error(kit: Kit) -> None:
    kit.store = FailingStore(r.ToolOutcome, StoreFailed("disk full"))
    agent = kit.agent([[call("par"), call("par")], "never"])
    with pytest.raises(StoreError, match="disk full"):
        await agent.run("hi", session="s")


# --- other threads ------------------------------------------------------------------
async def test_another_thread_may_steer_and_cancel(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "never"])

    def elsewhere() -> None:
        with start_blocking_portal() as portal:
            portal.call(lambda: agent.submit("s", session="s", delivery="steer"))
            portal.call(lambda: agent.cancel(session="s"))

    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await anyio.to_thread.run_sync(elsewhere)
        with anyio.fail_after(5):
            result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")


# --- imports ------------------------------------------------------------------------
@SCENARIO("peers-T25")
def test_a_first_run_imports_next_to_nothing_on_the_loop() -> None:
    code = """
import sys
import anyio
from agentcore import ToolLoopAgent
from agentcore.testing import ScriptedModel, call

async def ro() -> str:
    "Read."
    return "x"

agent = ToolLoopAgent(ScriptedModel([call("ro"), "ok"]), tools=[ro])

async def main():
    before = set(sys.modules)
    await agent.run("hi")
    print(sorted(m for m in set(sys.modules) - before if not m.startswith("anyio")))

anyio.run(main)
"""
    output = subprocess.check_output([sys.executable, "-c", code], text=True)

    assert output.strip() == "[]"


# --- everything at random -----------------------------------------------------------
def replies(seed: int) -> Any:
    """A model that calls, fails, trails off and answers, as its dice fall."""
    dice = random.Random(seed)

    def answer(request: Any) -> Any:
        roll = dice.random()
        if roll < 0.15:
            return "an answer"
        if roll < 0.25:
            return Overloaded("busy")
        if roll < 0.3:
            return step("half ", calls=[call("rw")], cut=True)
        if roll < 0.35:
            return step()
        if roll < 0.4:
            return step("more", finish="length")
        if roll < 0.45:
            return step(calls=[call("rw"), call("ro")], finish="length")
        names = ["ro", "idem", "rw", "par", "parw", "nope"]
        calls = [
            call(dice.choice(names), text=f"{dice.random()}")
            for _ in range(dice.randint(1, 4))
        ]
        if dice.random() < 0.2:
            calls.append(call_raw("rw", "{"))
        return step(f"step {roll}", calls=calls)

    return answer


@SCENARIO("peers-T14")
@pytest.mark.parametrize("seed", range(25))
async def test_whatever_happens_when_the_record_stays_sound(
    kit: Kit, seed: int
) -> None:
    """Steers, follow-ups, cancels, pauses and early leaves, anywhere in a run.

    What must hold is in `Kit.verify`, which runs after every test.
    """
    dice = random.Random(seed)
    agent = kit.agent(
        FunctionModel(replies(seed)), retry=RetryPolicy(base=0.0, max_attempts=20)
    )
    with anyio.fail_after(20):
        for turn in range(6):
            handle: Any = (
                agent.start(f"turn {turn}", session="s")
                if turn % 2 == 0
                else agent.resume("s")
            )
            async with handle as run:
                await disturb(agent, run, dice)
        result = await agent.run("last", session="s", timeout=5)

    assert result.stop.status in ("completed", "stuck", "failed", "budget")
    assert len(kit.effects) == len(set(kit.effects.read()))


async def disturb(agent: Any, run: Any, dice: random.Random) -> None:
    for _ in range(dice.randint(0, 4)):
        for _ in range(dice.randint(0, 30)):
            await anyio.lowlevel.checkpoint()
        match dice.randint(0, 6):
            case 0:
                await run.steer(f"s{dice.random()}")
            case 1:
                await run.follow_up(f"f{dice.random()}")
            case 2:
                await run.cancel()
            case 3:
                await agent.cancel(session="s")
            case 4:
                await run.pause()
            case 5:
                await agent.release("s")
            case _:
                return  # leaves early, or not, as it happens
    if dice.random() < 0.7:
        await run.result()
