"""What happens seldom when runs wait, recover, are checked and looked at."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit, shown
from tests.flows.test_decisions import asking, bot, stopped
from tests.flows.test_evidence import Checks, status
from tests.flows.test_late import Blocking
from tests.flows.test_rare_paths import Unwatched
from tests.flows.test_recovery import DyingStore, agent, die
from typing_extensions import override

from agentcore import Check, CheckResult, tool
from agentcore.errors import AlreadySettled
from agentcore.testing import FakeExecutor, Gate, call, step
from agentcore.types import inbox as i
from agentcore.types import records as r
from agentcore.types.content import TextPart
from agentcore.types.context import ToolContext
from agentcore.types.policy import Answer, Approve, Happened, Question


@pytest.fixture
def store(kit: Kit) -> DyingStore:
    kit.store = dying = DyingStore()
    return dying


# --- decisions that come to nothing -------------------------------------------------
async def test_a_decision_while_a_cancel_waits_is_refused(kit: Kit) -> None:
    await stopped(kit, call("pay", amount=1))
    await kit.store.accept("s", i.Cancel("c"))
    with pytest.raises(AlreadySettled, match="being cancelled"):
        await bot(kit, []).resume("s", decisions={"call_1": Approve()})


@pytest.mark.parametrize(
    "item",
    [
        i.Decide("d", "call_1", Approve(), args_hash="of other arguments"),
        i.Decide("d", "call_1", Answer("yes")),
        i.Decide("d", "call_9", Happened()),
    ],
)
async def test_a_stored_decision_that_does_not_fit_changes_nothing(
    kit: Kit, item: i.Decide
) -> None:
    first = await stopped(kit, call("pay", amount=1))
    await kit.store.accept("s", item)
    assert (await bot(kit, []).resume("s")).pending == first.pending
    assert kit.effects.read() == []


async def test_a_stored_decision_that_answers_no_question_changes_nothing(
    kit: Kit,
) -> None:
    survey = asking(kit, replay="safe")
    asker = bot(kit, [call("survey"), "done"], survey)
    first = await asker.run("hi", session="s")
    await kit.store.accept("s", i.Decide("d", "call_1", Approve()))
    assert (await asker.resume("s")).pending == first.pending


async def test_a_decision_for_a_run_that_is_over_is_nothing(kit: Kit) -> None:
    await kit.agent(["one"]).run("hi", session="s")
    await kit.store.accept("s", i.Decide("d", "call_1", Approve()))
    assert (await kit.agent(["two"]).run("on", session="s")).output == "two"


async def test_what_the_system_says_does_not_supersede_an_approval(kit: Kit) -> None:
    first = await stopped(kit, call("ro"), call("pay", amount=1))
    note = i.Input("n", (TextPart("it rains"),), source="system")
    await kit.store.accept("s", note)
    assert (await bot(kit, []).resume("s")).pending == first.pending
    result = await bot(kit, ["done", "then"]).resume(
        "s", decisions={"call_2": Approve()}
    )
    assert [c.status for c in result.tool_calls] == ["ok", "ok"]


async def test_words_settle_only_what_was_open_and_leave_follow_ups_their_turn(
    kit: Kit,
) -> None:
    gate = kit.gate("a")
    calls = [call("ro", text="a"), call("pay", amount=1)]
    async with bot(kit, [calls]).start("hi", session="s") as run:
        await gate.reached()
        await run.follow_up("later", input_id="f")
        gate.open()
        await run.result()
    result = await bot(kit, ["one", "two"]).run("no", session="s", input_id="n")

    assert result.output == "one"
    assert [c.status for c in result.tool_calls] == ["ok", "denied"]
    assert shown(kit.requests()[-1].messages)[-1] == "user later"


async def test_a_tool_that_swallows_being_put_off_is_put_off_all_the_same(
    kit: Kit,
) -> None:
    @tool(effects="none", replay="safe")
    async def stubborn(context: ToolContext[Any]) -> str:
        """Ask, and take no."""
        try:
            answer = await context.ask(Question("q", "Name?"))
        except BaseException:  # noqa: BLE001 - what a tool must not do
            return "whatever"
        return answer.text

    asker = bot(kit, [call("stubborn"), "done"], stubborn)
    assert (await asker.run("hi", session="s")).stop.reason == "question"
    result = await asker.resume("s", decisions={"call_1": Answer("Ann")})
    assert result.tool_calls[0].text == "Ann"


# --- recovery -----------------------------------------------------------------------
class Broken(FakeExecutor):
    @override
    async def list_tools(self, context: Any = None) -> Any:
        raise ConnectionError("out of reach")


async def test_a_run_whose_tools_cannot_be_listed_any_more_ends(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolOutcome, [call("rw", text="x")])
    result = await agent(kit, [], tools=[], executor=Broken({})).resume("s")

    assert (result.stop.status, result.stop.reason) == ("failed", "tool")
    assert await kit.outcomes() == ["call_1 unknown/unknown"]


async def test_a_cancel_while_a_run_is_taken_over_settles_it(
    kit: Kit, store: DyingStore
) -> None:
    await die(kit, store, r.ToolOutcome, [call("idem", text="x")])
    gate = store.hold(r.ResumeAttempted)

    async def cancel() -> None:
        await gate.reached()
        await kit.store.accept("s", i.Cancel("c"))
        gate.open()

    async with anyio.create_task_group() as group:
        group.start_soon(cancel)
        result = await agent(kit, []).resume("s")
    assert result.stop.status == "cancelled"
    assert kit.effects.read() == ["call_1"]


async def test_a_cancel_right_before_a_call_is_run_again_settles_it(
    kit: Kit, store: DyingStore
) -> None:
    store.commits_inline = False  # it is held in an append, as a disk may hold it
    await die(kit, store, r.ToolOutcome, [call("idem", text="x")])
    later = agent(kit, [])
    await later.submit("more", session="s", input_id="f")
    gate = store.hold(r.InputAccepted)
    results: list[Any] = []

    async def resume() -> None:
        results.append(await later.resume("s"))

    async with anyio.create_task_group() as group:
        group.start_soon(resume)
        await gate.reached()
        group.start_soon(kit.store.accept, "s", i.Cancel("c"))
        await anyio.wait_all_tasks_blocked()
        gate.open()
    assert results[0].stop.status == "cancelled"
    assert kit.effects.read() == ["call_1"]


# --- checks -------------------------------------------------------------------------
async def test_a_cancel_before_a_check_began_settles_it(kit: Kit) -> None:
    checks = Checks(True)
    gate = kit.store.hold(r.EvidenceStarted)
    checked = kit.agent([call("rw"), "done"], checks=[checks.named()])
    async with checked.start("hi", session="s") as run:
        await gate.reached()
        async with anyio.create_task_group() as group:
            group.start_soon(run.cancel)
            await anyio.wait_all_tasks_blocked()
            gate.open()
        result = await run.result()

    assert result.stop.status == "cancelled"
    assert [e.result for e in result.evidence] == ["error"]


async def test_a_check_that_ignores_a_cancel_is_no_evidence(kit: Kit) -> None:
    looking = Gate()

    async def stubborn() -> bool:
        with anyio.CancelScope(shield=True):
            looking.open()
            await anyio.sleep(0.02)
        return True

    checked = kit.agent([call("rw"), "done"], checks=[Check("slow", stubborn)])
    async with checked.start("hi", session="s") as run:
        await looking.wait()
        await run.cancel()
        result = await run.result()
    assert status(result) == "cancelled unverified"


async def test_a_fingerprint_that_fails_makes_the_check_an_error(kit: Kit) -> None:
    async def failing() -> str:
        raise OSError("no disk")

    checks = Checks(True)
    check = checks.named(fingerprint=failing)
    result = await kit.agent([call("rw"), "done"], checks=[check]).run(
        "hi", session="s"
    )

    assert status(result) == "completed unverified"
    assert "the fingerprint failed: OSError: no disk" in result.evidence[0].output
    assert checks.runs == 0


async def test_only_checks_with_a_fingerprint_can_be_overtaken(kit: Kit) -> None:
    async def same() -> str:
        return "same"

    checks = [Checks(True).named("a"), Checks(True).named("b", fingerprint=same)]
    result = await kit.agent([call("rw"), "done"], checks=checks).run("hi", session="s")
    assert status(result) == "completed passed"


async def test_long_output_of_a_check_keeps_its_end(kit: Kit) -> None:
    checks = Checks(CheckResult(False, "x" * 50_000 + "the end"))
    checked = kit.agent([call("rw"), "done"], checks=[checks.named()])
    (evidence,) = (await checked.run("hi", session="s")).evidence

    assert evidence.output.startswith("[… 30007 characters left out …]")
    assert evidence.output.endswith("the end")


# --- streams, late results, onlookers -----------------------------------------------
async def test_a_long_reply_nobody_can_read_again_leaves_no_partials(kit: Kit) -> None:
    private = kit.agent([step(chunks=["x" * 100] * 128)], store=None)
    assert len((await private.run("hi")).output or "") == 12_800


async def test_a_long_late_result_is_shortened(kit: Kit) -> None:
    blocking = Blocking(kit, timeout=0.05, output_cap=4)
    asked = Gate()
    answers = [call("block"), step("done", gate=asked)]
    late = kit.agent(answers, tools=[], executor=blocking.executor(0))
    async with late.start("hi", session="s") as run:
        await asked.reached()
        blocking.may.set()
        async for event in run:
            record = getattr(event, "record", None)
            if isinstance(record, r.ToolLateResult):
                (part,) = record.content
                assert part == TextPart("retu[… 4 characters left out …]")
                asked.open()
        await run.result()


async def test_a_late_result_that_meets_the_end_of_its_run_is_dropped(
    kit: Kit, store: DyingStore
) -> None:
    store.commits_inline = False  # it is held in an append, as a disk may hold it
    blocking = Blocking(kit, timeout=0.05)
    late = kit.agent([call("block"), "done"], tools=[], executor=blocking.executor(0))
    ending = store.hold(r.RunEnded)
    async with late.start("hi", session="s") as run:
        await ending.reached()
        blocking.may.set()
        with anyio.fail_after(20):
            while late.health().held_workers:  # noqa: ASYNC110 - it ends in a thread
                await anyio.sleep(0.001)
        await anyio.sleep(0.02)
        ending.open()
        assert (await run.result()).output == "done"
    assert not any("late" in line for line in await kit.lines())


async def test_a_late_result_of_a_reading_call_is_nobodys_news(kit: Kit) -> None:
    blocking = Blocking(kit, timeout=0.05, effects="none")
    asked = Gate()
    answers = [call("block"), step("done", gate=asked)]
    late = kit.agent(answers, tools=[], executor=blocking.executor(0))
    async with late.start("hi", session="s") as run:
        await asked.reached()
        blocking.may.set()
        with anyio.fail_after(20):
            while late.health().held_workers:  # noqa: ASYNC110 - it ends in a thread
                await anyio.sleep(0.001)
        await anyio.sleep(0.02)
        asked.open()
        await run.result()
    assert not any("late" in line for line in await kit.lines())


async def test_a_store_that_cannot_be_watched_is_looked_at_now_and_then(
    kit: Kit,
) -> None:
    unwatched: Any = Unwatched(kit.store)
    gate = kit.gate("x")
    runner = kit.agent([call("ro", text="x"), "done"])
    outputs: list[Any] = []

    async def look_on() -> None:
        async with kit.agent([], store=unwatched).attach("s") as seen:
            outputs.append((await seen.result()).output)

    async with runner.start("hi", session="s") as run:
        await gate.reached()
        async with anyio.create_task_group() as group:
            group.start_soon(look_on)
            await anyio.sleep(0.12)
            gate.open()
            await run.result()
    assert outputs == ["done"]
