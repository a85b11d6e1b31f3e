"""A run pauses for what somebody must decide, and goes on with the decision, once."""

from typing import Any

import pytest
from tests.flows.kit import Kit, shown

from agentcore import ToolLoopAgent, tool
from agentcore.errors import AlreadySettled, ConfigError, InputConflict, SessionNotFound
from agentcore.testing import call
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.context import ToolContext
from agentcore.types.policy import (
    Allow,
    Answer,
    ApprovalRequest,
    Approve,
    Decision,
    Deny,
    Forbid,
    Happened,
    Question,
)
from agentcore.types.runs import RunResult

SCENARIO = pytest.mark.scenario


def paying(kit: Kit) -> Any:
    @tool(approval="ask")
    async def pay(context: ToolContext[Any], amount: int) -> str:
        """Pay."""
        kit.effects.add(context.call.id)
        return f"paid {amount}"

    return pay


def asking(kit: Kit, **declared: Any) -> Any:
    @tool(effects="none", **declared)
    async def survey(context: ToolContext[Any]) -> str:
        """Ask twice."""
        kit.effects.add(context.call.id)
        first = await context.ask(Question("mine", "Name?"))
        second = await context.ask(Question("mine", f"Age, {first.text}?"))
        return f"{first.text} is {second.text}"

    return survey


def bot(
    kit: Kit, answers: list[Any], *more: Any, **settings: Any
) -> ToolLoopAgent[Any, Any]:
    tools = [*kit.tools, paying(kit), *more]
    return kit.agent(answers, tools=tools, **{"asks": "pause", **settings})


async def stopped(kit: Kit, *calls: Any, **settings: Any) -> RunResult[Any]:
    """A run that paused in a batch of these calls."""
    agent = bot(kit, [list(calls)], **settings)
    return await agent.run("hi", session="s", input_id="i1")


# --- approvals ----------------------------------------------------------------------
async def test_a_call_that_needs_a_yes_pauses_the_run(kit: Kit) -> None:
    result = await stopped(kit, call("pay", amount=17))

    assert (result.stop.status, result.stop.reason) == ("paused", "approval")
    (request,) = result.pending
    assert isinstance(request, ApprovalRequest)
    assert (request.tool, request.arguments) == ("pay", {"amount": 17})
    assert result.stop.subjects == (request.id,)
    assert kit.effects.read() == []
    assert result.output is None
    assert (await kit.records())[-1].record.kind == "owner.released"


@SCENARIO("peers-T11")
@SCENARIO("peers-R10")
async def test_an_approved_call_runs_once_with_what_the_new_process_brings(
    kit: Kit,
) -> None:
    @tool(approval="ask")
    async def pay(context: ToolContext[Any], amount: int) -> str:
        """Pay."""
        kit.effects.add(context.call.id)
        return f"{context.deps} paid {amount}"

    first = kit.agent([call("pay", amount=17)], tools=[pay], asks="pause")
    request = (await first.run("hi", session="s", deps="old")).pending[0]
    later = kit.agent(["done"], tools=[pay], asks="pause")
    decided = {request.id: Approve()}
    result = await later.resume("s", decisions=decided, deps="new", actor=Actor("ann"))

    assert result.output == "done"
    assert [c.text for c in result.tool_calls] == ["new paid 17"]
    assert kit.effects.read() == [request.id]
    history = shown(kit.requests()[-1].messages)
    assert history == ["user hi", f"assistant  [{request.id}]", f"tool {request.id}=ok"]
    decisions = [s.record for s in await kit.records() if "decided" in s.record.kind]
    assert [d.actor for d in decisions] == [Actor("ann")]  # type: ignore[union-attr]


async def test_a_denied_call_never_runs_and_the_model_is_told_why(kit: Kit) -> None:
    request = (await stopped(kit, call("pay", amount=17))).pending[0]
    agent = bot(kit, ["as you wish"])
    result = await agent.resume("s", decisions={request.id: Deny("too much")})

    assert result.output == "as you wish"
    assert await kit.outcomes() == [f"{request.id} denied/none"]
    assert "too much" in result.tool_calls[0].text
    assert kit.effects.read() == []


@SCENARIO("peers-T9")
@pytest.mark.parametrize("asks", ["pause", "refuse"])
async def test_without_a_decision_the_same_approval_is_asked_again(
    kit: Kit, asks: Any
) -> None:
    first = await stopped(kit, call("pay", amount=17))
    for _ in range(5):
        again = await bot(kit, ["never"], asks=asks).resume("s")
        assert again.pending == first.pending
        assert again.stop == first.stop

    assert kit.effects.read() == []
    assert (await kit.lines()).count(f"approval.requested {first.pending[0].id}") == 1


async def test_a_handler_that_comes_later_is_asked_for_what_waits(kit: Kit) -> None:
    async def yes(request: Any) -> Approve:
        assert request.tool == "pay"
        return Approve()

    await stopped(kit, call("pay", amount=17))
    result = await bot(kit, ["done"], asks=yes).resume("s")

    assert result.output == "done"
    assert len(kit.effects) == 1


@SCENARIO("peers-R6")
async def test_several_wait_at_once_and_are_decided_in_any_order(kit: Kit) -> None:
    first = await stopped(kit, *(call("pay", amount=n) for n in (1, 2, 3)))
    one, two, three = first.pending
    second = await bot(kit, []).resume("s", decisions={three.id: Approve()})

    assert [p.id for p in second.pending] == [one.id, two.id]
    # The third may have an effect, so it waits for the calls before it.
    assert kit.effects.read() == []

    with pytest.raises(AlreadySettled):
        await bot(kit, []).resume("s", decisions={three.id: Deny()})
    decided: dict[str, Decision] = {two.id: Deny("no"), one.id: Approve()}
    result = await bot(kit, ["done"]).resume("s", decisions=decided)

    assert result.output == "done"
    assert [c.status for c in result.tool_calls] == ["ok", "denied", "ok"]
    assert [c.text for c in result.tool_calls][::2] == ["paid 1", "paid 3"]
    assert kit.effects.read() == [one.id, three.id]


@SCENARIO("peers-R16")
async def test_calls_without_effects_do_not_wait_for_a_decision_before_them(
    kit: Kit,
) -> None:
    calls = [call("ro", text="a"), call("pay", amount=1), call("rw"), call("par")]
    first = await stopped(kit, *calls)
    assert [p.id for p in first.pending] == ["call_2"]
    assert sorted(await kit.outcomes()) == ["call_1 ok/none", "call_4 ok/none"]
    assert kit.effects.read() == ["call_1", "call_4"]  # the one that writes waits

    result = await bot(kit, ["done"]).resume("s", decisions={"call_2": Approve()})

    assert [c.status for c in result.tool_calls] == ["ok"] * 4
    assert kit.effects.read() == ["call_1", "call_4", "call_2", "call_3"]
    last = shown(kit.requests()[-1].messages)[-1]
    assert last == "tool call_1=ok call_2=ok call_3=ok call_4=ok"


async def test_approved_arguments_are_the_ones_that_run(kit: Kit) -> None:
    request = (await stopped(kit, call("pay", amount=17))).pending[0]
    lower = {request.id: Approve(arguments={"amount": 5})}
    result = await bot(kit, ["done"]).resume("s", decisions=lower)

    assert result.tool_calls[0].text == "paid 5"
    assert result.tool_calls[0].arguments == {"amount": 5}
    (intent,) = [
        s.record for s in await kit.records() if s.record.kind == "tool.intent"
    ]
    assert isinstance(intent, r.ToolIntent)
    assert intent.arguments == {"amount": 5}


async def test_approved_arguments_that_do_not_fit_do_not_run(kit: Kit) -> None:
    request = (await stopped(kit, call("pay", amount=17))).pending[0]
    wrong = {request.id: Approve(arguments={"amount": "a lot"})}
    result = await bot(kit, ["done"]).resume("s", decisions=wrong)

    assert await kit.outcomes() == [f"{request.id} invalid_args/none"]
    assert "the approver's arguments do not fit" in result.tool_calls[0].text
    assert kit.effects.read() == []


async def test_what_is_forbidden_meanwhile_does_not_run_approved_or_not(
    kit: Kit,
) -> None:
    class Rule:
        def decide(self, call: Any, spec: Any, view: Any) -> Any:
            return Forbid("closed") if closed else Allow()

    closed = False
    request = (await stopped(kit, call("pay", amount=1), permissions=Rule())).pending[0]
    closed = True
    agent = bot(kit, ["done"], permissions=Rule())
    result = await agent.resume("s", decisions={request.id: Approve()})

    assert result.tool_calls[0].text == "denied: closed"
    assert kit.effects.read() == []


# --- once ---------------------------------------------------------------------------
@SCENARIO("peers-T10")
@SCENARIO("peers-R13")
async def test_a_decision_is_used_once(kit: Kit) -> None:
    request = (await stopped(kit, call("pay", amount=17))).pending[0]
    await bot(kit, ["done"]).resume("s", decisions={request.id: Approve()})
    for decision in (Approve(), Deny()):
        with pytest.raises(AlreadySettled, match=request.id):
            await bot(kit, []).resume("s", decisions={request.id: decision})
    await bot(kit, [call("ro"), "again"]).run("more", session="s")
    with pytest.raises(AlreadySettled):
        await bot(kit, []).resume("s", decisions={request.id: Approve()})

    assert kit.effects.read().count(request.id) == 1


async def test_a_decision_may_be_sent_twice_and_not_be_changed(kit: Kit) -> None:
    request = (await stopped(kit, call("pay", amount=17))).pending[0]
    from agentcore._engine.decisions import accept_decisions  # noqa: PLC0415 - no door

    yes = {request.id: Approve()}
    for _ in range(2):  # stored, and nobody has come to act on it yet
        await accept_decisions(kit.store, "s", yes, None)
    with pytest.raises(InputConflict):
        await bot(kit, []).resume("s", decisions={request.id: Deny()})
    result = await bot(kit, ["done"]).resume("s", decisions=yes)

    assert result.output == "done"
    assert kit.effects.read() == [request.id]


async def test_decisions_are_checked_before_any_is_stored(kit: Kit) -> None:
    one, two = (await stopped(kit, *[call("pay", amount=n) for n in (1, 2)])).pending
    bad: list[tuple[Any, type[Exception], str]] = [
        ({one.id: Approve(), "call_99": Approve()}, ConfigError, "nothing waits under"),
        (
            {one.id: Approve(), two.id: Answer("x")},
            ConfigError,
            "takes Approve or Deny",
        ),
        ({one.id: Approve(), two.id: Happened()}, ConfigError, "not Happened"),
        ({one.id: True}, ConfigError, "must be one of"),
        ({7: Approve()}, ConfigError, "the key of a decision"),
        ([one.id], ConfigError, "must be a mapping"),
        ({one.id: Approve(scope="always")}, ConfigError, "not available yet"),
    ]
    before = await kit.records()
    for decisions, error, words in bad:
        with pytest.raises(error, match=words):
            await bot(kit, []).resume("s", decisions=decisions)
    with pytest.raises(SessionNotFound):
        await bot(kit, []).resume("other", decisions={one.id: Approve()})

    assert await kit.records() == before
    assert (await kit.store.inbox("s")).version == 1


# --- instead of a decision ----------------------------------------------------------
@SCENARIO("peers-R8")
@pytest.mark.parametrize("delivery", ["steer", "follow_up"])
async def test_a_users_words_supersede_and_never_approve(
    kit: Kit, delivery: Any
) -> None:
    await stopped(kit, call("pay", amount=17), call("rw"))
    agent = bot(kit, ["then not"])
    await agent.submit("do not", session="s", delivery=delivery, input_id="i2")
    with pytest.raises(AlreadySettled, match="i2"):
        await agent.resume("s", decisions={"call_1": Approve()})
    result = await agent.resume("s")

    assert result.output == "then not"
    assert kit.effects.read() == []
    assert await kit.outcomes() == ["call_1 denied/none", "call_2 not_started/none"]
    assert shown(kit.requests()[-1].messages)[-2:] == [
        "tool call_1=denied call_2=not_started",
        "user do not",
    ]
    assert (await kit.lines()).count("run.started") == 1


@SCENARIO("peers-R8")
async def test_a_new_run_on_a_paused_session_joins_it_and_approves_nothing(
    kit: Kit,
) -> None:
    await stopped(kit, call("pay", amount=17))
    result = await bot(kit, ["fine"]).run("never mind", session="s")

    assert result.output == "fine"
    assert kit.effects.read() == []
    assert (await kit.lines()).count("run.started") == 1


@SCENARIO("run-39")
async def test_a_cancel_while_somebody_is_asked_wins(kit: Kit) -> None:
    await stopped(kit, call("pay", amount=17))
    agent = bot(kit, [])
    await agent.cancel(session="s")
    with pytest.raises(AlreadySettled):
        await agent.resume("s", decisions={"call_1": Approve()})
    result = await agent.resume("s")

    assert (result.stop.status, result.stop.reason) == ("cancelled", "user")
    assert await kit.outcomes() == ["call_1 not_started/none"]
    assert kit.effects.read() == []


async def test_a_follow_up_from_before_the_pause_decides_nothing(kit: Kit) -> None:
    gate = kit.gate("a")
    agent = bot(kit, [[call("ro", text="a"), call("pay", amount=1)], "one", "two"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.follow_up("and then", input_id="f")
        gate.open()
        first = await run.result()
    assert first.stop.reason == "approval"

    result = await agent.resume("s", decisions={"call_2": Approve()})
    assert result.output == "one"
    assert [x for x in await kit.lines() if x.startswith("run.ended")] == [
        "run.ended completed/final"
    ] * 2


async def test_nobody_can_be_asked_later_without_a_store(kit: Kit) -> None:
    for agent, leave_no_trace in (
        (bot(kit, ["never"], store=None), False),
        (bot(kit, ["never"]), True),
    ):
        with pytest.raises(ConfigError, match="asks='pause' needs a store"):
            await agent.run("hi", ephemeral=leave_no_trace)
    assert kit.requests() == []


# --- questions ----------------------------------------------------------------------
async def test_a_tools_question_pauses_the_run_and_its_answer_comes_back(
    kit: Kit,
) -> None:
    survey = asking(kit, replay="safe")
    agent = bot(kit, [[call("survey"), call("ro")], "done"], survey)
    first = await agent.run("hi", session="s")
    assert (first.stop.status, first.stop.reason) == ("paused", "question")
    (question,) = first.pending
    assert isinstance(question, Question)
    assert (question.id, question.text) == ("call_1", "Name?")

    second = await agent.resume("s", decisions={"call_1": Answer("Ann")})
    assert [getattr(p, "text", "") for p in second.pending] == ["Age, Ann?"]
    result = await agent.resume("s", decisions={"call_1": Answer("7")})

    assert result.output == "done"
    assert result.tool_calls[0].text == "Ann is 7"
    assert await kit.outcomes() == ["call_2 ok/none", "call_1 ok/none"]
    assert kit.effects.read().count("call_1") == 3  # each time from its start


async def test_a_refused_question_fails_the_tool_only(kit: Kit) -> None:
    agent = bot(kit, [call("survey"), "done"], asking(kit, replay="safe"))
    await agent.run("hi", session="s")
    result = await agent.resume("s", decisions={"call_1": Deny("busy")})

    assert result.output == "done"
    assert "user_rejected: busy" in result.tool_calls[0].text


async def test_a_question_goes_on_waiting_until_it_is_answered(kit: Kit) -> None:
    agent = bot(kit, [call("survey"), "done"], asking(kit, replay="safe"))
    first = await agent.run("hi", session="s")
    assert (await agent.resume("s")).pending == first.pending
    assert kit.effects.read() == ["call_1"]

    async def someone(question: Any) -> Answer:
        return Answer("Bob")

    later = bot(kit, ["done"], asking(kit, replay="safe"), asks=someone)
    result = await later.resume("s")
    assert result.tool_calls[0].text == "Bob is Bob"


async def test_a_tool_that_cannot_run_again_is_told_that_nobody_is_there(
    kit: Kit,
) -> None:
    agent = bot(kit, [call("survey"), "done"], asking(kit))
    result = await agent.run("hi", session="s")

    assert result.output == "done"
    assert "only a tool declared replay='safe'" in result.tool_calls[0].text


async def test_in_a_parallel_batch_one_question_and_one_approval_wait_together(
    kit: Kit,
) -> None:
    survey = asking(kit, replay="safe", parallel=True)
    calls = [call("par"), call("survey"), call("pay", amount=1)]
    agent = bot(kit, [calls, "done"], survey)
    first = await agent.run("hi", session="s")
    assert first.stop.reason == "approval"
    assert sorted(p.id for p in first.pending) == ["call_2", "call_3"]

    decided: dict[str, Decision] = {"call_2": Answer("Ann"), "call_3": Approve()}
    second = await agent.resume("s", decisions=decided)
    assert [p.id for p in second.pending] == ["call_2"]
    result = await agent.resume("s", decisions={"call_2": Answer("7")})
    assert [c.text for c in result.tool_calls] == ["par ", "Ann is 7", "paid 1"]


async def test_words_instead_of_an_answer_stop_the_tool_that_asked(kit: Kit) -> None:
    agent = bot(kit, [call("survey"), "done"], asking(kit, replay="safe"))
    await agent.run("hi", session="s")
    result = await agent.run("forget it", session="s")

    assert result.output == "done"
    assert await kit.outcomes() == ["call_1 cancelled/none"]
