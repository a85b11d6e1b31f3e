"""The fake executor comes to what the test says, and logs what reached it."""

from typing import Any, NoReturn

import anyio
import pytest
from typing_extensions import override

from agentcore.errors import ConfigError, NotFound, Retryable, Unavailable
from agentcore.protocols.tools import ToolExecutor
from agentcore.testing import FakeClock, FakeExecutor, Gate, in_turn, tool_spec
from agentcore.types.content import TextPart
from agentcore.types.context import ToolContext
from agentcore.types.tools import ToolCall, ToolResult


class NoContext(ToolContext[Any]):
    """A fake executor never looks at the context."""

    @override
    def __init__(self) -> None:
        pass


async def run(executor: FakeExecutor, name: str, **arguments: object) -> ToolResult:
    return await executor.execute(ToolCall("call_1", name, arguments), NoContext())


def fails(call: ToolCall) -> NoReturn:
    raise Retryable(f"not {call.name}")


async def by_argument(call: ToolCall) -> str:
    await anyio.lowlevel.checkpoint()
    return f"{call.arguments['city']} is sunny"


async def test_a_text_is_the_result() -> None:
    assert await run(FakeExecutor({"a": "sunny"}), "a") == ToolResult.of_text("sunny")


async def test_a_value_is_shown_as_json_and_kept() -> None:
    result = await run(FakeExecutor({"a": {"degrees": [21]}}), "a")

    assert result.text == '{"degrees": [21]}'
    assert result.structured == {"degrees": [21]}


async def test_a_result_is_handed_out_as_it_is() -> None:
    result = ToolResult((TextPart("x"),), "error", "unknown")

    assert await run(FakeExecutor({"a": result}), "a") is result


async def test_a_function_sees_the_call() -> None:
    executor = FakeExecutor({"a": by_argument, "b": lambda call: {"id": call.id}})

    assert (await run(executor, "a", city="Paris")).text == "Paris is sunny"
    assert (await run(executor, "b")).structured == {"id": "call_1"}


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(Unavailable("gone"), Unavailable), (OSError, OSError), (fails, Retryable)],
)
async def test_an_error_is_raised(outcome: object, error: type[Exception]) -> None:
    executor = FakeExecutor({"a": outcome})

    with pytest.raises(error):
        await run(executor, "a")

    assert [c.name for c in executor.finished] == ["a"]


async def test_outcomes_in_turn_end_with_the_last_one() -> None:
    executor = FakeExecutor({"a": in_turn(Unavailable, "second", "last")})

    with pytest.raises(Unavailable, match="fake Unavailable"):
        await run(executor, "a")
    texts = [(await run(executor, "a")).text for _ in range(3)]

    assert texts == ["second", "last", "last"]


def test_outcomes_in_turn_need_one() -> None:
    with pytest.raises(ConfigError):
        in_turn()


async def test_an_unknown_tool_is_not_found_and_not_logged() -> None:
    executor = FakeExecutor({})

    with pytest.raises(NotFound):
        await run(executor, "a")

    assert executor.calls == []


async def test_calls_are_logged_in_order_of_start_and_of_end() -> None:
    gate = Gate()
    executor = FakeExecutor({"slow": "s", "fast": "f"}, gates={"slow": gate})

    async with anyio.create_task_group() as group:
        group.start_soon(run, executor, "slow")
        await gate.reached()
        assert (await run(executor, "fast")).text == "f"
        assert executor.running == 1
        gate.open()

    assert [c.name for c in executor.calls] == ["slow", "fast"]
    assert [c.name for c in executor.finished] == ["fast", "slow"]
    assert (executor.running, executor.peak) == (0, 2)


async def test_a_cancelled_call_started_and_never_finished() -> None:
    gate = Gate()
    executor = FakeExecutor({"slow": "s"}, gates={"slow": gate})

    async with anyio.create_task_group() as group:
        group.start_soon(run, executor, "slow")
        await gate.reached()
        group.cancel_scope.cancel()

    assert (len(executor.calls), executor.finished, executor.running) == (1, [], 0)


async def test_a_call_takes_its_time_on_the_clock() -> None:
    clock = FakeClock(autojump=True)
    executor = FakeExecutor({"slow": "s"}, delays={"slow": 90}, clock=clock)

    await run(executor, "slow")

    assert clock.monotonic() == 90


async def test_offline_nothing_can_be_told_or_run() -> None:
    executor = FakeExecutor({"a": "x"})
    executor.online = False

    with pytest.raises(Unavailable):
        await executor.list_tools()
    with pytest.raises(Unavailable):
        await run(executor, "a")

    assert executor.calls == []


async def test_it_is_an_executor_that_counts_who_holds_it() -> None:
    executor = FakeExecutor({})
    as_protocol: ToolExecutor = executor

    async with as_protocol, executor as same:
        assert same is executor
        assert executor.entered == 2

    assert executor.entered == 0


async def test_it_offers_the_given_specs_and_cautious_ones_for_the_rest() -> None:
    reader = tool_spec("b", {"path": "string"}, effects="none", replay="safe")
    executor = FakeExecutor({"a": "x", "b": "y"}, specs=[reader])

    a, b = await executor.list_tools()

    assert (a.name, a.effects, a.replay) == ("a", "external", "never")
    assert b is reader


def test_a_spec_without_an_outcome_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="no outcome for a"):
        FakeExecutor({}, specs=[tool_spec("a")])


def test_a_spec_in_short_requires_every_parameter_it_names() -> None:
    colour = {"enum": ["red", "blue"]}

    spec = tool_spec("a", {"n": "integer", "colour": colour}, description="Paints.")

    assert spec.description == "Paints."
    assert spec.parameters == {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "colour": colour},
        "required": ["n", "colour"],
        "additionalProperties": False,
    }
    assert tool_spec("b").parameters == {"type": "object"}
