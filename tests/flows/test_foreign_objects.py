"""Objects of the host that do not keep their contract fail alone, and in words."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, field_validator
from tests.flows.kit import Kit
from typing_extensions import override

from agentcore import (
    Allow,
    Budget,
    MemoryRunStore,
    Options,
    ToolLoopAgent,
    ToolResult,
    tool,
)
from agentcore.errors import ConfigError
from agentcore.executors import RouterExecutor
from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.testing import (
    FakeExecutor,
    FunctionModel,
    ScriptedModel,
    call,
    step,
    tool_spec,
)
from agentcore.types.content import TextPart, ToolCallPart
from agentcore.types.model import (
    ModelCapabilities,
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
)
from agentcore.types.options import NamedTool


class Policy:
    def __init__(self, verdict: Any) -> None:
        self.verdict = verdict

    def decide(self, *_: Any) -> Any:
        return self.verdict


@pytest.mark.parametrize("verdict", [None, True, "allow", Allow], ids=str)
async def test_what_is_no_verdict_forbids(kit: Kit, verdict: Any) -> None:
    agent = kit.agent([call("rw"), "ok"], permissions=Policy(verdict))
    result = await agent.run("hi", session="s")
    assert [(c.status, c.effect) for c in result.tool_calls] == [("denied", "none")]
    assert "not Allow, Forbid or Ask" in result.tool_calls[0].text


def test_an_async_policy_is_refused_at_construction() -> None:
    class Waiting:
        async def decide(self, *_: Any) -> Any: ...

    policy: Any = Waiting()
    with pytest.raises(ConfigError, match="decide"):
        ToolLoopAgent(ScriptedModel([]), permissions=policy)


ODD_RESULTS: list[Any] = [
    ToolResult(("text",)),  # type: ignore[arg-type]  # what a host may do
    ToolResult("text"),  # type: ignore[arg-type]
    ToolResult((TextPart(5),)),  # type: ignore[arg-type]
    ToolResult(status="fine"),  # type: ignore[arg-type]
    ToolResult(effect="some"),  # type: ignore[arg-type]
    ToolResult(cost_usd=-1),
    ToolResult(structured=object()),
]


@pytest.mark.parametrize("beside", [0, 1], ids=["alone", "in a batch"])
@pytest.mark.parametrize("odd", range(len(ODD_RESULTS)))
async def test_what_is_no_result_is_a_failed_call_and_the_session_lives(
    kit: Kit, odd: int, beside: int
) -> None:
    executor = FakeExecutor(
        {"far": lambda _: ODD_RESULTS[odd]}, specs=[tool_spec("far", parallel=True)]
    )
    calls = [call("far")] * (1 + beside)
    agent = kit.agent([calls, "ok", "still here"], tools=[], executor=executor)
    result = await agent.run("hi", session="s")
    assert result.output == "ok"
    assert {c.status for c in result.tool_calls} == {"error"}
    assert (await agent.run("again", session="s")).output == "still here"


class OddModel:
    id = "odd:model"
    capabilities = ModelCapabilities()

    def __init__(self, response: Any) -> None:
        self.response = response

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        async def deltas() -> AsyncIterator[ModelDelta]:
            yield ResponseDone(self.response)

        yield deltas()


@pytest.mark.parametrize(
    "response",
    [
        "text",
        ModelResponse("text"),  # type: ignore[arg-type]
        ModelResponse((1,)),  # type: ignore[arg-type]
        ModelResponse((TextPart(5),)),  # type: ignore[arg-type]
        ModelResponse((TextPart("a"),), usage=5),  # type: ignore[arg-type]
        ModelResponse((ToolCallPart("rw", {}),)),  # type: ignore[arg-type]
    ],
    ids=["str", "content", "part", "text", "usage", "arguments"],
)
async def test_what_is_no_response_fails_the_run_and_says_what_it_was(
    kit: Kit, response: Any
) -> None:
    result = await kit.agent(OddModel(response)).run("hi", session="s")
    assert (result.stop.status, result.stop.reason) == ("failed", "internal")
    assert "odd:model" in result.stop.detail


async def test_half_a_character_from_a_model_costs_no_reply(kit: Kit) -> None:
    odd = step(content=[TextPart("half \ud83d")])
    result = await kit.agent([odd]).run("hi", session="s")
    assert result.output == "half \ufffd"


async def test_a_run_that_is_done_survives_an_executor_that_does_not_close() -> None:
    class Stuck(FakeExecutor):
        @override
        async def __aexit__(self, *exc: object) -> None:
            raise OSError("no")

    executor = Stuck({"far": "ok"}, specs=[tool_spec("far")])
    agent = ToolLoopAgent(ScriptedModel([call("far"), "done"]), executor=executor)
    assert (await agent.run("hi")).output == "done"


@pytest.mark.parametrize(
    "spec",
    [
        "text",
        tool_spec("", {}),
        tool_spec("a", timeout=-1),
        tool_spec("a", output_cap=0),
    ],
    ids=["no spec", "name", "timeout", "cap"],
)
async def test_an_executors_odd_declaration_stops_the_run_before_a_request(
    kit: Kit, spec: Any
) -> None:
    class Listing(FakeExecutor):
        @override
        async def list_tools(self, context: Any = None) -> Any:
            return [spec]

    agent = kit.agent(["never"], tools=[], executor=Listing({}))
    result = await agent.run("hi", session="s")
    assert (result.stop.status, result.stop.reason) == ("failed", "config")
    assert not kit.requests()


async def test_a_store_that_cannot_release_does_not_take_the_result_away() -> None:
    class Clinging(MemoryRunStore):
        @override
        async def release(self, lease: Any) -> None:
            raise OSError("no")

    agent = ToolLoopAgent(ScriptedModel(["done"]), store=Clinging())
    with anyio.fail_after(5):
        assert (await agent.run("hi", session="s")).output == "done"


@tool(effects="none")
async def echo(text: str) -> str:
    """Say it again."""
    return text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": MemoryRunStore}, "is the class MemoryRunStore"),
        ({"retry": None}, "retry has no method"),
        ({"clock": None}, "clock has no method"),
        ({"output_type": None}, "output_type must be a type"),
        ({"output_type": "str"}, "output_type must be a type"),
        ({"output_retries": True}, "output_retries must be int"),
        ({"sinks": ""}, "sinks must be"),
    ],
    ids=str,
)
def test_more_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ToolLoopAgent(ScriptedModel([]), tools=[echo], **settings)


async def test_a_generator_of_tool_names_is_read_once(kit: Kit) -> None:
    names: Any = (name for name in ["ro"])
    await kit.agent(["ok"]).run("hi", session="s", tools_filter=names)
    assert [spec.name for spec in kit.requests()[0].tools] == ["ro"]


async def test_a_reason_to_cancel_is_on_record(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "never"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.cancel("changed my mind")
        result = await run.result()
    assert result.stop.detail == "changed my mind"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Budget(requests=1.5),  # type: ignore[arg-type]  # what a host may do
        lambda: Budget(cost_usd=float("nan")),
        lambda: Budget(wall_time=10**400),
        lambda: Budget(per_tool=5),  # type: ignore[arg-type]
        lambda: Budget(scope="day"),  # type: ignore[arg-type]
        lambda: ToolLoopAgent(ScriptedModel([]), budget=Budget(scope="session")),
        lambda: Options(temperature=float("inf")),
        lambda: Options(provider={"openai": 5}),  # type: ignore[dict-item]
        RouterExecutor,
        lambda: RouterExecutor("mcp"),  # type: ignore[arg-type]
    ],
    ids=[
        "fraction",
        "nan",
        "huge",
        "per_tool",
        "scope",
        "session",
        "inf",
        "block",
        "none",
        "str",
    ],
)
def test_a_value_that_means_nothing_is_refused_where_it_is_made(
    wrong: Callable[[], object],
) -> None:
    with pytest.raises(ConfigError):
        wrong()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"options": Options(tool_choice=NamedTool("nope"))}, "names 'nope'"),
        ({"options": Options(tool_choice="required"), "tools": []}, "no tools"),
    ],
    ids=["named", "required"],
)
async def test_a_tool_choice_that_cannot_be_kept_stops_before_a_request(
    kit: Kit, settings: dict[str, Any], words: str
) -> None:
    result = await kit.agent(["never"], **settings).run("hi", session="s")
    assert (result.stop.status, result.stop.reason) == ("failed", "config")
    assert words in result.stop.detail
    assert not kit.requests()


async def test_half_a_character_from_the_user_is_refused_before_it_is_kept(
    kit: Kit,
) -> None:
    with pytest.raises(ConfigError, match="half a character"):
        await kit.agent(["never"]).run("half \ud83d", session="s")


async def test_leaving_before_anything_began_is_a_paused_run(kit: Kit) -> None:
    async with kit.agent(["ok"]).start("hi", session="s") as run:
        pass
    result = await run.result()
    assert (result.stop.status, result.stop.reason) == ("paused", "host")


async def test_nothing_can_be_said_to_a_session_that_died_with_its_run() -> None:
    async with ToolLoopAgent(ScriptedModel(["ok"])).start("hi") as run:
        await run.result()
    with pytest.raises(ConfigError, match="store"):
        await run.follow_up("more")


def test_one_session_can_be_served_from_many_threads() -> None:
    store = MemoryRunStore()
    agent = ToolLoopAgent(FunctionModel(lambda _: "hi"), store=store)
    outputs: list[str | None] = []

    def work(number: int) -> None:
        for turn in range(5):
            said = agent.run_sync(f"{number}-{turn}", session=f"s{number % 2}")
            outputs.append(said.output)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outputs == ["hi"] * 30


@pytest.mark.parametrize("with_call", [False, True], ids=["text", "call"])
async def test_a_reply_the_vendor_withheld_is_never_an_answer(
    kit: Kit, with_call: bool
) -> None:
    calls = [call("rw")] if with_call else []
    model = [step(text="half an ans", calls=calls, finish="content_filter")]
    result = await kit.agent(model).run("hi", session="s")
    assert (result.stop.status, result.stop.reason) == ("failed", "model")
    assert "withheld" in result.stop.detail
    assert not result.tool_calls


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": 5},
        {"options": {}},
        {"http_timeout": -1},
        {"http_timeout": True},
        {"headers": "x"},
        {"api_key": ""},
        {"capabilities": 5},
    ],
    ids=str,
)
def test_a_model_names_its_wrong_setting(wrong: dict[str, Any]) -> None:
    settings = {"model": "gpt", **wrong}
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        OpenAIChatModel(settings.pop("model"), **settings)


class Picky(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def refuse(cls, value: int) -> int:
        raise KeyError(value)


async def test_a_validator_that_breaks_refuses_the_answer_and_not_the_run(
    kit: Kit,
) -> None:
    answers = [call("final_result", number=n) for n in range(4)]
    result = await kit.agent(answers, output_type=Picky).run("hi", session="s")
    assert (result.stop.status, result.stop.reason) == ("stuck", "invalid_output")
