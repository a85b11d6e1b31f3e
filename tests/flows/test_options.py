"""Per-run options and bad input: each does one thing, each mistake is named at once."""

from typing import Any

import pytest
from tests.flows.kit import Kit, shown

from agentcore import ToolLoopAgent, tool
from agentcore.errors import ConfigError, SessionNotFound
from agentcore.testing import FakeExecutor, ScriptedModel, call
from agentcore.types import records as r
from agentcore.types.actor import Actor
from agentcore.types.options import UNSET, NamedTool, Options
from agentcore.types.policy import Budget
from agentcore.types.runs import SessionQuery
from agentcore.types.tools import OUTPUT_TOOL


async def test_a_filter_narrows_the_tools_of_its_run_only(kit: Kit) -> None:
    agent = kit.agent(["one", "two"])
    await agent.run("a", session="s", tools_filter=["rw", "ro"])
    await agent.run("b", session="s")

    names = [[spec.name for spec in request.tools] for request in kit.requests()]
    assert sorted(names[0]) == ["ro", "rw"]
    assert len(names[1]) == 5


async def test_a_filter_that_names_what_nobody_offers_ends_the_run_unasked(
    kit: Kit,
) -> None:
    agent = kit.agent(["never"], tools=[kit.ro, kit.rw])
    names = ["ro", "mail", "find"]
    result = await agent.run("a", session="s", tools_filter=names)

    assert (result.stop.status, result.stop.reason) == ("failed", "config")
    assert result.stop.detail == (
        "tools_filter names 'find', 'mail', which nobody offers; the tools are: ro, rw"
    )
    assert kit.requests() == []
    assert not any(line.startswith("model.") for line in await kit.lines())


async def test_a_filter_where_there_are_no_tools_says_so(kit: Kit) -> None:
    agent = kit.agent(["never"], tools=[])
    result = await agent.run("a", session="s", tools_filter=["ro"])

    assert result.stop.reason == "config"
    assert result.stop.detail.endswith("the tools are: none")


async def test_a_filter_may_name_the_output_tool_which_is_always_there(
    kit: Kit,
) -> None:
    answer = call(OUTPUT_TOOL, value=7)
    agent = kit.agent([answer, answer], output_type=int)
    for names in (["ro", OUTPUT_TOOL], ["ro"]):
        result = await agent.run("a", session="s", tools_filter=names)
        assert result.output == 7

    for request in kit.requests():
        assert [spec.name for spec in request.tools] == ["ro", OUTPUT_TOOL]


async def test_an_empty_filter_offers_nothing(kit: Kit) -> None:
    agent = kit.agent([call("ro"), "ok"])
    await agent.run("a", session="s", tools_filter=[])

    assert kit.requests()[0].tools == ()
    assert await kit.outcomes() == ["call_1 unavailable/none"]


async def test_tools_are_put_on_record_once_a_change(kit: Kit) -> None:
    agent = kit.agent(["a", "b", "c", "d"])
    for options in ({}, {}, {"tools_filter": ["ro"]}, {}):
        await agent.run("hi", session="s", **options)  # type: ignore[arg-type]

    advertised = [
        len(stored.record.specs)
        for stored in await kit.records()
        if isinstance(stored.record, r.ToolsAdvertised)
    ]
    assert advertised == [5, 1, 5]


async def test_without_history_a_run_shows_only_its_own_messages(kit: Kit) -> None:
    agent = kit.agent(["one", call("ro"), "two", "three"])
    await agent.run("a", session="s")
    await agent.run("b", session="s", history="none")
    await agent.run("c", session="s")

    assert shown(kit.requests()[1].messages) == ["user b"]
    assert shown(kit.requests()[2].messages) == [
        "user b",
        "assistant  [call_1]",
        "tool call_1=ok",
    ]
    assert shown(kit.requests()[3].messages)[0] == "user a"


async def test_an_ephemeral_run_leaves_nothing_in_the_store(kit: Kit) -> None:
    agent = kit.agent([call("ro"), "ok"])
    result = await agent.run("hi", ephemeral=True)

    assert result.output == "ok"
    assert len(result.messages) == 4
    assert await kit.store.sessions(SessionQuery()) == []


async def test_an_ephemeral_run_has_no_place_in_a_session(kit: Kit) -> None:
    with pytest.raises(ConfigError, match="leave session= out"):
        await kit.agent(["never"]).run("hi", session="s", ephemeral=True)
    assert kit.requests() == []


async def test_without_a_store_every_run_is_a_conversation_of_its_own(kit: Kit) -> None:
    agent = kit.agent([call("ro"), "one", "two"], store=None)
    first = await agent.run("a")
    second = await agent.run("b")

    assert first.output == "one"
    assert shown(second.messages) == ["user b", "assistant two"]


async def test_naming_a_session_without_a_store_is_refused(kit: Kit) -> None:
    agent = kit.agent(["never"], store=None)
    with pytest.raises(ConfigError, match=r"session='s' needs an agent with a store"):
        await agent.run("a", session="s")
    assert kit.requests() == []


async def test_options_of_a_run_lie_over_the_agents(kit: Kit) -> None:
    agent = kit.agent(["a", "b"], options=Options(temperature=0.1, max_tokens=5))
    await agent.run("hi", session="s", options=Options(temperature=0.9))
    await agent.run("hi", session="s")

    first, second = (request.options for request in kit.requests())
    assert (first.temperature, first.max_tokens) == (0.9, 5)
    assert (second.temperature, second.seed) == (0.1, UNSET)


@pytest.mark.parametrize("choice", ["required", NamedTool("ro")])
async def test_a_forced_call_is_forced_once(kit: Kit, choice: Any) -> None:
    agent = kit.agent([call("ro"), "ok"], options=Options(tool_choice=choice))
    await agent.run("hi", session="s")

    assert [q.options.tool_choice for q in kit.requests()] == [choice, "auto"]


async def test_instructions_reach_every_request_and_no_record(kit: Kit) -> None:
    agent = kit.agent([call("ro"), "ok"], instructions="Be brief.")
    result = await agent.run("hi", session="s")

    assert {request.instructions for request in kit.requests()} == {"Be brief."}
    assert "Be brief." not in str(result.messages)


async def test_a_changed_copy_leaves_the_agent_as_it_is(kit: Kit) -> None:
    agent = kit.agent(["one"], name="a")
    other = agent.with_(name="b", instructions="Other.")

    assert (agent.name, agent.instructions) == ("a", "")
    assert (other.name, other.instructions) == ("b", "Other.")
    assert (await other.run("hi", session="s")).output == "one"


# --- bad input ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tools": "ro"}, "tools must be a list"),
        ({"tools": [1]}, "tools"),
        ({"tools": None}, "tools must be a list"),
        ({"name": 1}, "ToolLoopAgent.name must be str"),
        ({"instructions": None}, "ToolLoopAgent.instructions must be str"),
        ({"options": {"temperature": 1}}, "ToolLoopAgent.options must be Options"),
        ({"budget": 5}, "ToolLoopAgent.budget must be Budget"),
        ({"store": object()}, "ToolLoopAgent.store has no method"),
        ({"executor": "mcp"}, "ToolLoopAgent.executor has no method"),
        ({"permissions": lambda call: True}, "ToolLoopAgent.permissions has no method"),
        ({"clock": 5}, "ToolLoopAgent.clock has no method"),
        ({"asks": "always"}, "asks must be"),
        ({"asks": 5}, "asks must be"),
        ({"output_mode": "json", "output_type": int}, "output_mode"),
        ({"output_retries": -1}, "output_retries"),
        ({"output_retries": "many"}, "output_retries"),
        ({"ask_timeout": 0}, "ask_timeout"),
        ({"sinks": [object()]}, "sinks"),
        ({"sinks": 5}, "sinks"),
        ({"retry": 3}, "ToolLoopAgent.retry"),
    ],
    ids=str,
)
async def test_a_wrong_setting_is_named_at_construction(
    kit: Kit, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        kit.agent(["never"], **settings)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-5", "gpt-5"),
        ("nobody:model", "nobody"),
        ("", "model"),
        (None, "model must be"),
        (5, "model must be"),
        (ScriptedModel, "model must be"),
    ],
    ids=str,
)
def test_a_model_nobody_knows_is_refused_at_construction(
    model: Any, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ToolLoopAgent(model)


def test_two_tools_of_one_name_are_refused_and_both_named() -> None:
    @tool(name="same")
    async def one() -> str:
        """One."""
        return ""

    @tool(name="same")
    async def other() -> str:
        """Other."""
        return ""

    with pytest.raises(ConfigError, match="two tools are named 'same'"):
        ToolLoopAgent(ScriptedModel([]), tools=[one, other])


async def test_two_sources_of_one_tool_fail_the_run_before_any_request(
    kit: Kit,
) -> None:
    agent = kit.agent(["never"], executor=FakeExecutor({"ro": "x"}))
    result = await agent.run("hi", session="s")

    assert (result.stop.status, result.stop.reason) == ("failed", "config")
    assert "'ro'" in result.stop.detail
    assert kit.requests() == []


def test_a_tool_without_a_description_is_refused_with_the_fix() -> None:
    async def mute(text: str) -> str:
        return text

    with pytest.raises(ConfigError, match="mute"):
        ToolLoopAgent(ScriptedModel([]), tools=[mute])


def test_the_name_of_the_output_tool_is_reserved() -> None:
    @tool(name="final_result")
    async def mine() -> str:
        """Mine."""
        return ""

    with pytest.raises(ConfigError, match="final_result"):
        ToolLoopAgent(ScriptedModel([]), tools=[mine])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": 1}, "unknown run option 'temperature'"),
        ({"tools": []}, "unknown run option 'tools'"),
        ({"timeout": 0}, "timeout must be"),
        ({"timeout": "5"}, "timeout must be"),
        ({"timeout": True}, "timeout must be"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"budget": {"turns": 1}}, "budget must be a Budget"),
        ({"options": {}}, "options must be an Options"),
        ({"tools_filter": "ro"}, "tools_filter must be"),
        ({"tools_filter": [1]}, "tools_filter must be"),
        ({"tools_filter": 5}, "tools_filter must be"),
        ({"history": "some"}, "history must be"),
        ({"ephemeral": 1}, "ephemeral must be"),
        ({"actor": "ann"}, "actor must be an Actor"),
        ({"traceparent": 5}, "traceparent must be"),
        ({"asks": "maybe"}, "asks must be"),
    ],
    ids=str,
)
async def test_a_wrong_run_option_is_named_before_anything_is_stored(
    kit: Kit, options: dict[str, Any], words: str
) -> None:
    agent = kit.agent(["never"])
    with pytest.raises(ConfigError, match=words):
        agent.start("hi", session="s", **options)
    with pytest.raises(ConfigError, match=words):
        await agent.run("hi", session="s", **options)

    assert await kit.store.sessions(SessionQuery()) == []
    assert kit.requests() == []


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 200, 5, "a\0b"])
@pytest.mark.parametrize("what", ["session", "input_id"])
async def test_an_id_no_store_could_keep_is_refused(
    kit: Kit, name: Any, what: str
) -> None:
    ids: dict[str, Any] = {"session": "s", "input_id": "i", what: name}
    agent = kit.agent(["never"])
    with pytest.raises(ConfigError, match=what):
        await agent.run("hi", **ids)
    if name != "":
        with pytest.raises(ConfigError, match=what):
            await agent.submit("hi", **ids)

    assert await kit.store.sessions(SessionQuery()) == []


@pytest.mark.parametrize(
    "prompt", [None, 5, b"hi", {"text": "hi"}, [None], [5], object()]
)
async def test_what_is_no_message_is_refused(kit: Kit, prompt: Any) -> None:
    with pytest.raises(ConfigError, match="message"):
        await kit.agent(["never"]).run(prompt, session="s")

    assert await kit.store.sessions(SessionQuery()) == []


async def test_a_delivery_there_is_not_is_refused(kit: Kit) -> None:
    with pytest.raises(ConfigError, match="delivery"):
        await kit.agent([]).submit("hi", session="s", delivery="later")  # type: ignore[arg-type]


async def test_doors_to_sessions_need_a_store(kit: Kit) -> None:
    agent = kit.agent([], store=None)
    with pytest.raises(ConfigError, match="store"):
        await agent.submit("hi", session="s")
    with pytest.raises(ConfigError, match="store"):
        await agent.cancel(session="s")
    with pytest.raises(ConfigError, match="store"):
        await agent.release("s")
    with pytest.raises(ConfigError, match="store"):
        await agent.withdraw("s", "i")


async def test_doors_to_a_session_there_is_not_say_so(kit: Kit) -> None:
    agent = kit.agent([])
    with pytest.raises(SessionNotFound):
        await agent.cancel(session="s")
    with pytest.raises(SessionNotFound):
        await agent.release("s")
    with pytest.raises(SessionNotFound):
        await agent.withdraw("s", "i")


@pytest.mark.parametrize("name", ["tool", "modle", "temperature"])
async def test_a_copy_with_a_setting_there_is_not_is_refused(
    kit: Kit, name: str
) -> None:
    with pytest.raises(ConfigError, match=f"no setting '{name}'"):
        kit.agent([]).with_(**{name: 1})


def test_an_agent_cannot_be_changed() -> None:
    agent = ToolLoopAgent(ScriptedModel([]))
    with pytest.raises(AttributeError):
        agent.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("limit", [-1, "5", True])
def test_a_limit_that_is_no_number_is_refused(limit: Any) -> None:
    with pytest.raises(ConfigError, match=r"Budget\.turns"):
        Budget(turns=limit)


def test_an_actor_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="user_id"):
        Actor("")
