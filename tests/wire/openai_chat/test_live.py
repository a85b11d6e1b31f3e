"""Against a real model: llama.cpp's own server with the embedded weights."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcore.errors import BadRequest, ContextOverflow, ProviderError
from agentcore.providers.local import (
    MODEL_ID,
    LocalModelError,
    LocalServer,
    ServerLimits,
    find_or_download_weights,
    qwen_template,
)
from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.types.content import TextPart, ToolCallPart, ToolResultPart
from agentcore.types.messages import AssistantMessage, Message, ToolMessage, user_text
from agentcore.types.model import (
    ModelDelta,
    ModelRequest,
    ModelResponse,
    OutputSchema,
    ResponseDone,
    TextDelta,
)
from agentcore.types.options import Options
from agentcore.types.tools import ToolSpec

pytestmark = pytest.mark.live

WEATHER = ToolSpec(
    "get_weather",
    "Get the current weather for a city",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "City name"}},
        "required": ["city"],
    },
)
ASKED = user_text("What is the weather in Paris?")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    try:
        weights: Path = find_or_download_weights()
    except LocalModelError as error:
        pytest.skip(f"the weights of the local model cannot be had: {error}")
    log = tmp_path_factory.mktemp("live") / "server.log"
    limits = ServerLimits(context=2048)
    with LocalServer(
        weights, template=qwen_template(), limits=limits, log=log
    ) as running:
        yield running


def model_of(server: LocalServer, **settings: Any) -> OpenAIChatModel:
    return OpenAIChatModel(
        MODEL_ID, base_url=server.base_url, provider="llamacpp", **settings
    )


async def ask(
    model: OpenAIChatModel, request: ModelRequest
) -> tuple[list[ModelDelta], ModelResponse]:
    async with model.stream(request) as deltas:
        seen = [delta async for delta in deltas]
    last = seen.pop()
    assert isinstance(last, ResponseDone)
    return seen, last.response


async def test_a_real_model_streams_text_and_counts_its_tokens(
    server: LocalServer,
) -> None:
    options = Options(max_tokens=16)
    request = ModelRequest([user_text("Say hi")], options=options)
    seen, response = await ask(model_of(server), request)
    assert {type(delta) for delta in seen} == {TextDelta}
    assert response.text
    assert response.finish in ("stop", "length")
    assert response.usage is not None
    assert response.usage.input_tokens
    assert response.usage.output_tokens
    assert response.model


async def test_a_real_model_calls_a_tool_and_reads_its_result(
    server: LocalServer,
) -> None:
    options = Options(tool_choice="required", max_tokens=64)
    async with model_of(server) as model:
        _, response = await ask(
            model, ModelRequest([ASKED], tools=(WEATHER,), options=options)
        )
        [call] = response.tool_calls
        assert response.finish == "tool_calls"
        assert json.loads(call.arguments)["city"] == "Paris"
        planned = ToolCallPart(
            call.name, call.arguments, "call_host_1", call.provider_call_id
        )
        result = ToolResultPart(
            "call_host_1", call.name, (TextPart('{"temp_c": 21, "sky": "sunny"}'),)
        )
        history: list[Message] = [
            ASKED,
            AssistantMessage((planned,)),
            ToolMessage((result,)),
        ]
        _, answer = await ask(
            model,
            ModelRequest(history, tools=(WEATHER,), options=Options(max_tokens=64)),
        )
    assert answer.text.strip()
    assert not answer.tool_calls


async def test_a_real_server_follows_a_schema(server: LocalServer) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
        "required": ["city", "country"],
        "additionalProperties": False,
    }
    request = ModelRequest(
        [user_text("Give a city and its country as JSON.")],
        output=OutputSchema("place", schema),
        options=Options(max_tokens=80),
    )
    _, response = await ask(model_of(server), request)
    assert json.loads(response.text).keys() == {"city", "country"}


async def test_a_real_full_context_is_an_overflow(server: LocalServer) -> None:
    request = ModelRequest([user_text("word " * 4000)])
    with pytest.raises(ContextOverflow) as caught:
        await ask(model_of(server), request)
    assert caught.value.status == 400
    assert not caught.value.retryable


async def test_history_with_broken_arguments_is_taken_by_a_real_server(
    server: LocalServer,
) -> None:
    broken = ToolCallPart("get_weather", '{"city": "Par', "call_1")
    result = ToolResultPart(
        "call_1", "get_weather", (TextPart("invalid JSON"),), "invalid_args"
    )
    history: list[Message] = [
        ASKED,
        AssistantMessage((broken,)),
        ToolMessage((result,)),
    ]
    options = Options(max_tokens=8)
    _, response = await ask(model_of(server), ModelRequest(history, options=options))
    assert response.content


async def test_leaving_a_real_stream_early_frees_the_server(
    server: LocalServer,
) -> None:
    long = ModelRequest(
        [user_text("Count from 1 to 500.")], options=Options(max_tokens=1500)
    )
    short = ModelRequest([user_text("Say hi")], options=Options(max_tokens=4))
    async with model_of(server, http_timeout=30) as model:
        async with model.stream(long) as deltas:
            await anext(deltas)
        # The server serves one at a time: this returns only if the first has ended.
        assert (await ask(model, short))[1].content


async def test_a_real_refusal_of_a_request_is_told(server: LocalServer) -> None:
    options = Options(provider={"llamacpp": {"max_tokens": "many"}})
    with pytest.raises(ProviderError) as caught:
        await ask(model_of(server), ModelRequest([ASKED], options=options))
    assert not isinstance(caught.value, BadRequest) or not caught.value.retryable
