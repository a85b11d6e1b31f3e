"""Against a second emulator nobody here wrote. It is no Python package, so it may lack.

Where npm is: `npm install --ignore-scripts @copilotkit/aimock`, and AIMOCK_CLI_PATH set
to its `dist/cli.js`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcore import ToolLoopAgent, tool
from agentcore.errors import BrokenStream, ProviderError, RateLimited
from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.types.content import ThinkingPart
from agentcore.types.messages import user_text
from agentcore.types.model import (
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
    ThinkingDelta,
)

LONG = "a reply of some length, to be cut in its middle"
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "One moment.",
            "toolCalls": [
                {"name": "get_weather", "arguments": '{"city": "Paris"}', "id": "c1"},
                {"name": "get_weather", "arguments": '{"city": "Köln 🌦"}', "id": "c2"},
            ],
        },
    },
    {
        "match": {"userMessage": "weather", "hasToolResult": True},
        "response": {"content": "Sunny in both."},
    },
    {
        "match": {"userMessage": "think"},
        "response": {
            "content": "42",
            "reasoning": "six times seven",
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        },
    },
    {
        "match": {"userMessage": "busy"},
        "response": {
            "error": {"message": "slow down", "type": "rate_limit_error"},
            "status": 429,
            "retryAfter": 3,
        },
    },
    {
        "match": {"userMessage": "cut"},
        "truncateAfterChunks": 4,
        "latency": 20,
        "response": {"content": LONG},
    },
    {
        "match": {"userMessage": "drop"},
        "disconnectAfterMs": 100,
        "latency": 30,
        "response": {"content": LONG},
    },
]


def _command() -> list[str]:
    node, cli = shutil.which("node"), os.environ.get("AIMOCK_CLI_PATH", "")
    if node is None:
        pytest.skip("aimock needs Node, which is not installed")
    if not Path(cli).is_file():
        pytest.skip("AIMOCK_CLI_PATH does not name aimock's dist/cli.js")
    return [node, cli]


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address, up to and with `/v1`."""
    command = _command()
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}), encoding="utf-8")
    with subprocess.Popen(
        [*command, "-p", "0", "-c", "5", "-f", str(fixtures)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            for line in process.stdout:
                said.append(line)
                if "listening on " in line:
                    break
            else:
                raise AssertionError(f"aimock did not start: {''.join(said)}")
            yield said[-1].rpartition("listening on ")[2].strip() + "/v1"
        finally:
            process.kill()


def model_of(aimock: str) -> OpenAIChatModel:
    return OpenAIChatModel("gpt-5-mini", base_url=aimock, api_key="k", http_timeout=20)


async def ask(aimock: str, text: str) -> tuple[list[ModelDelta], ModelResponse]:
    async with model_of(aimock).stream(ModelRequest([user_text(text)])) as deltas:
        seen = [delta async for delta in deltas]
    last = seen.pop()
    assert isinstance(last, ResponseDone)
    return seen, last.response


async def test_a_whole_run_calls_tools_and_answers(aimock: str) -> None:
    @tool(effects="none", parallel=True)
    async def get_weather(city: str) -> str:
        """Weather of a city."""
        return f"sunny in {city}"

    agent = ToolLoopAgent(model_of(aimock), tools=[get_weather])
    result = await agent.run("How is the weather?")

    assert result.output == "Sunny in both."
    texts = [call.text for call in result.tool_calls]
    assert texts == ["sunny in Paris", "sunny in Köln 🌦"]
    assert result.usage.requests == 2
    assert result.usage.total_tokens


async def test_thinking_is_told_from_the_reply_and_tokens_are_counted(
    aimock: str,
) -> None:
    seen, response = await ask(aimock, "think")
    thought = "".join(d.text for d in seen if isinstance(d, ThinkingDelta))
    assert thought == "six times seven"
    assert response.text == "42"
    assert ThinkingPart("six times seven") in response.content
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 4)


async def test_a_rate_limit_is_named_with_its_time(aimock: str) -> None:
    with pytest.raises(RateLimited, match="slow down") as caught:
        await ask(aimock, "busy")
    assert (caught.value.retry_after, caught.value.status) == (3, 429)


@pytest.mark.parametrize("how", ["cut", "drop"])
async def test_a_stream_that_breaks_off_is_no_reply(aimock: str, how: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(aimock, how)
    assert type(caught.value) is BrokenStream
    assert caught.value.retryable
    assert caught.value.in_stream
