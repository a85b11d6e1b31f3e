"""The loop and its record: what a run writes, in which order, and shows."""

import anyio
import pytest
from tests.flows.kit import Kit, shown

from agentcore.testing import call, step
from agentcore.types import records as r
from agentcore.types.messages import ToolMessage

SCENARIO = pytest.mark.scenario


@SCENARIO("run-1")
async def test_one_answer_is_a_run_of_five_transitions(kit: Kit) -> None:
    result = await kit.agent(["ok"]).run("hi", session="s", input_id="i1")

    assert result.output == "ok"
    assert (result.stop.status, result.stop.reason) == ("completed", "final")
    assert result.verification == "not_applicable"
    assert await kit.lines(ledger=True) == [
        "input.accepted i1",
        "run.started",
        "input.placed i1",
        "usage.reserved",
        "model.intent",
        "model.outcome ok",
        "usage.recorded",
        "run.ended completed/final",
    ]


async def test_a_run_without_calls_needs_three_appends_and_the_release(
    kit: Kit,
) -> None:
    await kit.agent(["ok"]).run("hi", session="s")

    assert [batch[-1].kind for batch in kit.store.appends] == [
        "model.intent",
        "run.ended",
        "owner.released",
    ]


@SCENARIO("run-2")
async def test_all_calls_are_planned_with_the_reply_and_run_one_by_one(
    kit: Kit,
) -> None:
    calls = [call("rw", text="a"), call("rw", text="b")]
    result = await kit.agent([calls, "done"]).run("hi", session="s", input_id="i1")

    assert result.output == "done"
    assert kit.store.append_with(r.ModelOutcome) == [
        "model.outcome ok",
        "usage.recorded",
        "tool.planned call_1",
        "tool.planned call_2",
        "tool.intent call_1",
    ]
    assert [line for line in await kit.lines() if line.startswith("tool.")][2:] == [
        "tool.intent call_1",
        "tool.outcome call_1 ok/done",
        "tool.intent call_2",
        "tool.outcome call_2 ok/done",
    ]
    assert shown(kit.requests()[1].messages) == [
        "user hi",
        "assistant  [call_1] [call_2]",
        "tool call_1=ok call_2=ok",
    ]


async def test_a_step_costs_two_appends(kit: Kit) -> None:
    await kit.agent([call("ro"), call("ro", text="2"), "done"]).run("hi", session="s")

    # Per step: reply with its intents; outcome with the next request. Then the end.
    assert len(kit.store.appends) == 2 * 2 + 3


@SCENARIO("run-3")
async def test_outcomes_are_kept_as_they_come_and_shown_as_they_were_asked_for(
    kit: Kit,
) -> None:
    kit.gate("slow")
    calls = [call("par", text="slow"), call("par", text="fast")]
    agent = kit.agent([calls, "done"])
    async with agent.start("hi", session="s") as run:
        async for event in run:
            if isinstance(getattr(event, "record", None), r.ToolOutcome):
                kit.gate("slow").open()
        await run.result()

    assert await kit.outcomes() == ["call_2 ok/none", "call_1 ok/none"]
    results = kit.requests()[1].messages[2]
    assert isinstance(results, ToolMessage)
    assert [part.text for part in results.results] == ["par slow", "par fast"]


@SCENARIO("run-4")
async def test_an_exclusive_call_overlaps_neither_neighbour(kit: Kit) -> None:
    for text in ("a", "b", "c"):
        kit.gate(text)
    calls = [call("par", text="a"), call("rw", text="b"), call("par", text="c")]
    async with kit.agent([calls, "done"]).start("hi", session="s") as run:
        for count, text in enumerate(("a", "b", "c"), start=1):
            await kit.gate(text).reached()
            await anyio.wait_all_tasks_blocked()
            assert len(kit.effects) == count
            kit.gate(text).open()
        await run.result()

    assert await kit.outcomes() == [
        "call_1 ok/none",
        "call_2 ok/done",
        "call_3 ok/none",
    ]


async def test_neighbouring_parallel_calls_overlap_whatever_their_effects(
    kit: Kit,
) -> None:
    kit.gate("a"), kit.gate("b")
    calls = [call("par", text="a"), call("parw", text="b")]
    async with kit.agent([calls, "done"]).start("hi", session="s") as run:
        await kit.gate("a").reached()
        await kit.gate("b").reached()
        kit.gate("a").open()
        kit.gate("b").open()
        assert (await run.result()).output == "done"


@SCENARIO("run-7")
async def test_a_huge_result_is_shortened_for_the_model_and_kept_whole(
    kit: Kit,
) -> None:
    text = "x" * 400_000 + "y" * 600_000
    kit.store.appends.clear()

    async def big() -> str:
        """Return a megabyte."""
        return text

    agent = kit.agent([step(calls=[call("big")]), "done"], tools=[big])
    await agent.run("hi", session="s")

    results = kit.requests()[1].messages[2]
    assert isinstance(results, ToolMessage)
    seen = results.results[0].text
    assert len(seen) < 50_200
    assert seen.startswith("x")
    assert seen.endswith("y")
    assert "1000000 characters" in seen
    [outcome] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ToolOutcome)
    ]
    assert outcome.full is not None
    assert await kit.store.get_blob(outcome.full) == text.encode()


@SCENARIO("run-8")
async def test_a_final_text_with_nothing_pending_is_the_one_end_of_the_run(
    kit: Kit,
) -> None:
    result = await kit.agent([call("ro"), "done"]).run("hi", session="s")

    assert result.output == "done"
    assert len(kit.requests()) == 2
    assert [entry for entry in await kit.lines() if "run.ended" in entry] == [
        "run.ended completed/final"
    ]


@SCENARIO("run-9")
async def test_an_answer_that_has_not_seen_a_steer_completes_nothing(
    kit: Kit,
) -> None:
    gate = kit.gate("model")
    agent = kit.agent([step("too early", gate=gate), "now I know"])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        await run.steer("wait: only cats", input_id="s1")
        gate.open()
        result = await run.result()

    assert result.output == "now I know"
    assert shown(kit.requests()[1].messages) == [
        "user hi",
        "assistant too early",
        "user wait: only cats",
    ]
    assert (await kit.lines()).count("run.ended completed/final") == 1


@SCENARIO("features-24")
async def test_a_tool_call_and_an_answer_make_four_messages(kit: Kit) -> None:
    result = await kit.agent([call("ro"), "done"]).run("hi", session="s")

    roles = [message.kind for message in result.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert [(c.name, c.status, c.text) for c in result.tool_calls] == [
        ("ro", "ok", "ro ")
    ]
    assert result.usage.requests == 2
    assert result.usage.turns == 2
    assert result.usage.tool_calls == 1
    assert result.usage.total_tokens == 2 * 15


@SCENARIO("features-24")
async def test_a_cancel_between_two_calls_leaves_the_second_not_executed(
    kit: Kit,
) -> None:
    written = kit.store.hold(r.ToolOutcome)
    agent = kit.agent([[call("rw", text="a"), call("rw", text="b")]])
    async with (
        agent.start("hi", session="s") as run,
        anyio.create_task_group() as tasks,
    ):
        await written.reached()
        tasks.start_soon(run.cancel)
        await anyio.wait_all_tasks_blocked()
        written.open()
        result = await run.result()

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert shown(result.messages)[:3] == [
        "user hi",
        "assistant  [call_1] [call_2]",
        "tool call_1=ok call_2=not_started",
    ]
    assert result.tool_calls[1].text.startswith("not executed")
    assert kit.effects.read() == ["call_1"]
