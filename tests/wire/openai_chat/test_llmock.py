"""Against an independent emulator of the vendor, and every fault it can inject."""

from typing import Any

import anyio
import pytest

from agentcore.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BrokenStream,
    ContextOverflow,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerError,
    Timeout,
)
from agentcore.providers import resolve_model
from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.types.content import TextPart, ToolResultPart
from agentcore.types.messages import AssistantMessage, ToolMessage, user_text
from agentcore.types.model import (
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
    TextDelta,
)
from agentcore.types.tools import ToolSpec

LLMock = Any  # its fixture; the package has no type information

WEATHER = ToolSpec(
    "get_weather",
    "Weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
REQUEST = ModelRequest([user_text("What is the weather in Paris?")])


def model_of(llmock: LLMock, **settings: Any) -> OpenAIChatModel:
    return OpenAIChatModel(
        "gpt-5-mini", base_url=llmock.base_url("openai"), api_key="k", **settings
    )


async def ask(
    model: OpenAIChatModel, request: ModelRequest = REQUEST
) -> tuple[list[ModelDelta], ModelResponse]:
    async with model.stream(request) as deltas:
        seen = [delta async for delta in deltas]
    last = seen.pop()
    assert isinstance(last, ResponseDone)
    return seen, last.response


async def failing(llmock: LLMock, **settings: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(model_of(llmock, **settings))
    return caught.value


async def try_again(llmock: LLMock) -> None:
    """What an engine does: wait a little, then make a new attempt."""
    await anyio.sleep(0.3)
    await ask(model_of(llmock))


async def test_a_reply_is_streamed(llmock: LLMock) -> None:
    llmock.reply("It is sunny in Paris.")
    seen, response = await ask(model_of(llmock))
    assert len(seen) > 2
    assert {type(delta) for delta in seen} == {TextDelta}
    assert response.text == "It is sunny in Paris."
    assert response.finish == "stop"
    assert response.usage is not None
    assert response.usage.total_tokens
    llmock.assert_resilient(strict=True)


async def test_a_tool_is_called_and_its_result_answered(llmock: LLMock) -> None:
    llmock.call_tool("get_weather", {"city": "Paris"}, text="One moment.")
    llmock.reply("Sunny.")
    async with model_of(llmock) as model:
        first = ModelRequest(REQUEST.messages, tools=(WEATHER,), session_id="s")
        _, response = await ask(model, first)
        [call] = response.tool_calls
        assert (call.name, call.arguments) == ("get_weather", '{"city": "Paris"}')
        result = ToolResultPart(
            "", call.name, (TextPart("21 C"),), provider_call_id=call.provider_call_id
        )
        messages = [
            *REQUEST.messages,
            AssistantMessage(response.content),
            ToolMessage((result,)),
        ]
        second = ModelRequest(messages, tools=(WEATHER,), session_id="s")
        assert (await ask(model, second))[1].text == "Sunny."
    sent = llmock.last_request.body["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
async def test_a_broken_call_is_passed_on_as_it_came(llmock: LLMock, kind: str) -> None:
    llmock.call_tool("get_weather", {"city": "Paris"}).break_tool_call(kind)
    _, response = await ask(
        model_of(llmock), ModelRequest(REQUEST.messages, tools=(WEATHER,))
    )
    [call] = response.tool_calls
    assert (call.name, call.arguments) != ("get_weather", '{"city": "Paris"}')


@pytest.mark.parametrize(
    ("status", "expected", "retryable"),
    [
        (400, BadRequest, False), (401, AuthFailed, False), (404, BadRequest, False),
        (500, ServerError, True), (503, Overloaded, True), (529, Overloaded, True),
    ],
)  # fmt: skip
async def test_a_failing_vendor_is_told_apart_and_asked_once(
    llmock: LLMock, status: int, expected: type[ProviderError], retryable: bool
) -> None:
    llmock.fail(status)
    error = await failing(llmock)
    assert type(error) is expected
    assert error.retryable is retryable
    assert len(llmock.requests) == 1


async def test_a_rate_limit_says_how_long(llmock: LLMock) -> None:
    llmock.rate_limit(retry_after=2)
    error = await failing(llmock)
    assert type(error) is RateLimited
    assert error.retry_after == 2


async def test_a_quota_is_counted_down_in_the_headers(llmock: LLMock) -> None:
    llmock.limits(rpm=1)
    _, response = await ask(model_of(llmock))
    assert any(name.startswith("x-ratelimit-") for name in response.rate_limits)
    error = await failing(llmock)
    assert type(error) is RateLimited
    assert error.retry_after


async def test_a_full_context_is_named(llmock: LLMock) -> None:
    llmock.context_overflow()
    assert type(await failing(llmock)) is ContextOverflow


async def test_a_truncated_stream_is_not_accepted(llmock: LLMock) -> None:
    llmock.truncate(after_chunks=3)
    error = await failing(llmock)
    assert type(error) is BrokenStream
    assert error.in_stream
    await try_again(llmock)
    llmock.assert_resilient(strict=True)


async def test_a_dropped_connection_is_not_accepted(llmock: LLMock) -> None:
    llmock.disconnect(after_chunks=2)
    error = await failing(llmock)
    assert type(error) is BrokenStream
    assert error.in_stream


async def test_a_malformed_chunk_is_not_skipped(llmock: LLMock) -> None:
    llmock.corrupt(after_chunks=2)
    error = await failing(llmock)
    assert type(error) is BadResponse
    assert error.retryable
    await try_again(llmock)
    llmock.assert_resilient(strict=True)


async def test_a_stall_ends_at_the_time_between_bytes(llmock: LLMock) -> None:
    llmock.stall(after_chunks=2, seconds=3)
    error = await failing(llmock, http_timeout=0.3)
    assert type(error) is Timeout
    assert error.in_stream


async def test_a_slow_first_token_is_waited_for(llmock: LLMock) -> None:
    llmock.slow_first_token(0.3).reply("late")
    assert (await ask(model_of(llmock, http_timeout=5)))[1].text == "late"


async def test_a_model_by_name_reads_the_vendors_variable(
    llmock: LLMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fixture sets OPENAI_API_KEY, as a user would.
    model = resolve_model("openai:gpt-5-mini", base_url=llmock.base_url("openai"))
    assert isinstance(model, OpenAIChatModel)
    assert (await ask(model))[1].text
