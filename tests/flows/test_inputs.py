"""What users say: durable, in order, once; steering an open run or following it."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit, shown

from agentcore.errors import AuthFailed, ConfigError, InputConflict
from agentcore.testing import FunctionModel, Gate, ScriptedModel, call, step
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.content import FilePart, ImagePart, TextPart
from agentcore.types.messages import UserMessage, user_text
from agentcore.types.model import ModelCapabilities

SCENARIO = pytest.mark.scenario


@SCENARIO("run-13")
async def test_an_id_used_again_for_something_else_is_a_conflict(kit: Kit) -> None:
    agent = kit.agent(["ok"])
    await agent.submit("one", session="s", input_id="i1")

    with pytest.raises(InputConflict, match="i1"):
        await agent.submit("two", session="s", input_id="i1")
    with pytest.raises(InputConflict, match="i1"):
        await agent.run("two", session="s", input_id="i1")
    await agent.resume("s")
    assert shown(kit.requests()[0].messages) == ["user one"]


async def test_an_input_sent_twice_is_one_input(kit: Kit) -> None:
    agent = kit.agent(["ok"])
    first = await agent.submit("one", session="s", input_id="i1")
    second = await agent.submit("one", session="s", input_id="i1")
    result = await agent.run("one", session="s", input_id="i1")

    assert (second.position, second.duplicate) == (first.position, True)
    assert result.output == "ok"
    assert shown(kit.requests()[0].messages) == ["user one"]


@pytest.mark.parametrize("runs_since", [0, 1, 3])
async def test_an_input_sent_again_after_its_run_gets_the_same_result(
    kit: Kit, runs_since: int
) -> None:
    agent = kit.agent(["one", *["later"] * runs_since])
    first = await agent.run("a", session="s", input_id="i1")
    for number in range(runs_since):
        await agent.run(f"more {number}", session="s")
    before = await kit.lines()

    again = await agent.run("a", session="s", input_id="i1")

    assert again.output == "one"
    assert again.run_id == first.run_id
    assert await kit.lines() == before
    assert len(kit.requests()) == 1 + runs_since


@SCENARIO("run-14")
async def test_the_same_text_with_two_ids_is_said_twice(kit: Kit) -> None:
    agent = kit.agent(["one", "two"])
    await agent.submit("yes", session="s", input_id="i1")
    await agent.submit("yes", session="s", input_id="i2")
    await agent.resume("s")

    assert shown(kit.requests()[-1].messages) == [
        "user yes",
        "assistant one",
        "user yes",
    ]


@SCENARIO("run-15")
async def test_steers_wait_for_the_whole_batch_and_keep_their_order(
    kit: Kit,
) -> None:
    gate = kit.gate("b")
    calls = [call("rw", text=text) for text in "abc"]
    async with kit.agent([calls, "done"]).start("hi", session="s") as run:
        await gate.reached()
        for name in ("s1", "s2", "s3"):
            await run.steer(name, input_id=name)
        gate.open()
        await run.result()

    assert kit.effects.read() == ["call_1", "call_2", "call_3"]
    assert shown(kit.requests()[1].messages)[-3:] == ["user s1", "user s2", "user s3"]


@SCENARIO("run-16")
async def test_each_follow_up_is_a_run_of_its_own(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("one", gate=gate), "two", "three"])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        await run.follow_up("f1", input_id="f1")
        await run.follow_up("f2", input_id="f2")
        gate.open()
        assert (await run.result()).output == "one"

    assert await kit.lines() == [
        "input.accepted i1",
        "run.started",
        "input.placed i1",
        "model.intent",
        "model.outcome ok",
        "input.accepted f1",
        "input.accepted f2",
        "run.ended completed/final",
        "run.started",
        "input.placed f1",
        "model.intent",
        "model.outcome ok",
        "run.ended completed/final",
        "run.started",
        "input.placed f2",
        "model.intent",
        "model.outcome ok",
        "run.ended completed/final",
    ]
    ends = [
        [record.kind for record in batch][-3:]
        for batch in kit.store.appends
        if any(type(record) is r.RunEnded for record in batch)
    ]
    successor = ["run.ended", "run.started", "input.placed"]
    assert ends[:2] == [successor, successor]


@SCENARIO("run-17")
async def test_a_steer_joins_the_run_and_an_earlier_follow_up_comes_after_it(
    kit: Kit,
) -> None:
    gate = Gate()
    agent = kit.agent([step("early", gate=gate), "with s", "with f"])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        await run.follow_up("f", input_id="f")
        await run.steer("s", input_id="s1")
        gate.open()
        assert (await run.result()).output == "with s"

    assert shown(kit.requests()[1].messages)[-1] == "user s"
    assert shown(kit.requests()[2].messages)[-1] == "user f"
    ends = [line for line in await kit.lines() if line.startswith("run.ended")]
    assert len(ends) == 2


@SCENARIO("run-18")
async def test_what_was_taken_back_is_never_shown_to_the_model(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("one", gate=gate)])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        await run.steer("s", input_id="s1")
        await agent.withdraw("s", "s1")
        with pytest.raises(InputConflict):
            await agent.withdraw("s", "i1")
        gate.open()
        assert (await run.result()).output == "one"

    assert len(kit.requests()) == 1
    assert "input.withdrawn s1" in await kit.lines()


@SCENARIO("run-23")
async def test_a_failed_run_starts_nothing_by_itself(kit: Kit) -> None:
    gate = Gate()
    broken = step(raise_=AuthFailed("no key"), gate=gate)
    agent = kit.agent([broken, "served"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.follow_up("f1", input_id="f1")
        gate.open()
        result = await run.result()
    assert (result.stop.status, result.stop.reason) == ("failed", "auth")
    assert len(kit.requests()) == 1
    assert "input.placed f1" not in await kit.lines()

    resumed = await agent.resume("s")
    assert resumed.output == "served"
    assert "input.placed f1" in await kit.lines()


async def test_steers_that_waited_for_a_run_start_it_together(kit: Kit) -> None:
    agent = kit.agent(["both", "last"])
    await agent.submit("f", session="s", input_id="f")
    await agent.submit("s1", session="s", input_id="s1", delivery="steer")
    await agent.submit("s2", session="s", input_id="s2", delivery="steer")
    await agent.resume("s")

    assert shown(kit.requests()[0].messages) == ["user s1", "user s2"]
    assert shown(kit.requests()[1].messages)[-1] == "user f"


async def test_a_steer_in_the_last_moment_is_not_left_behind(kit: Kit) -> None:
    # Between the decision to finish and the append that holds the end.
    gate = kit.store.stop(r.RunEnded)
    agent = kit.agent(["early", "with s"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.steer("s", input_id="s1")
        gate.open()
        assert (await run.result()).output == "with s"

    assert shown(kit.requests()[1].messages)[-1] == "user s"


@SCENARIO("run-26")
@pytest.mark.parametrize(
    "nothing", ["", "  \n", [], [""], [TextPart(" ")], UserMessage(())]
)
async def test_an_empty_message_is_refused_before_anything_is_stored(
    kit: Kit, nothing: Any
) -> None:
    agent = kit.agent(["never"])
    for attempt in (
        lambda: agent.submit(nothing, session="s"),
        lambda: agent.run(nothing, session="s"),
    ):
        with pytest.raises(ConfigError, match="message is empty"):
            await attempt()
    assert kit.requests() == []


@pytest.mark.parametrize(
    "prompt",
    [
        "hi",
        ["hi"],
        [TextPart("hi")],
        UserMessage((TextPart("hi"),)),
        user_text("hi"),
    ],
    ids=["str", "list of str", "parts", "message", "user_text"],
)
async def test_a_message_may_come_in_any_of_its_forms(kit: Kit, prompt: Any) -> None:
    await kit.agent(["ok"]).run(prompt, session="s")

    assert list(kit.requests()[0].messages) == [user_text("hi")]


async def test_attachments_reach_the_model_as_they_came(kit: Kit) -> None:
    image = ImagePart("image/png", data=b"\x89PNG\x00\xff")
    document = FilePart("a.pdf", "application/pdf", data=b"%PDF")
    agent = kit.agent(["ok"])
    await agent.run(["look", image, document], session="s")

    message = kit.requests()[0].messages[0]
    assert isinstance(message, UserMessage)
    assert message.content == (TextPart("look"), image, document)


async def test_an_attachment_alone_is_a_message(kit: Kit) -> None:
    result = await kit.agent(["ok"]).run([ImagePart("image/png", url="https://x/y")])

    assert result.output == "ok"


async def test_who_speaks_is_on_record_with_the_input(kit: Kit) -> None:
    agent = kit.agent(["ok", "ok"])
    await agent.run("hi", session="s", actor=Actor("ann"), traceparent="00-1-2-01")
    await agent.submit("and", session="s", actor=Actor("bob", group_id="g"))

    accepted = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.InputAccepted)
    ]
    assert accepted[0].actor == Actor("ann")
    assert accepted[0].traceparent == "00-1-2-01"


# --- two callers of one session -----------------------------------------------------
@SCENARIO("run-61")
async def test_a_second_caller_waits_for_the_run_that_serves_it(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("one", gate=gate), "two"])
    results: dict[str, Any] = {}

    async def ask(text: str) -> None:
        results[text] = await agent.run(text, session="s", input_id=text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "a")
        await gate.reached()
        tasks.start_soon(ask, "b")
        await anyio.wait_all_tasks_blocked()
        gate.open()

    assert results["a"].output == "one"
    assert results["b"].output == "two"
    assert shown(results["b"].messages) == [
        "user a",
        "assistant one",
        "user b",
        "assistant two",
    ]
    epochs = {stored.epoch for stored in await kit.records()}
    assert len(epochs) == 2  # the creator's 0, and one owner for both


async def test_both_callers_of_one_input_get_the_same_result(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("one", gate=gate)])
    results: list[Any] = []

    async def ask() -> None:
        results.append(await agent.run("a", session="s", input_id="i1"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await gate.reached()
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        gate.open()

    first, second = results
    assert first == second
    assert len(kit.requests()) == 1


async def test_a_second_caller_sees_events_and_may_steer_and_cancel(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "fin"])
    async with agent.start("a", session="s") as owner:
        await gate.reached()
        async with agent.start("b", session="s") as guest:
            await guest.cancel()
            assert (await owner.result()).stop.status == "cancelled"


async def test_many_callers_of_one_session_are_each_served_once(kit: Kit) -> None:
    agent = kit.agent([f"answer {number}" for number in range(8)])
    outputs: list[Any] = []

    async def ask(number: int) -> None:
        result = await agent.run(f"{number}", session="s", input_id=f"i{number}")
        outputs.append(result.output)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(ask, number)

    assert sorted(outputs) == [f"answer {number}" for number in range(8)]
    assert (await kit.lines()).count("run.ended completed/final") == 8


async def test_when_the_owner_leaves_the_second_caller_takes_the_session_over(
    kit: Kit,
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "first done", "second done"])
    results: list[Any] = []

    async def ask() -> None:
        results.append(await agent.run("b", session="s", input_id="b"))

    with anyio.fail_after(10):
        async with (
            anyio.create_task_group() as tasks,
            agent.start("a", session="s", input_id="a"),
        ):
            await gate.reached()
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()

    assert [result.output for result in results] == ["second done"]


@SCENARIO("peers-T22")
async def test_fifty_runs_on_one_agent_never_mix_their_histories(kit: Kit) -> None:
    def answer(request: Any) -> Any:
        said = request.messages[0].text
        return f"to {said}" if len(request.messages) > 1 else call("par", text=said)

    agent = kit.agent(FunctionModel(answer))
    results: dict[int, Any] = {}

    async def ask(number: int) -> None:
        results[number] = await agent.run(f"n{number}", session=f"s{number}")

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(ask, number)

    for number, result in results.items():
        assert result.output == f"to n{number}"
        assert [c.text for c in result.tool_calls] == [f"par n{number}"]
        assert len(result.messages) == 4


async def test_a_model_that_takes_no_images_is_asked_all_the_same(kit: Kit) -> None:
    model = ScriptedModel(["ok"], capabilities=ModelCapabilities(images=False))
    result = await kit.agent(model).run([ImagePart("image/png", url="https://x")])
    assert result.stop.status in ("completed", "failed")


async def test_a_steer_said_before_the_run_began_does_not_overtake_its_input(
    kit: Kit,
) -> None:
    agent = kit.agent(["both", "later"])
    async with agent.start("first", session="s", input_id="i1") as run:
        await run.steer("and this", input_id="i2")
        assert (await run.result()).output == "both"

    assert shown(kit.requests()[0].messages) == ["user first", "user and this"]
    assert (await kit.lines()).count("run.started") == 1
