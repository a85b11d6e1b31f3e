"""Server-sent events: whatever the network does to the bytes, the events stay."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.errors import BadResponse
from agentcore.providers._sse import SseEvent, SseParser


def parse(data: bytes, *cuts: int) -> list[SseEvent]:
    parser = SseParser()
    events: list[SseEvent] = []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        events += parser.feed(data[start:end])
    return events + parser.end()


def data_of(data: bytes) -> list[bytes]:
    return [event.data for event in parse(data)]


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (b'data: {"a":1}\n\n', [b'{"a":1}']),
        (b'data:{"a":1}\n\n', [b'{"a":1}']),
        (b"data:  two\n\n", [b" two"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\n\r\ndata: b\r\n\n", [b"a", b"b"]),
        (b": keep-alive\n\ndata: a\n\n:\n\n", [b"a"]),
        (b": hello\ndata: a\n\n", [b"a"]),
        (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\n\n", [b""]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"id: 7\nretry: 10\nfoo: bar\ndata: a\n\n", [b"a"]),
        (b"event: ping\n\ndata: a\n\n", [b"a"]),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"data: a\n\ndata: [DONE]\n", [b"a", b"[DONE]"]),
        (b"", []),
        ("data: grüße 🌦\n\n".encode(), ["grüße 🌦".encode()]),
    ],
)
def test_every_layout_a_server_may_use_is_read(sent: bytes, seen: list[bytes]) -> None:
    assert data_of(sent) == seen


def test_the_name_of_an_event_is_kept() -> None:
    assert parse(b"event: error\ndata: {}\n\n") == [SseEvent("error", b"{}")]


def test_a_byte_order_mark_counts_only_at_the_very_start() -> None:
    assert data_of(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [b"a"]


LINES = st.sampled_from(
    [
        b"data: x",
        b"data:y",
        b'data: {"t":"\xf0\x9f\x8c\xa6"}',
        b": note",
        b"event: e",
        b"",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@settings(deadline=None)  # a busy machine is no failure
@given(
    lines=st.lists(st.tuples(LINES, ENDS), max_size=12),
    bom=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_any_cut_of_the_bytes_gives_the_same_events(
    lines: list[tuple[bytes, bytes]], bom: bool, cuts: list[int]
) -> None:
    stream = b"\xef\xbb\xbf" * bom + b"".join(line + end for line, end in lines)
    whole = parse(stream)
    assert parse(stream, *(min(cut, len(stream)) for cut in cuts)) == whole
    assert parse(stream, *range(1, len(stream))) == whole  # byte by byte


@settings(deadline=None)  # a busy machine is no failure
@given(lines=st.lists(st.tuples(LINES, ENDS), max_size=12))
def test_the_events_are_those_of_the_standard(
    lines: list[tuple[bytes, bytes]],
) -> None:
    # The standard's own algorithm, line by line, on lines we know. Where one line ends
    # with CR and the next is empty and ends with LF, the bytes are one line end.
    stream = b"".join(line + end for line, end in lines)
    expected: list[SseEvent] = []
    name, data = "", list[bytes]()
    for line in [
        *stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"),
        b"",
    ]:
        if not line:
            if data:
                expected.append(SseEvent(name, b"\n".join(data)))
            name, data = "", []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            name = line[6:].strip().decode()
    assert parse(stream) == expected


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_event_without_end_is_refused_before_it_fills_the_memory(size: int) -> None:
    parser = SseParser(max_event_bytes=10_000)
    sent = 0
    with pytest.raises(BadResponse, match="larger than 10000 bytes"):  # noqa: PT012
        while sent < 20_000:
            sent += size
            parser.feed(b"d" * size)
    assert sent <= 10_000 + size


@pytest.mark.parametrize(
    ("chunks", "held"),
    [
        ([], False), ([b"data: x\n\n"], False), ([b": ping"], False),
        ([b":", b" ping\n", b":"], False), ([b"\n"], False), ([b"\n", b":"], False),
        ([b"data: x\n\n: p"], False), ([b"d"], True), ([b": ping\n\nd"], True),
        ([b"\n", b"data"], True), ([b"event: ping\n"], True),
    ],
)  # fmt: skip
def test_a_part_of_an_event_is_told_from_a_part_of_a_comment(
    chunks: list[bytes], held: bool
) -> None:
    parser = SseParser()
    for chunk in chunks:
        parser.feed(chunk)
    assert parser.holds_data is held


def test_many_events_may_together_be_larger_than_the_limit() -> None:
    parser = SseParser(max_event_bytes=100)
    event = b"data: " + b"x" * 80 + b"\n\n"
    assert sum(len(parser.feed(piece)) for piece in [event[:50], event[50:]] * 50) == 50
