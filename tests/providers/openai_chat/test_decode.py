"""What arrives: every layout of chunks that servers were seen to send."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.errors import BadResponse, BrokenStream
from agentcore.providers.openai_chat.decode import Decoder, ErrorObject, read_usage
from agentcore.types.content import TextPart, ThinkingPart
from agentcore.types.model import (
    ModelDelta,
    ModelResponse,
    TextDelta,
    ThinkingDelta,
    ToolInputReady,
    ToolInputStarted,
)
from agentcore.types.usage import Usage


def chunk(finish: str | None = None, /, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chat-1", "model": "m-2", "choices": [choice]}


def decode(*chunks: Any, done: bool = True) -> tuple[list[ModelDelta], ModelResponse]:
    decoder = Decoder()
    out: list[ModelDelta] = []
    for item in chunks:
        data = item if isinstance(item, bytes) else json.dumps(item).encode()
        out += decoder.feed(data)
    if done:
        out += decoder.feed(b"[DONE]")
    response = decoder.finish(out)
    return out, response


USAGE = {"prompt_tokens": 5, "completion_tokens": 7}


def test_text_is_streamed_and_joined() -> None:
    out, response = decode(
        chunk(role="assistant", content=""),
        chunk(content="Hel"),
        chunk(content="lo"),
        chunk("stop"),
        {"choices": [], "usage": USAGE},
    )
    assert out == [TextDelta("Hel"), TextDelta("lo")]
    assert response.content == (TextPart("Hello"),)
    assert response.finish == "stop"
    assert response.usage == Usage(5, 7)
    assert (response.model, response.request_id) == ("m-2", "chat-1")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_told_apart_from_text(field: str) -> None:
    out, response = decode(
        chunk(**{field: "hm "}),
        chunk(**{field: "yes", "content": None}),
        chunk(content="So"),
        chunk(content="."),
        chunk("stop", content="", **{field: ""}),
    )
    assert out == [
        ThinkingDelta("hm "),
        ThinkingDelta("yes"),
        TextDelta("So"),
        TextDelta("."),
    ]
    assert response.content == (ThinkingPart("hm yes"), TextPart("So."))


def test_reasoning_sent_under_both_names_counts_once() -> None:
    out, _ = decode(chunk(reasoning_content="a", reasoning="a"), chunk("stop"))
    assert out == [ThinkingDelta("a")]


def test_content_as_a_list_of_pieces_is_read() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    out, _ = decode(
        chunk(content=[thinking]),
        chunk(content=[{"type": "text", "text": "a"}, {"type": "ref"}, "b"]),
        chunk("stop"),
    )
    assert out == [ThinkingDelta("hm"), TextDelta("a"), TextDelta("b")]


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk("stop", content="a"), {"choices": [], "usage": USAGE}],
        [chunk(content="a"), {**chunk("stop"), "usage": USAGE}],
        [chunk(content="a"), {**chunk("stop"), "usage": None}, {"usage": USAGE}],
        [{**chunk(content="a"), "usage": {"prompt_tokens": 1}},
         {**chunk("stop"), "usage": USAGE}],
        [{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop",
                       "usage": USAGE}]}],
        [chunk(content="a"), {**chunk("stop"), "x_groq": {"usage": USAGE}}],
        [{"choices": [], "usage": USAGE}, chunk("stop", content="a")],
    ],
)  # fmt: skip
def test_usage_is_found_wherever_it_stands(chunks: list[Any]) -> None:
    assert decode(*chunks)[1].usage == Usage(5, 7)


def test_usage_nobody_told_is_none() -> None:
    assert decode(chunk("stop", content="a"))[1].usage is None


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({}, Usage()),
        ({"prompt_tokens": None, "completion_tokens": "7"}, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": -1}, Usage(0, None)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 3},
          "completion_tokens_details": {"reasoning_tokens": 4}},
         Usage(5, 7, 3, None, 4)),
        ({**USAGE, "prompt_tokens_details": None}, Usage(5, 7)),
        ({**USAGE, "prompt_cache_hit_tokens": 2}, Usage(5, 7, 2)),
        ({**USAGE, "cached_tokens": 2, "cost": 0.5}, Usage(5, 7, 2, cost_usd=0.5)),
        ({**USAGE, "prompt_tokens_details": {"cache_write_tokens": 9}},
         Usage(5, 7, None, 9)),
    ],
)  # fmt: skip
def test_usage_is_complete_and_the_unknown_stays_unknown(
    sent: dict[str, Any], read: Usage
) -> None:
    assert read_usage(sent) == read


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"), ("function_call", "tool_calls"),
        ("eos", "stop"), ("max_tokens", "length"), ("sensitive", "content_filter"),
        ("insufficient_system_resource", "other"),
    ],
)  # fmt: skip
def test_the_reason_to_finish_is_mapped_and_the_vendors_word_kept(
    word: str, finish: str
) -> None:
    response = decode(chunk(word, content="a"))[1]
    assert response.finish == finish
    assert response.meta == ({} if word == finish else {"finish_reason": word})


CALL = {"index": 0, "id": "a", "function": {"name": "go", "arguments": "{}"}}


@pytest.mark.parametrize("word", ["tool_calls", "stop", "strange"])
def test_a_reply_with_calls_finished_for_them(word: str) -> None:
    out, response = decode(chunk(tool_calls=[CALL]), chunk(word))
    assert response.finish == "tool_calls"
    assert type(out[0]) is ToolInputStarted
    assert out[-1] == ToolInputReady(0, "go", "{}", "a")


def test_a_reply_cut_by_its_length_says_so_even_with_calls() -> None:
    assert decode(chunk(tool_calls=[CALL]), chunk("length"))[1].finish == "length"


def test_a_finish_for_calls_without_calls_is_left_to_the_engine() -> None:
    response = decode(chunk("tool_calls", content="x"))[1]
    assert (response.finish, response.tool_calls) == ("tool_calls", ())


def test_text_and_a_call_stand_in_one_reply() -> None:
    _, response = decode(
        chunk(content="To call, "), chunk(tool_calls=[CALL]), chunk("tool_calls")
    )
    assert response.text == "To call, "
    assert [c.name for c in response.tool_calls] == ["go"]


def test_a_refusal_is_text_that_was_filtered() -> None:
    out, response = decode(chunk(refusal="I will not"), chunk("stop"))
    assert out == [TextDelta("I will not")]
    assert response.finish == "content_filter"


def test_a_whole_message_instead_of_a_stream_is_read() -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": [CALL]}
    out, response = decode(
        {"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE},
        done=False,
    )
    assert out[0] == TextDelta("hi")
    assert response.usage == Usage(5, 7)
    assert [c.name for c in response.tool_calls] == ["go"]


def test_other_answers_and_unknown_fields_are_ignored() -> None:
    second = {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}
    odd = {"object": "ping", "choices": [None, {"delta": None}, second], "usage": []}
    out, response = decode(
        odd, {"choices": None}, {}, chunk(content="a", annotations=[{}]), chunk("stop")
    )
    assert out == [TextDelta("a")]
    assert response.finish == "stop"


def test_null_and_odd_fields_of_a_delta_are_no_error() -> None:
    out, _ = decode(
        chunk(content=None, tool_calls=None, reasoning_content=None, refusal=None),
        chunk(tool_calls=[]), chunk(tool_calls={"a": 1}), chunk(tool_calls=[None]),
        chunk(content=5), chunk("stop"),
    )  # fmt: skip
    assert out == []


@pytest.mark.parametrize(
    "chunks", [[], [chunk(content="half")], [chunk(tool_calls=[CALL])]]
)
def test_a_stream_without_its_end_is_broken(chunks: list[Any]) -> None:
    with pytest.raises(BrokenStream) as caught:
        decode(*chunks, done=False)
    assert caught.value.retryable
    assert caught.value.in_stream == bool(chunks)


def test_the_marker_alone_is_no_reply() -> None:
    with pytest.raises(BrokenStream):
        decode()


def test_either_marker_ends_a_reply() -> None:
    assert decode(chunk("stop", content="a"), done=False)[1].finish == "stop"
    assert decode(chunk(content="a"), done=True)[1].finish == "other"


@pytest.mark.parametrize(
    "data", [b"{oops", b"[1]", b"7", b'{"choices": [', b'"\xff"', b""]
)
def test_a_chunk_that_is_no_object_is_a_bad_response(data: bytes) -> None:
    with pytest.raises(BadResponse) as caught:
        decode(chunk(content="a"), data)
    assert caught.value.in_stream
    assert caught.value.retryable


@pytest.mark.parametrize(
    "body", [{"error": {"message": "m"}}, {"error": "m"}, {"object": "error"}]
)
def test_an_error_object_is_handed_up(body: dict[str, Any]) -> None:
    with pytest.raises(ErrorObject):
        decode(chunk(content="a"), body)


def test_an_error_that_is_null_is_none() -> None:
    assert decode({**chunk("stop", content="a"), "error": None})[1].text == "a"


def test_half_a_character_does_not_cost_the_reply() -> None:
    cut = json.dumps(chunk(content="a\ud83c")).encode()
    assert decode(cut, chunk("stop"))[0] == [TextDelta("a\ufffd")]
    with pytest.raises(BadResponse):
        decode(b'{"a": "\\ud83c')


def test_nesting_without_end_is_a_bad_response() -> None:
    with pytest.raises(BadResponse):
        decode(b'{"a": "\\ud83c", "b": ' + b"[" * 100_000)


# --- the short way ----------------------------------------------------------------

TEXTS = st.text(
    st.sampled_from(list('ab"\\{}[]:,\n é🌦')) | st.characters(), max_size=8
) | st.sampled_from(
    ['"},"finish_reason":null}]}', '","content":"', '"}', "\\", '\\"', "\\u0041"]
)
ENVELOPES = st.sampled_from(
    [
        '{"id":"x","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}',
        '{"choices": [{"delta": {"role": "assistant", "content": %s}}], "usage": null}',
        '{"choices":[{"delta":{"reasoning_content":null,"content":%s}}]}',
        '{"choices":[{"delta":{"reasoning_content":%s,"content":null}}]}',
        '{"choices":[{"delta":{"content":%s},"finish_reason":"stop"}]}',
        '{"choices":[{"delta":{"content":%s}}],"usage":null,"obfuscation":"aB3"}',
        '{"choices":[{"delta":{"content":%s}}],"usage":null,"obfuscation":"q"}',
        '{"choices":[{"delta":{"content":%s}}],"usage":{"prompt_tokens":3},"x":"content"}',
        '{"choices":[{"delta":{"content":%s,"tool_calls":[{"function":{"name":"f"}}]}}]}',
        '{"choices":[{"delta":{"refusal":%s}}]}',
    ]
)


@settings(deadline=None)  # a busy machine is no failure
@given(
    items=st.lists(st.tuples(ENVELOPES, TEXTS, st.booleans()), min_size=1, max_size=12)
)
def test_the_short_way_reads_what_the_long_way_reads(
    items: list[tuple[str, str, bool]],
) -> None:
    quick, slow = Decoder(), Decoder()
    slow._misses = 1_000_000  # it has given up on the short way
    for envelope, text, ascii_only in items:
        quoted = json.dumps(text, ensure_ascii=ascii_only)
        data = (envelope % quoted).encode("utf-8", "replace")
        assert quick.feed(data) == slow.feed(data)
    ends: list[Any] = []
    for decoder in (quick, slow):
        decoder.complete = True
        out: list[ModelDelta] = []
        try:
            ends.append((decoder.finish(out), out))
        except BrokenStream as error:
            ends.append(str(error))
    assert ends[0] == ends[1]


def test_broken_text_inside_a_known_envelope_is_still_noticed() -> None:
    good = json.dumps(chunk(content="word")).encode()
    with pytest.raises(BadResponse):
        decode(good, good, good.replace(b"word", b'a"b'))
