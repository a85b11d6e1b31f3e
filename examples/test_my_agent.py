"""Unit tests of an agent: no network, no key, milliseconds.

pytest examples/test_my_agent.py
"""

from agentcore.testing import ScriptedModel, call
from examples import first_agent


def test_the_agent_answers_with_the_weather() -> None:
    model = ScriptedModel([call("get_weather", city="Paris"), "It is sunny."])

    result = first_agent.agent.with_(model=model).run_sync("Weather in Paris?")

    assert result.output == "It is sunny."
    assert [c.name for c in result.tool_calls] == ["get_weather"]
    assert result.tool_calls[0].text == "Sunny in Paris, 24 degrees."
    model.assert_exhausted()


def test_the_model_is_told_how_a_wrong_call_has_to_look() -> None:
    model = ScriptedModel([call("get_weather", town="Paris"), "Which city?"])

    result = first_agent.agent.with_(model=model).run_sync("Weather?")

    assert result.tool_calls[0].status == "invalid_args"
    assert "city" in result.tool_calls[0].text
    assert result.stop.status == "completed"


async def test_the_model_sees_the_instructions_and_the_tool() -> None:
    model = ScriptedModel(["Hello."])

    await first_agent.agent.with_(model=model).run("Hello!")

    (request,) = model.requests
    assert request.instructions == "Answer briefly."
    assert [spec.name for spec in request.tools] == ["get_weather"]
