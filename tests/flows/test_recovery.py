"""What a dead owner left is settled without a guess, and the run goes on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import anyio
import pytest
from tests.flows.kit import KeptStore, Kit, shown
from typing_extensions import override

from agentcore import ToolLoopAgent, tool
from agentcore._base.processes import members
from agentcore.errors import AlreadySettled, ConfigError, StoreError, StoreFailed
from agentcore.protocols.store import Appended
from agentcore.testing import FakeClock, Gate, call
from agentcore.types import records as r
from agentcore.types.content import TextPart
from agentcore.types.context import ToolContext
from agentcore.types.policy import (
    Approve,
    DidNotHappen,
    Forbid,
    Happened,
    LeaveUnknown,
    UnknownCall,
)
from agentcore.types.runs import Lease

SCENARIO = pytest.mark.scenario
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="process groups")
EXTERNAL = "call_1 unknown/unknown"


class DyingStore(KeptStore):
    """The writes of its owner end at a record, as if it had been killed there."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_at: type[Any] | None = None
        self.after = False
        self.on_outcome: Callable[[], None] = lambda: None

    @override
    async def append(
        self,
        lease: Lease,
        records: Sequence[r.Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        expected: Any = {"expected_seq": expected_seq, "expected_inbox": expected_inbox}
        records = tuple(records)
        if any(type(record) is r.ToolOutcome for record in records):
            self.on_outcome()
        dies = self.dies_at is not None and any(
            type(record) is self.dies_at for record in records
        )
        if not dies:
            return await super().append(lease, records, **expected)
        if self.after:
            await super().append(lease, records, **expected)
        raise StoreFailed("killed")


@pytest.fixture
def store(kit: Kit) -> DyingStore:
    kit.store = dying = DyingStore()
    return dying


async def die(
    kit: Kit,
    store: DyingStore,
    kind: type[Any],
    answers: list[Any],
    *,
    after: bool = False,
    **settings: Any,
) -> None:
    """Run until the owner dies before, or right after, it wrote a record."""
    store.dies_at, store.after = kind, after
    with pytest.raises(StoreError):
        await agent(kit, answers, **settings).run("hi", session="s", input_id="i1")
    store.dies_at = None


def agent(kit: Kit, answers: list[Any], **settings: Any) -> ToolLoopAgent[Any, Any]:
    """An agent that does not wait before it asks again."""
    return kit.agent(answers, clock=FakeClock(autojump=True), **settings)


# --- calls --------------------------------------------------------------------------
@SCENARIO("run-44")
async def test_a_call_that_may_have_reached_the_outside_is_asked_about(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolIntent, [call("rw", text="x")], after=True)
    result = await agent(kit, ["never"]).resume("s")

    assert (result.stop.status, result.stop.reason) == ("paused", "confirm_unknown")
    (unknown,) = result.pending
    assert isinstance(unknown, UnknownCall)
    assert (unknown.id, unknown.tool) == ("call_1", "rw")
    assert unknown.arguments == {"text": "x"}
    assert await kit.outcomes() == [EXTERNAL]
    assert kit.effects.read() == []
    again = await agent(kit, ["never"]).resume("s")
    assert again.pending == result.pending


@SCENARIO("run-45")
async def test_a_call_that_had_its_effect_is_never_run_again(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolOutcome, [call("rw", text="x")])
    result = await agent(kit, ["done"], on_unknown="continue").resume("s")

    assert result.output == "done"
    assert await kit.outcomes() == [EXTERNAL]
    assert kit.effects.read() == ["call_1"]
    (shown_result,) = kit.requests()[-1].messages[-1].results  # type: ignore[union-attr]
    assert "verify before repeating" in shown_result.text


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Happened((TextPart("receipt 9"),)), "it did happen. receipt 9"),
        (DidNotHappen(), "it did not happen; it had no effect."),
        (LeaveUnknown(), "nobody knows whether it happened."),
    ],
)
async def test_what_a_person_says_of_an_unknown_call_reaches_the_model(
    kit: Kit, store: DyingStore, decision: Any, words: str
) -> None:
    calls = [call("rw", text="x"), call("rw", text="y")]
    await die(kit, store, r.ToolOutcome, [calls])
    await agent(kit, []).resume("s")
    with pytest.raises(ConfigError, match="takes Happened or DidNotHappen"):
        await agent(kit, []).resume("s", decisions={"call_1": Approve()})
    result = await agent(kit, ["done"]).resume("s", decisions={"call_1": decision})

    assert result.output == "done"
    assert kit.effects.read() == ["call_1", "call_2"]
    history = shown(kit.requests()[-1].messages)
    assert history[-2] == "tool call_1=unknown call_2=ok"
    assert f"the call of 'rw' whose effect was unknown: {words}" in history[-1]
    with pytest.raises(AlreadySettled):
        await agent(kit, []).resume("s", decisions={"call_1": decision})


@SCENARIO("run-47")
async def test_a_call_that_may_safely_run_again_does(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolOutcome, [call("idem", text="x")])
    result = await agent(kit, ["done"]).resume("s")

    assert result.output == "done"
    assert await kit.outcomes() == ["call_1 ok/done"]
    assert kit.effects.read() == ["call_1", "call_1"]
    assert (await kit.lines()).count("tool.intent call_1") == 1


@SCENARIO("run-48")
async def test_a_safe_call_whose_arguments_no_longer_fit_is_unknown(
    kit: Kit, store: DyingStore
) -> None:
    @tool(name="idem", effects="local", replay="safe")
    async def changed(number: int) -> str:
        """Do something else."""
        return str(number)

    await die(kit, store, r.ToolOutcome, [call("idem", text="x")])
    result = await agent(kit, ["done"], tools=[changed]).resume("s")

    assert result.output == "done"
    assert await kit.outcomes() == [EXTERNAL]
    assert kit.effects.read() == ["call_1"]


async def test_a_call_that_is_no_longer_declared_safe_is_not_run_again(
    kit: Kit, store: DyingStore
) -> None:
    @tool(name="idem", effects="local")
    async def unsafe(text: str = "") -> str:
        """Do it."""
        return text

    await die(kit, store, r.ToolOutcome, [call("idem", text="x")])
    await agent(kit, ["done"], tools=[unsafe]).resume("s")
    assert await kit.outcomes() == [EXTERNAL]


async def test_a_safe_call_that_is_forbidden_meanwhile_is_not_run_again(
    kit: Kit, store: DyingStore
) -> None:
    class Closed:
        def decide(self, call: Any, spec: Any, view: Any) -> Forbid:
            return Forbid("closed")

    await die(kit, store, r.ToolOutcome, [call("idem", text="x")])
    result = await agent(kit, ["done"], permissions=Closed()).resume("s")

    assert result.output == "done"
    assert await kit.outcomes() == [EXTERNAL]
    assert kit.effects.read() == ["call_1"]


@SCENARIO("run-59")
async def test_a_reading_call_whose_tool_is_gone_had_no_effect(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolOutcome, [call("ro", text="x")])
    result = await agent(kit, ["done"], tools=[kit.rw]).resume("s")

    assert result.output == "done"
    assert await kit.outcomes() == ["call_1 unknown/none"]


@SCENARIO("run-46")
async def test_a_call_with_an_outcome_is_not_run_again(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolOutcome, [call("rw", text="x")], after=True)
    result = await agent(kit, ["done"]).resume("s")

    assert result.output == "done"
    assert kit.effects.read() == ["call_1"]
    assert shown(kit.requests()[-1].messages)[-1] == "tool call_1=ok"


@SCENARIO("run-49")
async def test_a_finished_call_keeps_its_result_and_what_had_not_started_runs_once(
    kit: Kit, store: DyingStore
) -> None:
    calls = [call("rw", text=name) for name in "abc"]
    # The outcome of the first shares its append with the intent of the second.
    await die(kit, store, r.ToolOutcome, [calls], after=True)
    result = await agent(kit, ["done"], on_unknown="continue").resume("s")

    assert result.output == "done"
    assert [c.status for c in result.tool_calls] == ["ok", "unknown", "ok"]
    assert kit.effects.read() == ["call_1", "call_3"]


@SCENARIO("run-58")
@SCENARIO("peers-R12")
async def test_every_open_call_of_a_batch_gets_its_outcome(
    kit: Kit, store: DyingStore
) -> None:
    calls = [call("parw", text="a"), call("par", text="b"), call("parw", text="c")]
    await die(kit, store, r.ToolOutcome, [calls])
    result = await agent(kit, ["done"], on_unknown="continue").resume("s")

    assert result.output == "done"
    assert sorted(await kit.outcomes()) == [
        "call_1 unknown/unknown",
        "call_2 ok/none",
        "call_3 unknown/unknown",
    ]


@SCENARIO("run-50")
async def test_a_call_that_waited_for_approval_waits_again(
    kit: Kit, store: DyingStore
) -> None:
    @tool(approval="ask")
    async def pay(context: ToolContext[Any]) -> str:
        """Pay."""
        kit.effects.add(context.call.id)
        return "paid"

    await die(kit, store, r.RunPaused, [call("pay")], tools=[pay], asks="pause")
    bot = agent(kit, ["done"], tools=[pay], asks="pause")
    first = await bot.resume("s")
    assert [p.id for p in first.pending] == ["call_1"]
    assert kit.effects.read() == []
    result = await bot.resume("s", decisions={"call_1": Approve()})
    assert result.output == "done"
    assert kit.effects.read() == ["call_1"]


# --- requests, cancels, bounds ------------------------------------------------------
@SCENARIO("run-41")
async def test_a_cancel_that_cannot_be_written_still_stops_what_runs(
    kit: Kit, store: DyingStore
) -> None:
    gate = kit.gate("x")
    bot = agent(kit, [call("rw", text="x")])
    store.dies_at, store.after = r.CancelRequested, False

    async def be_cancelled() -> None:
        async with bot.start("hi", session="s") as run:
            await gate.reached()
            await run.cancel()
            await run.result()

    with anyio.fail_after(20), pytest.raises(StoreFailed):
        await be_cancelled()
    store.dies_at = None
    assert "cancel.requested user" not in await kit.lines()
    result = await agent(kit, []).resume("s")
    assert result.stop.status == "cancelled"  # the inbox has it: nobody's wish is lost


@SCENARIO("run-40")
async def test_a_cancel_is_finished_and_the_work_is_not(
    kit: Kit, store: DyingStore
) -> None:
    gate = kit.gate("x")
    calls = [call("rw", text="x"), call("rw", text="y")]
    bot = agent(kit, [calls])
    store.dies_at, store.after = r.CancelRequested, True

    async def be_cancelled() -> None:
        async with bot.start("hi", session="s") as run:
            await gate.reached()
            await run.cancel()
            await run.result()

    with pytest.raises(StoreError):
        await be_cancelled()
    store.dies_at = None
    result = await agent(kit, []).resume("s")

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert await kit.outcomes() == [EXTERNAL, "call_2 not_started/none"]
    assert kit.effects.read() == ["call_1"]


@SCENARIO("run-54")
async def test_a_run_that_dies_at_every_resume_ends(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ModelOutcome, ["x"])
    store.dies_at, store.after = r.ModelOutcome, False
    for _ in range(2):
        with pytest.raises(StoreError):
            await agent(kit, ["x"] * 9).resume("s")
    await agent(kit, []).submit("f", session="s", input_id="f")
    with pytest.raises(StoreError):
        await agent(kit, ["x"] * 9).resume("s")
    store.dies_at = None
    result = await agent(kit, ["never"]).resume("s")

    assert (result.stop.status, result.stop.reason) == ("failed", "resume_loop")
    assert "3 times in a row" in result.stop.detail
    counts = [
        s.record.n
        for s in await kit.records()
        if isinstance(s.record, r.ResumeAttempted)
    ]
    assert counts == [1, 2, 3, 4]
    assert (
        await agent(kit, ["late"]).resume("s")
    ).output == "late"  # the input is kept


async def test_progress_starts_the_count_of_resumes_anew(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ModelOutcome, [call("ro", text="0")], after=True)
    for n in range(1, 6):
        store.dies_at, store.after = r.ModelOutcome, True
        with pytest.raises(StoreError):
            await agent(kit, [call("ro", text=f"{n}")]).resume("s")
    store.dies_at = None
    assert (await agent(kit, ["done"]).resume("s")).output == "done"


# --- processes ----------------------------------------------------------------------
@pytest.fixture
def left_behind() -> Iterator[subprocess.Popen[bytes]]:
    """A process group that ignores TERM, with a child that does so too."""
    script = "trap '' TERM; sleep 600 & echo ready; sleep 600"
    child = subprocess.Popen(
        ["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.stdout.close()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def spawning(child: subprocess.Popen[bytes], started: float | None) -> Any:
    @tool
    async def spawn(context: ToolContext[Any]) -> str:
        """Leave a process behind."""
        await context.record_process(child.pid, started)
        return "left"

    return spawn


@LINUX
@SCENARIO("run-57")
async def test_what_a_tool_left_running_is_ended_before_its_call_is_unknown(
    kit: Kit, store: DyingStore, left_behind: subprocess.Popen[bytes]
) -> None:
    spawn = spawning(left_behind, None)  # the start time is looked up
    await die(kit, store, r.ToolOutcome, [call("spawn")], tools=[spawn])
    bot = agent(kit, ["done"], tools=[spawn], on_unknown="continue")
    alive_at_outcome: list[object] = []
    store.on_outcome = lambda: alive_at_outcome.extend(members(left_behind.pid))
    result = await bot.resume("s")

    assert result.output == "done"
    assert await kit.outcomes() == [EXTERNAL]
    assert alive_at_outcome == []
    assert list(members(left_behind.pid)) == []
    assert left_behind.wait() == -signal.SIGKILL


@LINUX
async def test_a_process_that_got_the_id_of_another_is_left_alone(
    kit: Kit, store: DyingStore, left_behind: subprocess.Popen[bytes]
) -> None:
    spawn = spawning(left_behind, 1.0)
    await die(kit, store, r.ToolOutcome, [call("spawn")], tools=[spawn])
    await agent(kit, ["done"], tools=[spawn], on_unknown="continue").resume("s")

    assert left_behind.poll() is None


async def test_a_second_resume_waits_for_nobody_and_is_refused(kit: Kit) -> None:
    gate = Gate()

    @tool
    async def hold() -> str:
        """Wait."""
        await gate.wait()
        return "held"

    bot = agent(kit, [call("hold"), "done"], tools=[hold])
    async with bot.start("hi", session="s") as run:
        await gate.reached()
        with pytest.raises(StoreError, match="held by"):
            await agent(kit, []).resume("s")
        gate.open()
        assert (await run.result()).output == "done"
