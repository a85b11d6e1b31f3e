"""Permissions and approvals: decided once, above every executor."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit, shown

from agentcore import tool
from agentcore.journal.apply import fold
from agentcore.testing import FakeExecutor, Gate, call, tool_spec
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.context import ToolContext
from agentcore.types.policy import (
    Allow,
    Answer,
    ApprovalRequest,
    Approve,
    Ask,
    Deny,
    Forbid,
    Question,
    Verdict,
)
from agentcore.types.runs import RunView
from agentcore.types.tools import ToolCall, ToolSpec

SCENARIO = pytest.mark.scenario


class Rule:
    """A permission policy of one function."""

    def __init__(self, decide: Any) -> None:
        self.rule = decide
        self.asked: list[str] = []

    def decide(self, call: ToolCall, spec: ToolSpec, view: RunView) -> Verdict:
        self.asked.append(call.id)
        verdict: Verdict = self.rule(call, view)
        return verdict


def paying(kit: Kit) -> Any:
    @tool(approval="ask")
    async def pay(context: ToolContext[Any], amount: int) -> str:
        """Pay."""
        kit.effects.add(context.call.id)
        return f"paid {amount}"

    return pay


# --- permissions --------------------------------------------------------------------
@SCENARIO("peers-R14")
async def test_a_forbidden_call_never_reaches_the_executor(kit: Kit) -> None:
    executor = FakeExecutor({"rm": "gone"}, specs=[tool_spec("rm")])
    agent = kit.agent(
        [call("rm"), "ok"],
        tools=[],
        executor=executor,
        permissions=Rule(lambda call, view: Forbid("not in this house")),
    )
    result = await agent.run("hi", session="s")

    assert executor.calls == []
    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "not in this house" in result.tool_calls[0].text
    assert result.output == "ok"


async def test_siblings_of_a_forbidden_call_still_run(kit: Kit) -> None:
    policy = Rule(lambda call, view: Forbid("no") if call.name == "rw" else Allow())
    agent = kit.agent(
        [[call("par"), call("rw"), call("par")], "ok"], permissions=policy
    )
    result = await agent.run("hi", session="s")

    assert [c.status for c in result.tool_calls] == ["ok", "denied", "ok"]
    assert policy.asked == ["call_1", "call_2", "call_3"]


async def test_a_policy_that_fails_forbids(kit: Kit) -> None:
    def broken(call: Any, view: Any) -> Verdict:
        raise LookupError("no such table")

    agent = kit.agent([call("rw"), "ok"], permissions=Rule(broken))
    result = await agent.run("hi", session="s")

    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "no such table" in result.tool_calls[0].text
    assert kit.effects.read() == []


async def test_a_policy_sees_arguments_and_who_is_served(kit: Kit) -> None:
    def only_ann(call: ToolCall, view: RunView) -> Verdict:
        named = Actor("ann") in view.actors
        return Allow() if named and call.arguments["text"] == "a" else Forbid("no")

    agent = kit.agent([call("rw", text="a"), "ok"] * 2, permissions=Rule(only_ann))
    await agent.run("hi", session="s", actor=Actor("ann"))
    await agent.run("hi", session="s", actor=Actor("bob"))

    assert await kit.outcomes() == ["call_1 ok/done", "call_2 denied/none"]


@SCENARIO("run-24")
async def test_what_is_revoked_before_the_gate_does_not_run(kit: Kit) -> None:
    revoked: set[str] = set()

    def rule(call: ToolCall, view: RunView) -> Verdict:
        return Forbid("revoked") if call.name in revoked else Allow()

    gate = kit.gate("a")
    agent = kit.agent(
        [[call("ro", text="a"), call("rw")], "ok"], permissions=Rule(rule)
    )
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        revoked.add("rw")
        gate.open()
        await run.result()

    assert (await kit.outcomes())[1].startswith("call_2 ")
    assert kit.effects.read() == ["call_1"]


async def test_a_policy_may_ask(kit: Kit) -> None:
    asked: list[ApprovalRequest] = []

    async def handler(request: Any) -> Any:
        asked.append(request)
        return Approve()

    agent = kit.agent(
        [call("rw", text="a"), "ok"],
        permissions=Rule(lambda call, view: Ask("really?")),
        asks=handler,
    )
    await agent.run("hi", session="s")

    [request] = asked
    assert (request.id, request.tool, request.arguments, request.why) == (
        "call_1",
        "rw",
        {"text": "a"},
        "really?",
    )
    assert kit.effects.read() == ["call_1"]


# --- approvals ----------------------------------------------------------------------
async def test_with_nobody_there_a_call_that_needs_a_yes_is_denied(kit: Kit) -> None:
    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)])
    result = await agent.run("hi", session="s")

    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "user_not_reachable" in result.tool_calls[0].text
    assert result.output == "ok"


async def test_an_approved_call_runs_and_both_sides_are_on_record(kit: Kit) -> None:
    async def yes(request: Any) -> Any:
        return Approve()

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=yes)
    result = await agent.run("hi", session="s", actor=Actor("ann"))

    assert result.tool_calls[0].text == "paid 5"
    assert [line for line in await kit.lines() if "call_1" in line] == [
        "tool.planned call_1",
        "approval.requested call_1",
        "approval.decided call_1 approve",
        "tool.intent call_1",
        "tool.outcome call_1 ok/done",
    ]


async def test_a_refusal_tells_the_model_why(kit: Kit) -> None:
    async def no(request: Any) -> Any:
        return Deny("too much")

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=no)
    result = await agent.run("hi", session="s")

    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "too much" in result.tool_calls[0].text
    assert kit.effects.read() == []
    assert "approval.decided call_1 deny" in await kit.lines()


async def test_an_approval_may_change_the_arguments(kit: Kit) -> None:
    async def less(request: Any) -> Any:
        return Approve({"amount": 1})

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=less)
    result = await agent.run("hi", session="s")

    assert result.tool_calls[0].text == "paid 1"
    assert result.tool_calls[0].arguments == {"amount": 1}
    [intent] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ToolIntent)
    ]
    assert intent.arguments == {"amount": 1}


async def test_changed_arguments_that_do_not_fit_do_not_run(kit: Kit) -> None:
    async def odd(request: Any) -> Any:
        return Approve({"amount": "much"})

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=odd)
    result = await agent.run("hi", session="s")

    assert result.tool_calls[0].status == "invalid_args"
    assert kit.effects.read() == []


async def test_a_handler_that_fails_is_a_no(kit: Kit) -> None:
    async def broken(request: Any) -> Any:
        raise OSError("line is down")

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=broken)
    result = await agent.run("hi", session="s")

    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "line is down" in result.tool_calls[0].text


@pytest.mark.parametrize("answer", [None, True, "yes", Answer("yes")])
async def test_only_an_approval_is_a_yes(kit: Kit, answer: Any) -> None:
    async def handler(request: Any) -> Any:
        return answer

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=handler)
    await agent.run("hi", session="s")

    assert await kit.outcomes() == ["call_1 denied/none"]
    assert kit.effects.read() == []


async def test_a_handler_that_takes_too_long_is_a_no(kit: Kit) -> None:
    async def asleep(request: Any) -> Any:
        await anyio.sleep_forever()

    agent = kit.agent(
        [call("pay", amount=5), "ok"],
        tools=[paying(kit)],
        asks=asleep,
        ask_timeout=0.02,
    )
    result = await agent.run("hi", session="s")

    assert await kit.outcomes() == ["call_1 denied/none"]
    assert "in time" in result.tool_calls[0].text
    assert result.output == "ok"


async def test_each_call_of_a_batch_is_asked_for_in_order(kit: Kit) -> None:
    asked: list[Any] = []

    async def handler(request: Any) -> Any:
        asked.append((request.id, list(kit.effects)))
        return Approve() if request.arguments["amount"] != 2 else Deny("not two")

    calls = [call("pay", amount=n) for n in (1, 2, 3)]
    agent = kit.agent([calls, "ok"], tools=[paying(kit)], asks=handler)
    result = await agent.run("hi", session="s")

    assert [c.status for c in result.tool_calls] == ["ok", "denied", "ok"]
    assert asked == [
        ("call_1", []),
        ("call_2", ["call_1"]),
        ("call_3", ["call_1"]),
    ]
    assert shown(kit.requests()[1].messages)[-1] == (
        "tool call_1=ok call_2=denied call_3=ok"
    )


async def test_a_run_may_have_its_own_handler(kit: Kit) -> None:
    async def yes(request: Any) -> Any:
        return Approve()

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)])
    await agent.run("hi", session="s", asks=yes)

    assert kit.effects.read() == ["call_1"]


async def test_leaving_while_somebody_is_asked_leaves_nothing_to_decide(
    kit: Kit,
) -> None:
    asked = Gate()

    async def handler(request: Any) -> Any:
        asked.open()
        await anyio.sleep_forever()

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=handler)
    async with agent.start("hi", session="s", input_id="i1") as run:
        await asked.wait()
        await agent.cancel(session="s")
        result = await run.result()

    assert result.pending == ()
    assert await kit.outcomes() == ["call_1 not_started/none"]


async def test_a_host_that_leaves_while_somebody_is_asked_pauses_the_run(
    kit: Kit,
) -> None:
    asked = Gate()

    async def handler(request: Any) -> Any:
        asked.open()
        await anyio.sleep_forever()

    agent = kit.agent([call("pay", amount=5), "ok"], tools=[paying(kit)], asks=handler)
    async with agent.start("hi", session="s"):
        await asked.wait()

    assert (await kit.lines())[-1] == "run.paused host"
    assert await kit.outcomes() == ["call_1 not_started/none"]
    assert fold("s", await kit.records()).run.waiting == {}  # type: ignore[union-attr]
    assert (await agent.resume("s")).pending == ()


# --- questions ----------------------------------------------------------------------
def asking() -> Any:
    @tool(effects="none")
    async def ask_user(context: ToolContext[Any]) -> str:
        """Ask the user."""
        answer = await context.ask(Question("q1", "Which one?"))
        return answer.text

    return ask_user


async def test_a_tool_may_ask_and_gets_the_answer(kit: Kit) -> None:
    async def handler(question: Any) -> Any:
        return Answer(f"to {question.text}")

    agent = kit.agent([call("ask_user"), "ok"], tools=[asking()], asks=handler)
    result = await agent.run("hi", session="s")

    assert result.tool_calls[0].text == "to Which one?"
    lines = await kit.lines()
    assert "question.asked call_1" in lines
    assert "question.answered call_1" in lines


@pytest.mark.parametrize(
    ("reply", "words"),
    [(Deny("go away"), "user_rejected"), (None, "question handler returned")],
)
async def test_a_question_without_an_answer_fails_the_tool_only(
    kit: Kit, reply: Any, words: str
) -> None:
    async def handler(question: Any) -> Any:
        return reply

    agent = kit.agent([call("ask_user"), "ok"], tools=[asking()], asks=handler)
    result = await agent.run("hi", session="s")

    assert words in result.tool_calls[0].text
    assert result.output == "ok"
    [answered] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.QuestionAnswered)
    ]
    assert (answered.answer, words in answered.error) == (None, True)


async def test_a_broken_question_handler_is_on_record_as_no_answer(kit: Kit) -> None:
    async def handler(question: Any) -> Any:
        raise LookupError("no such window")

    agent = kit.agent([call("ask_user"), "ok"], tools=[asking()], asks=handler)
    result = await agent.run("hi", session="s")

    words = "the question handler failed: LookupError: no such window"
    assert words in result.tool_calls[0].text
    assert result.output == "ok"
    [answered] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.QuestionAnswered)
    ]
    assert (answered.answer, answered.error) == (None, words)


async def test_a_question_nobody_can_hear_fails_at_once(kit: Kit) -> None:
    agent = kit.agent([call("ask_user"), "ok"], tools=[asking()])
    result = await agent.run("hi", session="s")

    assert "user_not_reachable" in result.tool_calls[0].text
    assert len(kit.requests()) == 2


async def test_a_question_answered_too_late_times_out(kit: Kit) -> None:
    async def asleep(question: Any) -> Any:
        await anyio.sleep_forever()

    agent = kit.agent(
        [call("ask_user"), "ok"], tools=[asking()], asks=asleep, ask_timeout=0.02
    )
    result = await agent.run("hi", session="s")

    assert "user_timeout" in result.tool_calls[0].text
    assert result.output == "ok"
