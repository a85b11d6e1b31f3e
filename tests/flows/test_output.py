"""Structured output: by a tool or as native JSON, checked, corrected, bounded."""

import json
import threading
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from tests.flows.kit import Kit, shown
from typing_extensions import TypedDict

from agentcore.errors import ConfigError, OutputInvalid
from agentcore.testing import Gate, ScriptedModel, call, call_raw, step
from agentcore.types import records as r
from agentcore.types.model import ModelCapabilities

SCENARIO = pytest.mark.scenario
OUTPUT = "final_result"


class City(BaseModel):
    """A city and its size."""

    name: str
    people: int = Field(ge=0)


@dataclass
class Point:
    x: int
    y: int


class Pair(TypedDict):
    left: str
    right: str


def native(steps: list[Any]) -> ScriptedModel:
    return ScriptedModel(steps, capabilities=ModelCapabilities(json_schema=True))


async def rejections(kit: Kit) -> list[r.OutputRejected]:
    return [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.OutputRejected)
    ]


# --- by a tool ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("output_type", "arguments", "output"),
    [
        (City, {"name": "Bern", "people": 1}, City(name="Bern", people=1)),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (Pair, {"left": "a", "right": "b"}, {"left": "a", "right": "b"}),
        (list[int], {"value": [1, 2]}, [1, 2]),
        (int, {"value": 7}, 7),
        (bool, {"value": False}, False),
        (int | None, {"value": None}, None),
        (Literal["yes", "no"], {"value": "no"}, "no"),
        (
            list[City],
            {"value": [{"name": "B", "people": 2}]},
            [City(name="B", people=2)],
        ),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (City | Point, {"value": {"x": 1, "y": 2}}, Point(1, 2)),
    ],
    ids=str,
)
async def test_the_answer_comes_through_the_output_tool(
    kit: Kit, output_type: Any, arguments: dict[str, Any], output: Any
) -> None:
    agent = kit.agent([call(OUTPUT, **arguments)], output_type=output_type)
    result = await agent.run("hi", session="s")

    assert result.output == output
    assert (result.stop.status, result.stop.reason) == ("completed", "final")
    assert result.tool_calls == ()
    [spec] = [spec for spec in kit.requests()[0].tools if spec.name == OUTPUT]
    assert spec.parameters["type"] == "object"
    assert await kit.lines() == [
        "input.accepted input_1",
        "run.started",
        "input.placed input_1",
        "model.intent",
        "model.outcome ok",
        "tool.planned call_1",
        "tool.outcome call_1 ok/none",
        "run.ended completed/final",
    ]


async def test_an_answer_that_does_not_fit_is_corrected_by_the_model(
    kit: Kit,
) -> None:
    agent = kit.agent(
        [call(OUTPUT, name="Bern", people=-1), call(OUTPUT, name="Bern", people=1)],
        output_type=City,
    )
    result = await agent.run("hi", session="s")

    assert result.output == City(name="Bern", people=1)
    [rejected] = await rejections(kit)
    assert "people" in rejected.errors
    assert shown(kit.requests()[1].messages)[-1] == "tool call_1=invalid_args"


@SCENARIO("peers-T21")
@pytest.mark.parametrize(
    "answer",
    [
        call(OUTPUT, name="Bern", people=-1),
        call_raw(OUTPUT, "{"),
        call(OUTPUT),
        step("just words"),
    ],
    ids=["invalid", "broken", "empty", "no call"],
)
async def test_an_answer_that_never_fits_is_stuck_after_four_requests_at_most(
    kit: Kit, answer: Any
) -> None:
    result = await kit.agent([answer] * 9, output_type=City).run("hi", session="s")

    assert (result.stop.status, result.stop.reason) == ("stuck", "invalid_output")
    assert len(kit.requests()) <= 4
    assert result.output is None
    last = (await rejections(kit))[-1]
    assert last.errors.splitlines()[0] in result.stop.detail


@pytest.mark.parametrize("retries", [0, 1, 5])
async def test_the_number_of_corrections_is_the_hosts_choice(
    kit: Kit, retries: int
) -> None:
    answers = [call(OUTPUT, name="Bern", people=-1 - n) for n in range(9)]
    agent = kit.agent(answers, output_type=City, output_retries=retries)
    result = await agent.run("hi", session="s")

    assert (result.stop.status, result.stop.reason) == ("stuck", "invalid_output")
    assert len(kit.requests()) == retries + 1


async def test_tools_run_before_the_answer_and_beside_it(kit: Kit) -> None:
    both = [call("rw"), call(OUTPUT, value=1)]
    result = await kit.agent([call("rw"), both], output_type=int).run("hi", session="s")

    assert result.output == 1
    assert kit.effects.read() == ["call_1", "call_2"]
    assert [c.name for c in result.tool_calls] == ["rw", "rw"]


async def test_of_two_answers_in_one_reply_the_first_counts(kit: Kit) -> None:
    both = [call(OUTPUT, value=1), call(OUTPUT, value=2)]
    result = await kit.agent([both], output_type=int).run("hi", session="s")

    assert result.output == 1
    assert await kit.outcomes() == ["call_1 ok/none", "call_2 duplicate/none"]


async def test_a_steer_after_the_answer_asks_for_another(kit: Kit) -> None:
    gate = Gate()
    early = step(calls=[call(OUTPUT, value=1)], gate=gate)
    agent = kit.agent([early, call(OUTPUT, value=2)], output_type=int)
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.steer("no, more")
        gate.open()
        assert (await run.result()).output == 2


async def test_a_second_run_of_the_session_answers_anew(kit: Kit) -> None:
    agent = kit.agent([call(OUTPUT, value=1), call(OUTPUT, value=2)], output_type=int)
    assert (await agent.run("one", session="s")).output == 1
    assert (await agent.run("two", session="s")).output == 2
    assert shown(kit.requests()[1].messages) == [
        "user one",
        "assistant  [call_1]",
        "tool call_1=ok",
        "user two",
    ]


# --- native -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("output_type", "answer", "output"),
    [
        (City, {"name": "Bern", "people": 1}, City(name="Bern", people=1)),
        (list[int], {"value": [1, 2]}, [1, 2]),
        (int, {"value": 7}, 7),
    ],
    ids=str,
)
async def test_a_native_answer_is_json_of_the_schema(
    kit: Kit, output_type: Any, answer: Any, output: Any
) -> None:
    agent = kit.agent(
        native([json.dumps(answer)]), output_type=output_type, output_mode="native"
    )
    result = await agent.run("hi", session="s")

    assert result.output == output
    request = kit.requests()[0]
    assert request.output is not None
    assert request.output.json_schema["type"] == "object"
    assert OUTPUT not in [spec.name for spec in request.tools]


@pytest.mark.parametrize("wrong", ["no json", '{"name": "Bern"}', "[]", "{"])
async def test_a_native_answer_that_does_not_fit_is_corrected(
    kit: Kit, wrong: str
) -> None:
    right = '{"name": "Bern", "people": 1}'
    agent = kit.agent(native([wrong, right]), output_type=City, output_mode="native")
    result = await agent.run("hi", session="s")

    assert result.output == City(name="Bern", people=1)
    assert shown(kit.requests()[1].messages)[-1].startswith("note ")
    assert len(await rejections(kit)) == 1


@SCENARIO("peers-T21")
async def test_a_native_answer_that_never_fits_is_stuck(kit: Kit) -> None:
    agent = kit.agent(native(["no"] * 9), output_type=City, output_mode="native")
    result = await agent.run("hi", session="s")

    assert (result.stop.status, result.stop.reason) == ("stuck", "invalid_output")
    assert len(kit.requests()) == 4


async def test_a_native_answer_cut_off_and_continued_is_judged_as_a_whole(
    kit: Kit,
) -> None:
    halves = [step('{"name": "Bern", ', finish="length"), '"people": 1}']
    agent = kit.agent(native(halves), output_type=City, output_mode="native")
    result = await agent.run("hi", session="s")

    assert result.output == City(name="Bern", people=1)
    assert await rejections(kit) == []


# --- bad types ----------------------------------------------------------------------
async def test_native_output_needs_a_model_that_follows_a_schema(kit: Kit) -> None:
    with pytest.raises(ConfigError, match="output_mode='tool'"):
        kit.agent(["x"], output_type=City, output_mode="native")


@pytest.mark.parametrize("bad", [type("Plain", (), {}), threading.Lock, Kit])
async def test_a_type_nobody_can_describe_is_refused_at_construction(
    kit: Kit, bad: Any
) -> None:
    with pytest.raises(OutputInvalid, match="output_type"):
        kit.agent(["x"], output_type=bad)
