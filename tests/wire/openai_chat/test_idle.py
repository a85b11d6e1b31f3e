"""A connection that is kept alive while nothing of the answer comes."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from tests.wire.openai_chat.raw_server import (
    DONE,
    HELLO,
    Answer,
    head,
    said,
    serving,
    streaming,
)

from agentcore import ToolLoopAgent
from agentcore.errors import Overloaded, ProviderError, Timeout
from agentcore.policies.retry import RetryPolicy
from agentcore.providers import _http
from agentcore.providers.openai_chat import HttpTimeout, OpenAIChatModel, client
from agentcore.types.messages import user_text
from agentcore.types.model import ModelRequest, ModelResponse, ResponseDone

REQUEST = ModelRequest([user_text("hi")])
HALF = (said("Hel"), said("lo"))
QUICK = HttpTimeout(connect=5, read=5, idle=0.2)
PATIENT = HttpTimeout(connect=5, read=5, idle=1)

KEPT_ALIVE: dict[str, Sequence[bytes]] = {
    "comments": [b": ping\n\n"],
    "comments without a blank line": [b": ping\n"],
    "comments with CRLF": [b": ping\r\n\r\n"],
    "comments byte by byte": [bytes([byte]) for byte in b": ping\n\n"],
    "blank lines": [b"\n"],
    "events without data": [b"event: ping\n\n", b"id: 7\n\n", b"retry: 10\n\n"],
}


def alive(
    *pieces: bytes, ping: Sequence[bytes] = (b": ping\n\n",), every: float = 0.01
) -> Answer:
    """These pieces, and from then on only signs of life, until the client leaves."""

    async def answer(stream: SocketStream) -> bool:
        await streaming(*pieces, finish=False)(stream)
        while True:
            for piece in ping:
                await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                await anyio.sleep(every)

    return answer


async def ask(answer: Answer, patience: float | HttpTimeout = QUICK) -> ModelResponse:
    async with serving(answer) as server:
        model = OpenAIChatModel("m", base_url=server.url, http_timeout=patience)
        with anyio.fail_after(10):
            async with model.stream(REQUEST) as deltas:
                *_, last = [delta async for delta in deltas]
        assert isinstance(last, ResponseDone)
        return last.response


async def failing(answer: Answer, patience: float | HttpTimeout = QUICK) -> Any:
    with pytest.raises(ProviderError) as caught:
        await ask(answer, patience)
    return caught.value


@pytest.mark.parametrize("begun", [False, True], ids=["at once", "after text"])
@pytest.mark.parametrize("ping", KEPT_ALIVE)
async def test_a_stream_that_is_only_kept_alive_ends_and_may_be_tried_again(
    ping: str, begun: bool
) -> None:
    pieces = HALF if begun else ()
    error = await failing(alive(*pieces, ping=KEPT_ALIVE[ping]))
    assert type(error) is Timeout
    assert error.retryable
    assert error.in_stream is begun
    assert "kept the connection alive" in str(error)


async def test_a_number_of_seconds_counts_what_is_said_and_not_signs_of_life() -> None:
    assert type(await failing(alive(*HALF), 0.2)) is Timeout


async def test_a_reply_that_is_late_and_kept_alive_is_waited_for() -> None:
    pings = [b": ping\n\n"] * 20

    async def answer(stream: SocketStream) -> bool | None:
        await streaming(*pings, finish=False)(stream)
        for piece in HELLO:  # each within the time, all of them not
            await anyio.sleep(0.3)
            ping = b": ping\n\n"
            for data in (ping, piece):
                await stream.send(b"%x\r\n%s\r\n" % (len(data), data))
        await stream.send(b"0\r\n\r\n")
        return True

    assert (await ask(answer, PATIENT)).text == "Hello"


async def test_a_long_event_that_comes_in_small_pieces_is_data() -> None:
    async def answer(stream: SocketStream) -> bool | None:
        await streaming(finish=False)(stream)
        whole = said("Hello", finish="stop")
        for start in range(0, len(whole), 8):
            piece = whole[start : start + 8]
            await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            await anyio.sleep(0.03)
        await streaming_end(stream)
        return True

    assert (await ask(answer)).text == "Hello"


async def streaming_end(stream: SocketStream) -> None:
    await stream.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(DONE), DONE))


async def test_a_whole_reply_may_be_preceded_by_blank_lines_for_a_while_only() -> None:
    def slow(blanks: int) -> Answer:
        async def answer(stream: SocketStream) -> bool:
            lines = ["transfer-encoding: chunked"]
            await stream.send(head("200 OK", "application/json", lines))
            for _ in range(blanks):
                await stream.send(b"1\r\n\n\r\n")
                await anyio.sleep(0.02)
            body = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'
            await stream.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            return False

        return answer

    assert (await ask(slow(3), PATIENT)).text == "Hi"
    assert type(await failing(slow(1000))) is Timeout


async def test_a_reply_that_lacks_nothing_does_not_wait_for_comments_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "_GRACE_SECONDS", 0.1)
    response = await ask(alive(*HELLO[:4]), HttpTimeout(idle=60))
    assert response.text == "Hello"


async def test_an_error_body_that_trickles_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_http, "ERROR_BODY_SECONDS", 0.1)

    async def answer(stream: SocketStream) -> bool:
        await stream.send(head("503 No", "text/plain", ["content-length: 9999"]))
        while True:
            await stream.send(b"x")
            await anyio.sleep(0.01)

    error = await failing(answer, 60)
    assert type(error) is Overloaded
    assert error.status == 503


async def test_a_run_tries_again_after_a_stream_that_was_only_kept_alive() -> None:
    async with serving(alive(), streaming(*HELLO)) as server:
        model = OpenAIChatModel("m", base_url=server.url, http_timeout=QUICK)
        agent = ToolLoopAgent(model, retry=RetryPolicy(base=0.01))
        result = await agent.run("hi")
    assert result.output == "Hello"
    assert result.usage.requests == 2
