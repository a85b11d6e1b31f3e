"""The vendor's own client as the reference: the same conversation, the same body."""

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio.to_thread
import openai
import pytest
from tests.wire.openai_chat.raw_server import HELLO, serving, streaming

from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.types.content import ImagePart, TextPart, ToolCallPart, ToolResultPart
from agentcore.types.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    user_text,
)
from agentcore.types.model import ModelRequest, OutputSchema
from agentcore.types.options import NamedTool, Options
from agentcore.types.tools import ToolSpec

PNG = b"\x89PNG\r\n"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather.",
        "parameters": SCHEMA,
    },
}
SPEC = ToolSpec("get_weather", "Weather.", SCHEMA)
CALL = {
    "id": "call_abc",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}
ROUND_TRIP: list[Message] = [
    user_text("Weather in Paris?"),
    AssistantMessage(
        (ToolCallPart("get_weather", '{"city":"Paris"}', "c1", "call_abc"),)
    ),
    ToolMessage((ToolResultPart("c1", "get_weather", (TextPart("21 °C"),)),)),
]

# For each conversation: what the vendor's client is told, and what ours is told.
CASES: dict[str, tuple[dict[str, Any], ModelRequest]] = {
    "text": (
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Grüße 🌦 \"'\\\n"},
            ],
            "temperature": 0.5,
            "max_completion_tokens": 50,
            "stop": ["END"],
            "seed": 7,
        },
        ModelRequest(
            [user_text("Grüße 🌦 \"'\\\n")],
            "Be brief.",
            options=Options(temperature=0.5, max_tokens=50, stop=("END",), seed=7),
        ),
    ),
    "tool round trip": (
        {
            "messages": [
                {"role": "user", "content": "Weather in Paris?"},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "call_abc", "content": "21 °C"},
            ],
            "tools": [TOOL],
            "parallel_tool_calls": False,
        },
        ModelRequest(
            ROUND_TRIP, tools=(SPEC,), options=Options(parallel_tool_calls=False)
        ),
    ),
    "image": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is it?"},
                        {
                            "type": "image_url",
                            "image_url": {
                                "url": "data:image/png;base64,"
                                + base64.b64encode(PNG).decode(),
                                "detail": "high",
                            },
                        },
                    ],
                }
            ]
        },
        ModelRequest(
            [
                UserMessage(
                    (
                        TextPart("What is it?"),
                        ImagePart("image/png", data=PNG, detail="high"),
                    )
                )
            ]
        ),
    ),
    "json schema": (
        {
            "messages": [{"role": "user", "content": "Which city?"}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "city", "strict": True, "schema": SCHEMA},
            },
        },
        ModelRequest([user_text("Which city?")], output=OutputSchema("city", SCHEMA)),
    ),
    "a named tool": (
        {
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        },
        ModelRequest(
            [user_text("hi")],
            tools=(SPEC,),
            options=Options(tool_choice=NamedTool("get_weather")),
        ),
    ),
    "a required tool and an option of the vendor": (
        {
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [TOOL],
            "tool_choice": "required",
            "reasoning_effort": "low",
            "extra_body": {"my_extension": {"a": [1, None]}},
        },
        ModelRequest(
            [user_text("hi")],
            tools=(SPEC,),
            options=Options(
                tool_choice="required",
                provider={
                    "openai": {
                        "reasoning_effort": "low",
                        "my_extension": {"a": [1, None]},
                    }
                },
            ),
        ),
    ),
}


def with_the_vendors_client(url: str, call: dict[str, Any]) -> list[Any]:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        stream = client.chat.completions.create(
            model="gpt-5-mini",
            stream=True,
            stream_options={"include_usage": True},
            **call,
        )
        return list(stream)


async def in_thread(function: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(function)


@pytest.mark.parametrize("case", CASES)
async def test_we_send_what_the_vendors_own_client_sends(case: str) -> None:
    call, request = CASES[case]
    async with serving(streaming(*HELLO)) as server:
        chunks = await in_thread(partial(with_the_vendors_client, server.url, call))
        model = OpenAIChatModel("gpt-5-mini", base_url=server.url, api_key="k")
        async with model.stream(request) as deltas:
            seen = [delta async for delta in deltas]
    theirs, ours = server.requests
    assert ours.json == theirs.json
    assert ours.line == theirs.line
    for header in ("authorization", "content-type"):
        assert ours.headers[header] == theirs.headers[header]
    text = "".join(
        c.choices[0].delta.content or "" for c in chunks if c.choices and c.choices[0]
    )
    assert text == "".join(d.text for d in seen if d.kind == "text_delta") == "Hello"


async def test_the_server_of_these_tests_speaks_the_vendors_format() -> None:
    # Or agreeing with it would prove nothing: the vendor's own types read its chunks.
    for piece in HELLO[:3]:
        data = {
            **json.loads(piece[6:]),
            "created": 1,
            "object": "chat.completion.chunk",
        }
        chunk = openai.types.chat.ChatCompletionChunk.model_validate(data)
        assert chunk.choices[0].index == 0
