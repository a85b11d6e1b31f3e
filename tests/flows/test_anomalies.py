"""Replies that are empty, cut off, broken or go in circles: nothing is guessed."""

import itertools
from typing import Any

import pytest
from tests.flows.kit import Kit, shown

from agentcore import ToolLoopAgent, tool
from agentcore.errors import Overloaded, ServerError
from agentcore.policies.retry import RetryPolicy
from agentcore.testing import FunctionModel, call, call_raw, step
from agentcore.types.content import ThinkingPart
from agentcore.types.messages import ToolMessage
from agentcore.types.policy import Budget
from agentcore.types.runs import RunResult

AT_ONCE = RetryPolicy(base=0.0)
SCENARIO = pytest.mark.scenario


def stop_of(result: RunResult[Any]) -> str:
    return f"{result.stop.status}/{result.stop.reason}"


def last_results(kit: Kit) -> list[str]:
    """The results the last request ends with, or whose notes follow them."""
    message = next(
        message
        for message in reversed(kit.requests()[-1].messages)
        if isinstance(message, ToolMessage)
    )
    return [result.text for result in message.results]


# --- empty --------------------------------------------------------------------------
@SCENARIO("run-76")
@pytest.mark.parametrize(
    "reply",
    [step(), step(" \n\t "), step(content=[ThinkingPart("hm")]), step(usage=None)],
    ids=["nothing", "whitespace", "reasoning", "no usage"],
)
async def test_empty_replies_are_tried_twice_more_and_then_the_run_is_stuck(
    kit: Kit, reply: Any
) -> None:
    result = await kit.agent([reply] * 3).run("hi", session="s")

    assert stop_of(result) == "stuck/empty"
    assert result.output is None
    assert [line for line in await kit.lines() if "outcome" in line] == [
        "model.outcome empty"
    ] * 3
    assert shown(kit.requests()[0].messages) == ["user hi"]
    assert shown(kit.requests()[2].messages)[1].startswith("note ")


async def test_one_empty_reply_is_forgotten_once_the_model_answers(kit: Kit) -> None:
    replies = [step(), call("ro"), step(), step(), "done"]
    result = await kit.agent(replies).run("hi", session="s")

    assert stop_of(result) == "completed/final"
    assert shown(result.messages) == [
        "user hi",
        "assistant  [call_1]",
        "tool call_1=ok",
        "assistant done",
    ]


@SCENARIO("run-84")
async def test_announcing_calls_and_sending_none_three_times_is_stuck(
    kit: Kit,
) -> None:
    replies = [step("let me look", finish="tool_calls")] * 3
    result = await kit.agent(replies).run("hi", session="s")

    assert stop_of(result) == "stuck/invalid_output"
    assert len(kit.requests()) == 3
    assert "announced" in shown(kit.requests()[1].messages)[-1]


async def test_a_reply_withheld_by_a_content_filter_is_a_failure_of_the_model(
    kit: Kit,
) -> None:
    result = await kit.agent([step(finish="content_filter")]).run("hi", session="s")

    assert stop_of(result) == "failed/model"
    assert "withheld" in result.stop.detail


# --- cut off ------------------------------------------------------------------------
@SCENARIO("run-77")
async def test_no_call_of_a_cut_off_reply_runs_however_whole_it_looks(
    kit: Kit,
) -> None:
    cut = step(calls=[call("rw", text="a"), call("rw", text="b")], finish="length")
    result = await kit.agent([cut, "done"]).run("hi", session="s")

    assert stop_of(result) == "completed/final"
    assert await kit.outcomes() == [
        "call_1 invalid_args/none",
        "call_2 invalid_args/none",
    ]
    assert all("truncated" in text for text in last_results(kit))
    assert kit.effects.read() == []


@SCENARIO("peers-T8")
async def test_arguments_cut_in_half_are_never_completed_by_guessing(
    kit: Kit,
) -> None:
    cut = step(calls=[call_raw("rw", '{"text": "x"')], finish="length")
    result = await kit.agent([cut, "done"]).run("hi", session="s")

    assert stop_of(result) == "completed/final"
    assert await kit.outcomes() == ["call_1 invalid_args/none"]
    assert "length limit" in last_results(kit)[0]
    assert kit.effects.read() == []


@SCENARIO("peers-T8")
async def test_half_of_an_argument_object_is_invalid_whatever_the_finish_says(
    kit: Kit,
) -> None:
    result = await kit.agent([call_raw("rw", '{"text": "x"'), "done"]).run("hi")

    assert [c.status for c in result.tool_calls] == ["invalid_args"]
    assert kit.effects.read() == []


async def test_a_cut_off_answer_is_continued_and_joined(kit: Kit) -> None:
    replies = [step("one ", finish="length"), step("two ", finish="length"), "three"]
    result = await kit.agent(replies).run("hi", session="s")

    assert result.output == "one two three"
    assert shown(result.messages) == ["user hi", "assistant one two three"]
    assert shown(kit.requests()[2].messages)[:2] == ["user hi", "assistant one two "]
    assert (await kit.lines()).count("model.outcome length") == 2


async def test_an_answer_that_never_ends_is_stuck_after_three_continuations(
    kit: Kit,
) -> None:
    result = await kit.agent([step("more", finish="length")] * 4).run("hi", session="s")

    assert stop_of(result) == "stuck/truncated"
    assert len(kit.requests()) == 4


# --- unusable calls -----------------------------------------------------------------
@SCENARIO("run-78")
async def test_broken_arguments_spoil_only_their_own_call(kit: Kit) -> None:
    calls = [call_raw("rw", "{text: a"), call("rw", text="b")]
    await kit.agent([calls, "done"]).run("hi", session="s")

    assert await kit.outcomes() == ["call_1 invalid_args/none", "call_2 ok/done"]
    assert "JSON" in last_results(kit)[0]
    assert kit.effects.read() == ["call_2"]


@pytest.mark.parametrize(
    "arguments",
    ["[]", '"a"', "17", "null", '{"text": 1}', '{"other": "a"}', '{"text": null}'],
)
async def test_arguments_that_do_not_fit_the_schema_never_run(
    kit: Kit, arguments: str
) -> None:
    await kit.agent([call_raw("rw", arguments), "done"]).run("hi", session="s")

    assert await kit.outcomes() == ["call_1 invalid_args/none"]
    assert kit.effects.read() == []


async def test_no_arguments_at_all_are_an_empty_object(kit: Kit) -> None:
    await kit.agent([call_raw("rw", ""), "done"]).run("hi", session="s")

    assert await kit.outcomes() == ["call_1 ok/done"]


async def test_three_replies_of_unusable_calls_only_are_stuck(kit: Kit) -> None:
    replies = [call_raw("rw", "{"), call("nothing"), call_raw("rw", "}")]
    result = await kit.agent(replies).run("hi", session="s")

    assert stop_of(result) == "stuck/invalid_output"
    assert len(kit.requests()) == 3


async def test_a_usable_call_starts_the_count_of_unusable_replies_anew(
    kit: Kit,
) -> None:
    bad = call_raw("rw", "{")
    replies = [bad, bad, [bad, call("ro")], bad, bad, "done"]
    result = await kit.agent(replies).run("hi", session="s")

    assert stop_of(result) == "completed/final"


@SCENARIO("run-79")
@pytest.mark.parametrize("name", ["r0", "RO", "ro ", "read_only", ""])
async def test_a_name_close_to_a_tool_is_no_tool(kit: Kit, name: str) -> None:
    await kit.agent([call(name), "done"]).run("hi", session="s")

    assert await kit.outcomes() == ["call_1 unavailable/none"]
    assert "idem, par, parw, ro, rw" in last_results(kit)[0]
    assert kit.effects.read() == []


@SCENARIO("run-79")
async def test_a_tool_that_this_run_does_not_offer_is_unavailable(kit: Kit) -> None:
    agent = kit.agent([call("rw"), "done"])
    await agent.run("hi", session="s", tools_filter=["ro"])

    assert await kit.outcomes() == ["call_1 unavailable/none"]
    assert [spec.name for spec in kit.requests()[0].tools] == ["ro"]
    assert kit.effects.read() == []


# --- repeated -----------------------------------------------------------------------
@SCENARIO("run-80")
async def test_equal_calls_with_different_ids_all_run(kit: Kit) -> None:
    await kit.agent([[call("rw", text="a"), call("rw", text="a")], "done"]).run(
        "hi", session="s"
    )

    assert kit.effects.read() == ["call_1", "call_2"]


async def test_a_vendor_id_seen_twice_in_one_reply_runs_once(kit: Kit) -> None:
    calls = [call("rw", _id="x", text="a"), call("rw", _id="x", text="b")]
    await kit.agent([calls, call("rw", _id="x", text="c"), "done"]).run(
        "hi", session="s"
    )

    assert await kit.outcomes() == [
        "call_2 duplicate/none",
        "call_1 ok/done",
        "call_3 ok/done",
    ]
    assert kit.effects.read() == ["call_1", "call_3"]


@SCENARIO("run-81")
async def test_the_same_call_with_the_same_result_is_nudged_and_then_stuck(
    kit: Kit,
) -> None:
    result = await kit.agent([call("ro")] * 5).run("hi", session="s")

    assert stop_of(result) == "stuck/repeat"
    notes = [
        any(entry.startswith("note ") for entry in shown(request.messages))
        for request in kit.requests()
    ]
    assert notes == [False, False, False, True, True]


@SCENARIO("run-81")
async def test_the_same_call_with_a_changing_result_is_progress(kit: Kit) -> None:
    numbers = itertools.count()

    async def poll() -> int:
        """Count."""
        return next(numbers)

    result = await kit.agent([call("poll")] * 8 + ["done"], tools=[poll]).run("hi")

    assert stop_of(result) == "completed/final"


@SCENARIO("run-81")
async def test_going_back_and_forth_four_times_is_a_cycle(kit: Kit) -> None:
    both = [call("ro", text="a"), call("ro", text="b")]
    result = await kit.agent(both * 4).run("hi", session="s")

    assert stop_of(result) == "stuck/cycle"
    assert len(kit.requests()) == 8


async def test_what_the_user_says_meanwhile_starts_the_count_anew(kit: Kit) -> None:
    agent = kit.agent([*[call("ro")] * 4, "a", *[call("ro")] * 4, "b"])
    await agent.run("hi", session="s")
    result = await agent.run("again", session="s")

    assert stop_of(result) == "completed/final"


async def test_a_polling_tool_may_repeat_itself(kit: Kit) -> None:
    @tool(effects="none", polling=True)
    async def wait() -> str:
        """Wait."""
        return "not yet"

    result = await kit.agent([call("wait")] * 7 + ["done"], tools=[wait]).run("hi")

    assert stop_of(result) == "completed/final"


# --- failing ------------------------------------------------------------------------
@SCENARIO("run-82")
@pytest.mark.parametrize(
    ("name", "effect"),
    [("rw", "unknown"), ("idem", "unknown"), ("ro", "none")],
)
async def test_a_tool_that_raises_may_have_had_its_effect(
    kit: Kit, name: str, effect: str
) -> None:
    kit.raises["a"] = ValueError("half done")
    result = await kit.agent([call(name, text="a"), "done"]).run("hi", session="s")

    assert await kit.outcomes() == [f"call_1 error/{effect}"]
    assert "half done" in last_results(kit)[0]
    assert stop_of(result) == "completed/final"


@SCENARIO("run-83")
async def test_a_stream_cut_after_a_whole_call_is_tried_again_without_it(
    kit: Kit,
) -> None:
    cut = step("let me ", calls=[call("rw", text="a")], cut=True)
    agent = kit.agent([cut, "done"], retry=AT_ONCE)
    result = await agent.run("hi", session="s")

    assert result.output == "done"
    assert kit.effects.read() == []
    assert await kit.lines() == [
        "input.accepted input_1",
        "run.started",
        "input.placed input_1",
        "model.intent",
        "model.outcome error",
        "model.intent #2",
        "model.outcome ok",
        "run.ended completed/final",
    ]
    assert shown(kit.requests()[1].messages) == ["user hi"]


@SCENARIO("run-74")
async def test_failed_attempts_count_towards_the_limit_on_requests(kit: Kit) -> None:
    agent = kit.agent(
        [call("ro"), Overloaded("busy"), ServerError("down")],
        retry=AT_ONCE,
        budget=Budget(requests=3),
    )
    result = await agent.run("hi", session="s")

    assert stop_of(result) == "budget/requests"
    assert len(kit.requests()) == 3
    assert result.usage.requests == 3


@SCENARIO("peers-T7")
async def test_text_before_a_call_never_ends_a_run_streamed_or_not(kit: Kit) -> None:
    reply = step(chunks=["Let me see.", "\n", "  "], calls=[call("ro", text="a")])
    streamed = kit.agent([reply, "done"])
    async with streamed.start("hi", session="s") as run:
        events = [event async for event in run]
        one = await run.result()
    other = await kit.agent([reply, "done"]).run("hi")

    assert events
    assert one.output == other.output == "done"
    assert [m.kind for m in one.messages] == [m.kind for m in other.messages]
    assert kit.effects.read() == ["call_1", "call_2"]


async def test_a_model_of_functions_serves_as_well(kit: Kit) -> None:
    def answer(request: Any) -> str:
        return f"{len(request.messages)} messages"

    agent: ToolLoopAgent[Any, Any] = kit.agent(FunctionModel(answer))

    assert (await agent.run("hi", session="s")).output == "1 messages"
    assert (await agent.run("hi", session="s")).output == "3 messages"
