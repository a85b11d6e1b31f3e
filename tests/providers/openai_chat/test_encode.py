"""What leaves: the same bytes with and without the cache, and nothing illegal."""

import base64
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.errors import BadRequest
from agentcore.providers._profiles import PROFILES, Profile
from agentcore.providers.openai_chat import _messages
from agentcore.providers.openai_chat import encode as encode_module
from agentcore.providers.openai_chat.encode import (
    Encoder,
    allows_strict,
    common_length,
)
from agentcore.types.content import (
    AudioPart,
    BlobRef,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from agentcore.types.json import Unknown
from agentcore.types.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    host_note,
    user_text,
)
from agentcore.types.model import ModelCapabilities, ModelRequest, OutputSchema
from agentcore.types.options import UNSET, NamedTool, Options
from agentcore.types.tools import ToolSpec

EVERYTHING = ModelCapabilities(images=True, audio=True, files=True, json_schema=True)
WEATHER = ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {}})
PNG = b"\x89PNG"


def encoder(vendor: str = "openai", capabilities: Any = EVERYTHING) -> Encoder:
    return Encoder("m", PROFILES[vendor], capabilities)


def body(*messages: Message, vendor: str = "openai", **request: Any) -> dict[str, Any]:
    encoded = encoder(vendor).encode(ModelRequest(messages, **request))
    parsed: dict[str, Any] = json.loads(encoded)
    return parsed


def sent(*messages: Message, vendor: str = "openai") -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = body(*messages, vendor=vendor)["messages"]
    return result


def user(*parts: Part) -> UserMessage:
    return UserMessage(parts)  # type: ignore[arg-type]


def call(n: int, provider_id: str, name: str = "f", arguments: str = "{}") -> Any:
    return ToolCallPart(name, arguments, f"call_{n}", provider_id)


def result(n: int, *parts: Part, provider_id: str = "") -> ToolMessage:
    content: Any = parts or (TextPart("ok"),)
    return ToolMessage(
        (ToolResultPart(f"call_{n}", "f", content, provider_call_id=provider_id),)
    )


# --- messages ---------------------------------------------------------------------


def test_the_instructions_come_first_and_the_rest_in_order() -> None:
    parsed = body(
        user_text("a"),
        AssistantMessage((TextPart("b"),)),
        SystemMessage("c"),
        host_note("d"),
        instructions="be brief",
    )
    assert [(m["role"], m["content"]) for m in parsed["messages"]] == [
        ("system", "be brief"),
        ("user", "a"),
        ("assistant", "b"),
        ("system", "c"),
        ("user", "[Note from the host: d]"),
    ]
    assert parsed["model"] == "m"
    assert parsed["stream"] is True
    assert parsed["stream_options"] == {"include_usage": True}


def test_a_request_without_messages_is_still_json() -> None:
    assert body()["messages"] == []
    assert body(instructions="x")["messages"] == [{"role": "system", "content": "x"}]


def test_media_of_a_user_become_parts() -> None:
    [message] = sent(
        user(
            TextPart("look"),
            ImagePart("image/jpg", data=PNG),
            ImagePart("image/png", url="https://x/y.png", detail="low"),
            AudioPart("audio/wav", data=b"snd"),
            FilePart("a.pdf", "application/pdf", data=b"pdf"),
        )
    )
    encoded = base64.b64encode(PNG).decode()
    assert message["content"] == [
        {"type": "text", "text": "look"},
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/jpeg;base64,{encoded}"},
        },
        {
            "type": "image_url",
            "image_url": {"url": "https://x/y.png", "detail": "low"},
        },
        {"type": "input_audio", "input_audio": {"data": "c25k", "format": "wav"}},
        {
            "type": "file",
            "file": {
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,cGRm",
            },
        },
    ]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (ImagePart("image/tiff", data=PNG), "images of type image/tiff"),
        (ImagePart("image/png", blob=BlobRef("h", 1)), "without bytes or URL"),
        (AudioPart("audio/ogg", data=b"x"), "audio other than WAV or MP3"),
        (AudioPart("audio/wav", url="https://x"), "audio other than WAV or MP3"),
        (FilePart("a", "text/plain", url="https://x"), "files by URL"),
        (ThinkingPart("hm"), "a thinking part"),
        (Unknown("hologram", {}), "a hologram part"),
    ],
)
def test_what_the_format_has_no_place_for_is_refused_by_name(
    part: Part, named: str
) -> None:
    with pytest.raises(BadRequest, match=named) as caught:
        sent(user(part))
    assert "nothing was sent" in str(caught.value)


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (ImagePart("image/png", data=PNG), "images"),
        (AudioPart("audio/wav", data=b"x"), "audio"),
        (FilePart("a", "text/plain", data=b"x"), "files"),
    ],
)
def test_what_the_model_does_not_take_is_refused_by_name(
    part: Part, named: str
) -> None:
    text_only = Encoder("m", PROFILES["deepseek"], PROFILES["deepseek"].capabilities)
    with pytest.raises(BadRequest, match=rf"deepseek .* cannot be sent {named}"):
        text_only.encode(ModelRequest([user(part)]))


def test_unknown_messages_and_media_in_a_reply_are_refused() -> None:
    with pytest.raises(BadRequest, match="unknown kind 'dream'"):
        sent(Unknown("dream", {}))
    with pytest.raises(BadRequest, match="a image part in a reply"):
        sent(AssistantMessage((ImagePart("image/png", data=PNG),)))


def test_a_call_and_its_result_go_by_the_vendors_id() -> None:
    messages = sent(
        AssistantMessage((TextPart("let me see"), call(1, "abc", arguments='{"a":1}'))),
        result(1, provider_id="abc"),
    )
    assert messages == [
        {
            "role": "assistant",
            "content": "let me see",
            "tool_calls": [
                {
                    "id": "abc",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"a":1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "abc", "content": "ok"},
    ]


def test_a_call_without_text_has_null_content() -> None:
    assert sent(AssistantMessage((call(1, "abc"),)))[0]["content"] is None


@pytest.mark.parametrize("vendor", ["openai", "mistral"])
def test_ids_are_unique_in_the_request_and_results_follow_them(vendor: str) -> None:
    ids = ["same", "same", "", "x" * 41, "abcdefghi", "abcdefghi"]
    messages: list[Message] = []
    for n, provider_id in enumerate(ids):
        messages += [AssistantMessage((call(n, provider_id),)), result(n)]
    wire = sent(*messages, vendor=vendor)
    calls = [m["tool_calls"][0]["id"] for m in wire[::2]]
    assert calls == [m["tool_call_id"] for m in wire[1::2]]
    assert len(set(calls)) == len(calls)
    if vendor == "mistral":
        assert all(len(i) == 9 and i.isalnum() for i in calls)
    else:
        assert calls[:3] == ["same", "call_1", "call_2"]
        assert all(0 < len(i) <= 40 for i in calls)


def test_a_result_whose_call_is_gone_keeps_some_id() -> None:
    assert sent(result(9, provider_id="p"))[0]["tool_call_id"] == "p"
    assert sent(result(9))[0]["tool_call_id"] == "call_9"


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        ("  ", "{}"),
        ("{oops", '{"malformed_arguments":"{oops"}'),
        ("[1]", '{"malformed_arguments":"[1]"}'),
        ("\udc80", '{"malformed_arguments":"\ufffd"}'),
    ],
)
def test_broken_arguments_do_not_break_later_requests(said: str, again: str) -> None:
    message = sent(AssistantMessage((call(1, "a", arguments=said),)))[0]
    assert message["tool_calls"][0]["function"]["arguments"] == again


@pytest.mark.parametrize(
    ("said", "again"), [("a.b c", "a_b_c"), ("", "unknown"), ("x" * 70, "x" * 64)]
)
def test_a_name_no_vendor_takes_is_made_legal(said: str, again: str) -> None:
    message = sent(AssistantMessage((call(1, "a", name=said),)))[0]
    assert message["tool_calls"][0]["function"]["name"] == again


def test_images_of_a_tool_follow_behind_all_results() -> None:
    picture = ImagePart("image/png", data=PNG)
    wire = sent(
        AssistantMessage((call(1, "a"), call(2, "b"))),
        ToolMessage(
            (
                ToolResultPart("call_1", "f", (TextPart("here"), picture)),
                ToolResultPart("call_2", "g", (picture,)),
            )
        ),
    )
    assert [m["role"] for m in wire] == ["assistant", "tool", "tool", "user"]
    assert wire[1]["content"] == "here\n[The media that f returned follow below.]"
    assert wire[2]["content"] == "[The media that g returned follow below.]"
    assert [p["type"] for p in wire[3]["content"]] == ["text", "image_url"] * 2
    assert wire[3]["content"][2]["text"] == "Returned by g:"


@pytest.mark.parametrize(
    ("vendor", "field"),
    [
        ("deepseek", "reasoning_content"),
        ("moonshot", "reasoning_content"),
        ("openrouter", "reasoning"),
        ("openai", None),
    ],
)
def test_reasoning_goes_back_with_calls_where_the_vendor_wants_it(
    vendor: str, field: str | None
) -> None:
    thought = ThinkingPart("hm")
    with_call, without = sent(
        AssistantMessage((thought, call(1, "a"))),
        AssistantMessage((thought, TextPart("yes"))),
        vendor=vendor,
    )
    expected = {"role", "content", "tool_calls"} | ({field} if field else set())
    assert with_call.keys() == expected
    assert without == {"role": "assistant", "content": "yes"}


def test_a_signature_of_a_call_goes_back() -> None:
    part = ToolCallPart("f", "{}", "c", "p", extra={"extra_content": {"g": 1}})
    assert sent(AssistantMessage((part,)))[0]["tool_calls"][0]["extra_content"] == {
        "g": 1
    }


def test_half_a_character_is_replaced_and_whole_ones_stay() -> None:
    assert sent(user_text("ok 🌦 \udc80!"))[0]["content"] == "ok 🌦 \ufffd!"
    [message] = sent(user(TextPart("\ud83c"), ImagePart("image/png", data=PNG)))
    assert message["content"][0]["text"] == "\ufffd"


# --- options ----------------------------------------------------------------------


def test_options_that_are_unset_are_not_sent_and_none_is_null() -> None:
    assert body().keys() == {"model", "messages", "stream", "stream_options"}
    parsed = body(options=Options(temperature=None, seed=1, stop=("a",)))
    assert (parsed["temperature"], parsed["seed"], parsed["stop"]) == (None, 1, ["a"])


@pytest.mark.parametrize(
    ("vendor", "field"), [("openai", "max_completion_tokens"), ("vllm", "max_tokens")]
)
def test_the_token_limit_goes_by_the_vendors_name(vendor: str, field: str) -> None:
    assert body(vendor=vendor, options=Options(max_tokens=5))[field] == 5


def test_the_requests_options_lie_over_the_models() -> None:
    defaults = Options(temperature=0.1, seed=3, provider={"openai": {"a": {"b": 1}}})
    asked = Options(seed=4, provider={"openai": {"a": {"c": 2}}, "other": {"x": 1}})
    parsed = json.loads(encoder().encode(ModelRequest([], options=asked), defaults))
    assert (parsed["temperature"], parsed["seed"]) == (0.1, 4)
    assert parsed["a"] == {"b": 1, "c": 2}
    assert "x" not in parsed


def test_the_vendors_block_wins_and_unset_in_it_erases() -> None:
    block = {"seed": 9, "stream_options": UNSET, "reasoning_effort": "low", "n": None}
    parsed = body(options=Options(seed=1, provider={"openai": block}))
    assert parsed["seed"] == 9
    assert "stream_options" not in parsed
    assert (parsed["reasoning_effort"], parsed["n"]) == ("low", None)


def test_a_block_that_erases_everything_leaves_json() -> None:
    block = {"stream": UNSET, "stream_options": UNSET}
    assert body(options=Options(provider={"openai": block})).keys() == {
        "model",
        "messages",
    }


def test_a_block_may_bring_its_own_tools_but_no_messages() -> None:
    own = [{"type": "web_search"}]
    options = Options(provider={"openai": {"tools": own}})
    assert body(options=options, tools=(WEATHER,))["tools"] == own
    with pytest.raises(BadRequest, match="must not set messages and model"):
        body(options=Options(provider={"openai": {"messages": [], "model": "x"}}))


def test_a_block_that_is_no_json_is_refused() -> None:
    with pytest.raises(BadRequest, match="no JSON value"):
        body(options=Options(provider={"openai": {"x": object()}}))


def test_tools_are_offered_without_strict() -> None:
    assert body(tools=(WEATHER,))["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Weather.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", "auto"),
        ("required", "required"),
        (
            NamedTool("get_weather"),
            {"type": "function", "function": {"name": "get_weather"}},
        ),
    ],
)
def test_a_choice_of_tools_is_sent_only_beside_tools(choice: Any, wire: Any) -> None:
    options = Options(tool_choice=choice, parallel_tool_calls=False)
    parsed = body(options=options, tools=(WEATHER,))
    assert (parsed["tool_choice"], parsed["parallel_tool_calls"]) == (wire, False)
    assert not {"tool_choice", "parallel_tool_calls"} & body(options=options).keys()


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**OPEN, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "allowed"),
    [
        (OPEN, False),
        (CLOSED, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
        ({**CLOSED, "properties": {"a": {"anyOf": [OPEN]}}}, False),
        ({**CLOSED, "$defs": {"b": OPEN}}, False),
        ({"type": "array", "items": CLOSED}, True),
    ],
)
def test_strict_is_promised_only_where_the_schema_allows_it(
    schema: dict[str, Any], allowed: bool
) -> None:
    assert allows_strict(schema) is allowed
    output = OutputSchema("answer", schema, description="d")
    assert body(output=output)["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "description": "d",
            "schema": schema,
            "strict": allowed,
        },
    }


def test_a_vendor_that_knows_no_strict_is_not_told() -> None:
    schema = body(vendor="vllm", output=OutputSchema("x", CLOSED))["response_format"]
    assert schema["json_schema"] == {"name": "x", "schema": CLOSED}


def test_a_schema_for_a_model_that_takes_none_is_refused() -> None:
    deepseek = Encoder("m", PROFILES["deepseek"], PROFILES["deepseek"].capabilities)
    with pytest.raises(BadRequest, match="no JSON Schema"):
        deepseek.encode(ModelRequest([], output=OutputSchema("x", CLOSED)))


# --- the cache --------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        user_text("a"),
        user_text("b"),
        SystemMessage("s"),
        ToolMessage(()),
        AssistantMessage((call(1, "same"),)),
        AssistantMessage((call(2, "same"), call(3, "same"))),
        result(1),
        result(2),
        result(3),
    ]
)
HISTORIES = st.lists(PARTS, max_size=8)


@settings(deadline=None)  # a busy machine is no failure
@given(
    histories=st.lists(
        st.tuples(
            HISTORIES,
            st.sampled_from(["", "s1", "s2"]),
            st.sampled_from(["", "i", "j"]),
        ),
        max_size=8,
    )
)
def test_the_cache_never_changes_the_bytes(
    histories: list[tuple[list[Message], str, str]],
) -> None:
    shared = encoder()
    for messages, session, instructions in histories:
        request = ModelRequest(messages, instructions, session_id=session)
        assert shared.encode(request) == encoder().encode(request)


@settings(deadline=None)  # a busy machine is no failure
@given(history=HISTORIES, rebuilt=st.booleans())
def test_a_growing_history_with_a_passing_note_is_encoded_alike(
    history: list[Message], rebuilt: bool
) -> None:
    shared = encoder()
    for length in range(len(history) + 1):
        messages = history[:length]
        if rebuilt:  # equal, but not the same objects
            messages = [dataclasses.replace(m) for m in messages]
        for extra in ([], [host_note(f"turn {length}")]):
            request = ModelRequest((*messages, *extra), "i", session_id="s")
            assert shared.encode(request) == encoder().encode(request)


def test_a_message_is_encoded_once_however_often_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[Message] = []
    original = _messages.MessageEncoder.encode

    def counting(self: Any, message: Message) -> Any:
        encoded.append(message)
        return original(self, message)

    monkeypatch.setattr(_messages.MessageEncoder, "encode", counting)
    shared = encoder()
    history: list[Message] = []
    for step in range(50):
        history += [AssistantMessage((call(step, f"p{step}"),)), result(step)]
        shared.encode(ModelRequest(tuple(history), session_id="s"))
        note = host_note(f"{step}")
        shared.encode(ModelRequest((*history, note), session_id="s"))
    assert len(encoded) == 50 * 3


@pytest.mark.parametrize(
    ("limit", "value"), [("CACHED_SESSIONS", 2), ("CACHED_BYTES", 300)]
)
def test_the_cache_is_bounded(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_module, limit, value)
    shared = encoder()
    for n in range(20):
        request = ModelRequest([user_text("x" * 100)], session_id=f"s{n}")
        assert shared.encode(request) == encoder().encode(request)
        assert len(shared._sessions) <= 2
        assert shared._size == sum(len(s.body) for s in shared._sessions.values())
    huge = ModelRequest([user_text("x" * 1000)], session_id="huge")
    assert shared.encode(huge) == encoder().encode(huge)
    assert ("huge" in shared._sessions) == (limit == "CACHED_SESSIONS")


def test_a_refused_message_leaves_the_session_usable() -> None:
    shared = encoder()
    bad = ModelRequest([user_text("a"), Unknown("dream", {})], session_id="s")
    good = ModelRequest([user_text("a"), user_text("b")], session_id="s")
    for _ in range(2):
        with pytest.raises(BadRequest):
            shared.encode(bad)
    assert shared.encode(good) == encoder().encode(good)


def test_the_common_beginning_is_found_wherever_it_ends() -> None:
    a, b, c = user_text("a"), user_text("b"), user_text("c")
    old: list[Message] = [a] * 10
    for length in range(11):
        assert common_length(old, (*old[:length], b, c)) == length
    assert common_length(old, old[:4]) == 4
    assert common_length([], old) == 0
    again = [dataclasses.replace(m) for m in old]  # equal, but not the same
    assert common_length(old, again) == 10
    assert common_length(old, [*again[:2], b, *again[3:]]) == 2


def test_changed_tools_are_sent() -> None:
    shared = encoder()
    for name in ("a", "b", "b", "a"):
        tools = (ToolSpec(name, "", {}),)
        parsed = json.loads(
            shared.encode(ModelRequest([], tools=tools, session_id="s"))
        )
        assert parsed["tools"][0]["function"]["name"] == name


def test_a_neutral_profile_needs_no_table() -> None:
    neutral = Encoder("m", Profile("mine", "http://x"), EVERYTHING)
    options = Options(provider={"mine": {"top_k": 4}})
    assert json.loads(neutral.encode(ModelRequest([], options=options)))["top_k"] == 4
