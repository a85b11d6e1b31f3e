"""Tools: what they return, raise, exceed; what they are given."""

import asyncio
import itertools
import threading
import time
from enum import Enum
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import sniffio
from pydantic import BaseModel
from tests.flows.kit import Kit
from typing_extensions import override

from agentcore import ToolResult, tool
from agentcore.errors import (
    InvalidArguments,
    NotFound,
    Retryable,
    TimedOut,
    ToolError,
    Unavailable,
)
from agentcore.testing import FakeExecutor, call, tool_spec
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.content import FilePart, ImagePart, TextPart
from agentcore.types.context import ToolContext
from agentcore.types.messages import ToolMessage
from agentcore.types.runs import RunResult

SCENARIO = pytest.mark.scenario


class Shape(BaseModel):
    sides: int


class Colour(Enum):
    RED = "red"


async def outcome(kit: Kit) -> r.ToolOutcome:
    [found] = [
        stored.record
        for stored in await kit.records()
        if isinstance(stored.record, r.ToolOutcome)
    ]
    return found


def text_of(result: RunResult[Any]) -> str:
    return result.tool_calls[0].text


# --- what they return ---------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
        ({"a": {"b": [1]}}, '{"a":{"b":[1]}}'),
        (Shape(sides=3), '{"sides":3}'),
        (Colour.RED, '"red"'),
        ([], "[]"),
        ({}, "{}"),
    ],
    ids=str,
)
async def test_any_json_value_is_a_result(kit: Kit, value: Any, text: str) -> None:
    @tool(effects="none")
    async def give() -> Any:
        """Give."""
        return value

    result = await kit.agent([call("give"), "ok"], tools=[give]).run("hi", session="s")

    assert result.output == "ok"
    assert text_of(result) == text
    assert (await outcome(kit)).status == "ok"


async def test_parts_and_whole_results_pass_as_they_are(kit: Kit) -> None:
    image = ImagePart("image/png", data=b"\x89PNG")

    @tool(effects="none")
    async def parts() -> Any:
        """Give parts."""
        return ["see", image, FilePart("a", "text/plain", data=b"a")]

    @tool(effects="external")
    async def whole() -> ToolResult:
        """Give a result."""
        return ToolResult((TextPart("t"),), effect="none", meta={"k": 1})

    agent = kit.agent([[call("parts"), call("whole")], "ok"], tools=[parts, whole])
    result = await agent.run("hi", session="s")

    first, second = result.tool_calls
    assert first.content[1] == image
    assert (second.effect, second.meta) == ("none", {"k": 1})


@pytest.mark.parametrize("value", [b"raw", object(), float("nan"), {1, object()}])
async def test_what_cannot_be_shown_is_an_error_that_names_the_fix(
    kit: Kit, value: Any
) -> None:
    @tool
    async def give() -> Any:
        """Give."""
        return value

    result = await kit.agent([call("give"), "ok"], tools=[give]).run("hi", session="s")

    assert result.tool_calls[0].status == "error"
    assert result.tool_calls[0].effect == "done"
    assert "return a str" in text_of(result)


async def test_a_foreign_executor_that_returns_nonsense_is_told_on(kit: Kit) -> None:
    class Odd(FakeExecutor):
        @override
        async def execute(self, call: Any, context: Any) -> Any:
            return "text"

    agent = kit.agent([call("t"), "ok"], tools=[], executor=Odd({"t": "x"}))
    result = await agent.run("hi", session="s")

    assert result.tool_calls[0].status == "error"
    assert "not a ToolResult" in text_of(result)


# --- what they raise ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("error", "status", "effect"),
    [
        (ValueError("bad"), "error", "unknown"),
        (ToolError("said so"), "error", "unknown"),
        (Retryable("later"), "error", "unknown"),
        # "It never ran" is not true of a function that is running.
        (InvalidArguments("no"), "error", "unknown"),
        (NotFound("gone"), "error", "unknown"),
        (Unavailable("down"), "error", "unknown"),
        (TimedOut("slow"), "unknown", "unknown"),
        (KeyError(), "error", "unknown"),
        (RecursionError("deep"), "error", "unknown"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_a_tool_raises_the_model_is_told_and_the_run_goes_on(
    kit: Kit, error: Exception, status: str, effect: str
) -> None:
    kit.raises["a"] = error
    agent = kit.agent([call("rw", text="a"), "ok"])
    result = await agent.run("hi", session="s")

    assert result.output == "ok"
    assert await kit.outcomes() == [f"call_1 {status}/{effect}"]
    assert text_of(result)


@SCENARIO("peers-T15")
async def test_one_failing_call_costs_its_siblings_nothing(kit: Kit) -> None:
    kit.raises["b"] = RuntimeError("mine alone")
    calls = [call("parw", text=text) for text in "abc"]
    result = await kit.agent([calls, "ok"]).run("hi", session="s")

    assert [(c.status, c.text) for c in result.tool_calls] == [
        ("ok", "parw a"),
        ("error", result.tool_calls[1].text),
        ("ok", "parw c"),
    ]
    assert "mine alone" in result.tool_calls[1].text


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_fatal_error_ends_the_run_where_the_tool_says_so(
    kit: Kit, parallel: bool
) -> None:
    @tool(on_fatal="end", parallel=parallel)
    async def vital() -> str:
        """Must not fail."""
        raise ToolError("broken for good", category="fatal")

    calls = [call("vital"), call("par")]
    agent = kit.agent([calls, "never"], tools=[vital, kit.par])
    result = await agent.run("hi", session="s")

    assert (result.stop.status, result.stop.reason) == ("failed", "tool")
    assert result.stop.subjects == ("call_1",)
    assert "vital" in result.stop.detail
    assert len(kit.requests()) == 1


async def test_a_retryable_error_is_not_fatal_even_there(kit: Kit) -> None:
    @tool(on_fatal="end")
    async def flaky() -> str:
        """May fail."""
        raise Retryable("again, please")

    result = await kit.agent([call("flaky"), "ok"], tools=[flaky]).run("hi")

    assert result.output == "ok"


# --- too long, too large ------------------------------------------------------------
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize(
    ("effects", "ends"),
    [
        ("none", "error/none"),
        ("local", "unknown/unknown"),
        ("external", "unknown/unknown"),
    ],
)
async def test_a_call_that_takes_too_long_is_stopped_and_the_run_goes_on(
    kit: Kit, effects: Any, ends: str, parallel: bool
) -> None:
    @tool(effects=effects, timeout=0.03, parallel=parallel)
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return "never"

    calls = [call("hang"), call("par", text="b")]
    agent = kit.agent([calls, "ok"], tools=[hang, kit.par])
    result = await agent.run("hi", session="s")

    assert result.output == "ok"
    assert sorted(await kit.outcomes()) == [f"call_1 {ends}", "call_2 ok/none"]
    assert "0.03 s" in text_of(result)


async def test_each_of_several_calls_has_its_own_time(kit: Kit) -> None:
    @tool(effects="none", timeout=0.02, parallel=True)
    async def short() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return "never"

    @tool(effects="none", timeout=5, parallel=True)
    async def longer() -> str:
        """Take a moment."""
        await anyio.sleep(0.04)
        return "made it"

    agent = kit.agent([[call("short"), call("longer")], "ok"], tools=[short, longer])
    result = await agent.run("hi", session="s")

    assert [c.status for c in result.tool_calls] == ["error", "ok"]


async def test_a_long_result_keeps_head_and_tail_and_the_whole_by_reference(
    kit: Kit,
) -> None:
    @tool(effects="none", output_cap=100)
    async def long() -> str:
        """Say much."""
        return "a" * 500 + "z" * 500

    result = await kit.agent([call("long"), "ok"], tools=[long]).run("hi", session="s")

    record = await outcome(kit)
    assert record.full is not None
    assert await kit.store.get_blob(record.full) == (b"a" * 500 + b"z" * 500)
    message = kit.requests()[1].messages[2]
    assert isinstance(message, ToolMessage)
    said = message.results[0].text
    assert said.startswith("aaa")
    assert said.endswith("zzz")
    assert "900 of 1000 characters" in said
    assert text_of(result) == said


@pytest.mark.parametrize("size", [99, 100])
async def test_a_result_within_the_cap_is_shown_whole(kit: Kit, size: int) -> None:
    @tool(effects="none", output_cap=100)
    async def fit() -> str:
        """Fit."""
        return "x" * size

    result = await kit.agent([call("fit"), "ok"], tools=[fit]).run("hi", session="s")

    assert text_of(result) == "x" * size
    assert (await outcome(kit)).full is None


async def test_errors_are_capped_as_results_are(kit: Kit) -> None:
    @tool(effects="none", output_cap=100)
    async def shout() -> str:
        """Fail loudly."""
        raise ValueError("x" * 5000)

    result = await kit.agent([call("shout"), "ok"], tools=[shout]).run("hi")

    assert len(text_of(result)) < 250


# --- blocking tools -----------------------------------------------------------------
async def test_a_plain_function_runs_in_a_thread_and_blocks_nobody(kit: Kit) -> None:
    here = threading.get_ident()
    ticks: list[float] = []

    def block() -> bool:
        """Block."""
        time.sleep(0.05)
        return threading.get_ident() != here

    agent = kit.agent([call("block"), "ok"], tools=[block])
    async with (
        agent.start("hi", session="s") as run,
        anyio.create_task_group() as tasks,
    ):

        async def tick() -> None:
            while True:
                ticks.append(time.monotonic())
                await anyio.sleep(0.005)

        tasks.start_soon(tick)
        result = await run.result()
        tasks.cancel_scope.cancel()

    assert text_of(result) == "true"
    assert max(b - a for a, b in itertools.pairwise(ticks)) < 0.04


async def test_two_blocking_parallel_tools_overlap(kit: Kit) -> None:
    barrier = threading.Barrier(2, timeout=5)

    @tool(parallel=True, effects="none")
    def meet() -> str:
        """Wait for the other."""
        barrier.wait()
        return "met"

    result = await kit.agent([[call("meet"), call("meet")], "ok"], tools=[meet]).run(
        "hi"
    )

    assert [c.text for c in result.tool_calls] == ["met", "met"]


@SCENARIO("peers-T25")
async def test_a_blocking_tool_out_of_time_leaves_its_thread_counted(
    kit: Kit,
) -> None:
    release = threading.Event()

    @tool(timeout=0.03)
    def block() -> str:
        """Block."""
        release.wait(10)
        return "late"

    agent = kit.agent([call("block"), "ok"], tools=[block])
    result = await agent.run("hi", session="s")
    held = agent._wiring().local.held_workers
    release.set()

    assert result.output == "ok"
    assert await kit.outcomes() == ["call_1 unknown/unknown"]
    assert held == 1


# --- what they are given ------------------------------------------------------------
async def test_a_tool_is_handed_dependencies_actor_call_and_view(kit: Kit) -> None:
    seen: dict[str, Any] = {}

    @tool(effects="none")
    async def look(context: ToolContext[dict[str, int]], word: str) -> str:
        """Look around."""
        seen.update(
            deps=context.deps,
            actor=context.actor,
            call=context.call.id,
            arguments=context.call.arguments,
            session=context.view.session_id,
            usage=context.view.usage.requests,
            messages=len(context.view.messages),
        )
        blob = await context.save(b"kept", media_type="text/plain")
        return blob.hash

    agent = kit.agent([call("look", word="w"), "ok"], tools=[look])
    deps = {"a": 1}
    result = await agent.run("hi", session="s", deps=deps, actor=Actor("ann"))

    assert seen.pop("deps") is deps
    assert seen == {
        "actor": Actor("ann"),
        "call": "call_1",
        "arguments": {"word": "w"},
        "session": "s",
        "usage": 1,
        "messages": 2,
    }
    assert result.output == "ok"


async def test_tools_and_an_executor_stand_side_by_side(kit: Kit) -> None:
    executor = FakeExecutor(
        {"far": "from afar"}, specs=[tool_spec("far", {"x": "string"})]
    )
    agent = kit.agent([[call("far", x="1"), call("ro")], "ok"], executor=executor)
    result = await agent.run("hi", session="s")

    assert [c.text for c in result.tool_calls] == ["from afar", "ro "]
    assert [made.name for made in executor.calls] == ["far"]
    assert executor.entered == 0


@SCENARIO("peers-R2")
async def test_many_tools_that_finish_at_once_are_all_recorded_in_call_order(
    kit: Kit,
) -> None:
    gate = kit.gate("all")
    calls = [call("parw", text="all") for _ in range(8)]
    agent = kit.agent([calls, "ok"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await anyio.wait_all_tasks_blocked()
        assert len(kit.effects) == 8
        gate.open()
        result = await run.result()

    assert [c.id for c in result.tool_calls] == [f"call_{n}" for n in range(1, 9)]
    assert all(c.status == "ok" for c in result.tool_calls)
    assert result.usage.tool_calls == 8


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidArguments("no"), "invalid_args"),
        (NotFound("gone"), "unavailable"),
        (Unavailable("down"), "unavailable"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_executor_is_believed_when_it_says_that_a_call_never_ran(
    kit: Kit, error: Exception, status: str
) -> None:
    spec = tool_spec("far", effects="external")
    executor = FakeExecutor({"far": error}, specs=[spec])
    agent = kit.agent([call("far"), "ok"], tools=[], executor=executor)
    result = await agent.run("hi", session="s")
    assert [(c.status, c.effect) for c in result.tool_calls] == [(status, "none")]


class Unprintable(Exception):  # noqa: N818 - what it is, not what went wrong
    @override
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [Unprintable(), ToolError("half \ud800"), ValueError("half \ud800")],
    ids=lambda value: type(value).__name__,
)
async def test_an_error_whose_words_cannot_be_kept_is_still_a_result(
    kit: Kit, error: Exception
) -> None:
    kit.raises["a"] = error
    agent = kit.agent([call("rw", text="a"), "ok"])
    result = await agent.run("hi", session="s")
    assert result.output == "ok"
    assert [c.status for c in result.tool_calls] == ["error"]


@pytest.mark.parametrize("beside", [0, 1], ids=["alone", "in a batch"])
async def test_a_cancellation_a_tool_makes_up_is_a_failed_call_and_runs_once(
    kit: Kit, beside: int
) -> None:
    runs: list[str] = []

    @tool(parallel=True)
    async def made_up(name: str) -> str:
        """Raise a cancellation of its own, or not."""
        runs.append(name)
        await anyio.lowlevel.checkpoint()
        if name == "bad" and sniffio.current_async_library() == "asyncio":
            raise asyncio.CancelledError
        return name

    calls = [call("made_up", name="bad")] + [call("made_up", name="good")] * beside
    agent = kit.agent([calls, "ok"], tools=[made_up])
    result = await agent.run("hi", session="s")
    assert result.output == "ok"
    assert len(runs) == 1 + beside
    if sniffio.current_async_library() == "asyncio":
        first = result.tool_calls[0]
        assert (first.status, first.effect) == ("error", "unknown")
