"""Exact bytes on a real connection: layouts, cuts, lifetimes, and what is refused."""

import gc
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from tests.wire.openai_chat.raw_server import (
    DONE,
    HELLO,
    USAGE,
    Answer,
    RawServer,
    event,
    hanging,
    head,
    plain,
    raw,
    said,
    serving,
    streaming,
)

from agentcore._base.guard import REAL_REQUESTS_ALLOWED
from agentcore.errors import (
    AuthFailed,
    BadResponse,
    BrokenStream,
    ConfigError,
    ContextOverflow,
    Overloaded,
    ProviderError,
    RateLimited,
    Timeout,
    Unreachable,
)
from agentcore.providers import _http
from agentcore.providers._http import is_loopback
from agentcore.providers.openai_chat import HttpTimeout, OpenAIChatModel, client
from agentcore.types.messages import user_text
from agentcore.types.model import (
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
    TextDelta,
)

REQUEST = ModelRequest([user_text("hi")])
KEY = "sk-loopback-0123456789"


def model_of(server: RawServer, **settings: Any) -> OpenAIChatModel:
    return OpenAIChatModel("m", base_url=server.url, **{"api_key": KEY, **settings})


async def drain(model: OpenAIChatModel) -> tuple[list[ModelDelta], ModelResponse]:
    async with model.stream(REQUEST) as deltas:
        seen = [delta async for delta in deltas]
    last = seen.pop()
    assert isinstance(last, ResponseDone)
    return seen, last.response


async def ask(*answers: Answer, **settings: Any) -> tuple[list[Any], ModelResponse]:
    async with serving(*answers) as server:
        return await drain(model_of(server, **settings))


async def failing(*answers: Answer, **settings: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(*answers, **settings)
    assert KEY not in str(caught.value)
    return caught.value


def crlf(*pieces: bytes) -> list[bytes]:
    return [piece.replace(b"\n", b"\r\n") for piece in pieces]


WEATHER = said("Grüße 🌦")
LAYOUTS: dict[str, list[bytes]] = {
    "as the format says": [*HELLO],
    "all in one piece": [b"".join(HELLO)],
    "byte by byte": [bytes([byte]) for byte in b"".join(HELLO)],
    "CRLF": crlf(*HELLO),
    "CRLF, byte by byte": [bytes([byte]) for byte in b"".join(crlf(*HELLO))],
    "no blank behind data:": [p.replace(b"data: ", b"data:") for p in HELLO],
    "comments and keep-alives": [b": OPENROUTER PROCESSING\n\n", *HELLO[:2], b":\n\n",
                                 *HELLO[2:]],
    "a byte order mark": [b"\xef\xbb\xbf", *HELLO],
    "no last blank line": [*HELLO[:4], DONE.rstrip(b"\n")],
    "no [DONE]": [*HELLO[:4]],
    "nothing but a reason to finish": [*HELLO[:2], said(finish="stop"), USAGE],
    "event names": [b"event: message\n" + piece for piece in HELLO],
    "an event of two lines": [b'data: {"choices":\ndata: []}\n\n', *HELLO],
    "bytes behind the end": [*HELLO, b": bye\n\n"],
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_reply_is_the_same_in_every_layout(layout: str) -> None:
    seen, response = await ask(streaming(*LAYOUTS[layout]))
    assert seen == [TextDelta("Hel"), TextDelta("lo")]
    assert response.text == "Hello"
    assert response.finish == "stop"
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (5, 7)
    assert response.model == "m-1"


TEXT_AT = WEATHER.index(b"Gr")


@pytest.mark.parametrize("cut", range(TEXT_AT, TEXT_AT + 14))
async def test_a_character_may_be_cut_in_two(cut: int) -> None:
    pieces = [WEATHER[:cut], WEATHER[cut:], said(finish="stop"), DONE]
    seen, _ = await ask(streaming(*pieces))
    assert seen == [TextDelta("Grüße 🌦")]


async def test_a_server_that_ignores_stream_is_understood() -> None:
    body = (
        b'{"id":"c","model":"m-1","choices":[{"message":{"content":"Hello"},'
        b'"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}'
    )
    seen, response = await ask(plain("200 OK", body))
    assert seen == [TextDelta("Hello")]
    assert response.usage is not None


async def test_the_headers_of_the_answer_are_kept() -> None:
    extra = ["x-request-id: req_7", "x-ratelimit-remaining-tokens: 99"]
    _, response = await ask(streaming(*HELLO, extra=extra))
    assert response.request_id == "req_7"
    assert response.rate_limits == {"x-ratelimit-remaining-tokens": "99"}


async def test_what_was_sent_is_what_was_meant() -> None:
    async def fresh() -> dict[str, str]:
        return {"X-Trace": "t-1", "User-Agent": "host/1"}

    async with serving(streaming(*HELLO)) as server:
        await drain(model_of(server, headers=fresh))
    sent = server.last
    assert sent.line == "POST /v1/chat/completions HTTP/1.1"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["accept-encoding"] == "identity"
    assert (sent.headers["x-trace"], sent.headers["user-agent"]) == ("t-1", "host/1")
    assert sent.json["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_query_in_the_address_is_kept() -> None:
    async with serving(streaming(*HELLO)) as server:
        server.url += "/?api-version=1"
        await drain(model_of(server, headers={"api-key": "k"}, api_key=None))
    assert server.last.line == "POST /v1/chat/completions?api-version=1 HTTP/1.1"
    assert "authorization" not in server.last.headers


# --- faults -----------------------------------------------------------------------

HALF = (said("Hel"), said("lo"))


CUTS: dict[str, tuple[Answer, bool]] = {
    "a clean end": (streaming(*HALF), True),
    "a cut connection": (streaming(*HALF, finish=False), True),
    "a cut inside an event": (streaming(*HALF, said("x")[:-9], finish=False), True),
    "a clean end inside an event": (streaming(*HALF, said("x")[:-9]), True),
    "nothing": (streaming(), False),
    "the marker alone": (streaming(DONE), False),
    "a cut behind the finish": (streaming(said(finish="stop"), finish=False), False),
    "no answer": (raw(b""), False),
    "half a head": (raw(b"HTTP/1.1 200 OK\r\ncontent-"), False),
    "no HTTP": (raw(b"nonsense\r\n\r\n"), False),
}


@pytest.mark.parametrize("cut", CUTS)
async def test_a_stream_that_ends_early_is_broken_and_may_be_tried_again(
    cut: str,
) -> None:
    answer, in_stream = CUTS[cut]
    error = await failing(answer)
    assert type(error) is BrokenStream
    assert error.in_stream is in_stream
    assert error.retryable


async def test_a_reply_that_lacks_nothing_is_complete_even_if_cut() -> None:
    seen, response = await ask(streaming(*HELLO[:4], finish=False))
    assert (len(seen), response.text) == (2, "Hello")


async def test_a_reply_that_lacks_nothing_does_not_wait_for_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "_GRACE_SECONDS", 0.1)
    with anyio.fail_after(5):
        _, response = await ask(hanging(*HELLO[:4]))
    assert response.text == "Hello"


@pytest.mark.parametrize(
    ("pieces", "expected", "in_stream"),
    [
        ([*HALF, event({"error": {"message": "busy", "code": 503}})], Overloaded, True),
        ([event({"error": {"message": "x", "code": "rate_limit_exceeded"}})],
         RateLimited, False),
        ([*HALF, b'event: error\ndata: {"message": "m", "code": 429}\n\n'],
         RateLimited, True),
        ([*HALF, b"event: error\ndata: it broke\n\n"], ProviderError, True),
        ([*HALF, b'event: error\ndata: {"error": "m"}\n\n'], ProviderError, True),
        ([event({"error": {"type": "exceed_context_size_error", "code": 400}})],
         ContextOverflow, False),
        ([*HALF, b"data: {oops}\n\n"], BadResponse, True),
        ([*HALF, b'data: "word"\n\n', DONE], BadResponse, True),
    ],
)  # fmt: skip
async def test_an_error_in_the_stream_is_found(
    pieces: list[bytes], expected: type[ProviderError], in_stream: bool
) -> None:
    error = await failing(streaming(*pieces, extra=["x-request-id: req_1"]))
    assert isinstance(error, expected)
    assert error.in_stream is in_stream
    assert error.request_id == "req_1"


async def test_a_key_inside_an_error_of_the_stream_does_not_appear() -> None:
    error = await failing(
        streaming(event({"error": {"message": f"bad key {KEY} x-secret-value"}})),
        headers={"x-other": "x-secret-value"},
    )
    assert "bad key *** ***" in str(error)


async def test_a_silent_server_is_left_after_its_time() -> None:
    error = await failing(hanging(*HALF), http_timeout=0.2)
    assert type(error) is Timeout
    assert error.in_stream


async def test_a_server_that_never_answers_is_left_after_its_time() -> None:
    async def silent(stream: SocketStream) -> None:
        await anyio.sleep(60)

    error = await failing(silent, http_timeout=HttpTimeout(connect=1, read=0.2))
    assert type(error) is Timeout
    assert not error.in_stream


async def test_nobody_there_is_unreachable() -> None:
    async with serving() as server:
        pass
    with pytest.raises(Unreachable) as caught:
        await drain(model_of(server))
    assert caught.value.retryable


async def test_an_error_status_is_read_whole() -> None:
    body = b'{"error":{"message":"slow, sk-loopback-0123456789","code":"rate"}}'
    error = await failing(
        plain("429 No", body, extra=["retry-after: 7", "x-request-id: r"])
    )
    assert type(error) is RateLimited
    assert str(error) == "127.0.0.1 answered 429 (rate): slow, ***"
    assert (error.retry_after, error.request_id, error.status) == (7.0, "r", 429)


async def test_an_endless_error_body_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(stream: SocketStream) -> bool:
        nonlocal sent
        await stream.send(head("400 No", "text/plain", ["content-length: 999999999"]))
        while sent < 50_000_000:
            await stream.send(b"x" * 10_000)
            sent += 10_000
        return False

    error = await failing(endless)
    assert error.status == 400
    assert sent < 50_000_000


async def test_an_error_body_that_breaks_off_still_has_its_status() -> None:
    broken = raw(head("503 No", "text/plain", ["content-length: 100"]) + b"half")
    assert type(await failing(broken)) is Overloaded


async def test_a_redirect_is_not_followed() -> None:
    async with serving(streaming(*HELLO)) as other:
        moved = plain("307 Go", b"", extra=[f"location: {other.url}/chat/completions"])
        error = await failing(moved)
    assert type(error) is BadResponse
    assert other.requests == []


async def test_a_web_page_is_no_reply() -> None:
    error = await failing(plain("200 OK", b"<html>", "text/html; charset=utf-8"))
    assert type(error) is BadResponse
    assert "base_url" in str(error)


async def test_a_reply_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_EVENT_BYTES", 1000)
    error = await failing(plain("200 OK", b'{"choices": "' + b"x" * 5000))
    assert type(error) is BadResponse


async def test_a_key_function_that_fails_stops_the_request() -> None:
    def fails() -> str:
        raise OSError("vault closed")

    async with serving(streaming(*HELLO)) as server:
        with pytest.raises(AuthFailed, match="raised OSError"):
            await drain(model_of(server, api_key=fails))
    assert server.requests == []


# --- lifetimes --------------------------------------------------------------------


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats the server of the test as one that connections are kept to."""
    monkeypatch.setattr(_http, "_keeps_connections", lambda host: True)


async def test_on_loopback_each_request_has_its_own_connection() -> None:
    async with serving(streaming(*HELLO)) as server, model_of(server) as model:
        for _ in range(3):
            await drain(model)
        assert server.connections == 3


@pytest.mark.usefixtures("far_away")
async def test_inside_async_with_the_connection_is_used_again() -> None:
    async with serving(streaming(*HELLO)) as server:
        model = model_of(server)
        async with model, model:  # shared and counted
            for _ in range(3):
                await drain(model)
        assert server.connections == 1
        await drain(model)
        assert server.connections == 2
        await _closed(server)


@pytest.mark.usefixtures("far_away")
async def test_an_error_does_not_cost_the_connection() -> None:
    async with serving(plain("429 No", b"{}"), streaming(*HELLO)) as server:
        async with model_of(server) as model:
            with pytest.raises(RateLimited):
                await drain(model)
            await drain(model)
        assert server.connections == 1


async def test_leaving_early_closes_the_connection() -> None:
    async with serving(hanging(*HALF)) as server, model_of(server) as model:
        async with model.stream(REQUEST) as deltas:
            assert await anext(deltas) == TextDelta("Hel")
        await _closed(server)


async def test_cancelling_closes_the_connection() -> None:
    async with serving(hanging(*HALF)) as server, model_of(server) as model:
        with anyio.move_on_after(0.2) as scope:
            await drain(model)
        assert scope.cancelled_caught
        await _closed(server)


async def test_a_model_that_is_entered_and_never_asked_makes_no_client() -> None:
    async with OpenAIChatModel("m") as model:
        assert _http._CLIENTS.get()[model._pool].client is None
    assert model._pool not in _http._CLIENTS.get()


async def test_a_stream_outlives_the_owner_that_leaves() -> None:
    async with serving(streaming(*HELLO)) as server:
        model = model_of(server)
        await model.__aenter__()
        async with model.stream(REQUEST) as deltas:
            await anext(deltas)
            await model.__aexit__(None, None, None)
            rest = [delta async for delta in deltas]
            assert isinstance(rest[-1], ResponseDone)


async def test_many_streams_at_once_do_not_mix() -> None:
    async def echo(stream: SocketStream) -> None:
        text = f"reply {id(stream)}"
        await streaming(*(said(c) for c in text), *HELLO[2:])(stream)

    replies: list[str] = []

    async def one(model: OpenAIChatModel) -> None:
        replies.append((await drain(model))[1].text)

    async with (
        serving(echo) as server,
        model_of(server) as model,
        anyio.create_task_group() as group,
    ):
        for _ in range(20):
            group.start_soon(one, model)
    assert all(reply.startswith("reply ") for reply in replies)
    assert len(replies) == 20


async def _closed(server: RawServer) -> None:
    with anyio.fail_after(5):
        while server.open:  # noqa: ASYNC110 - it is the server's count
            await anyio.sleep(0.01)


def test_one_model_serves_one_event_loop_after_another() -> None:
    models: list[OpenAIChatModel] = []

    async def run() -> None:
        async with serving(streaming(*HELLO)) as server:
            if not models:
                models.append(OpenAIChatModel("m", base_url=server.url))
            model = models[0]
            model._pool._base = _http._checked(server.url)
            async with model:
                await drain(model)

    for backend in ("asyncio", "trio", "asyncio"):
        anyio.run(run, backend=backend)


async def test_a_model_that_is_dropped_leaves_nothing_behind() -> None:
    async with serving(streaming(*HELLO)) as server:
        await drain(model_of(server))
    gc.collect()
    assert len(_http._CLIENTS.get()) == 0


def test_tls_is_set_up_once_and_only_where_it_is_needed() -> None:
    far = _http.HttpPool("https://api.example/v1")
    assert far._tls is None
    context = far._trust()
    assert far._trust() is context
    assert _http.HttpPool("http://127.0.0.1:1/v1")._trust() is False


async def test_the_environments_proxies_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    await ask(streaming(*HELLO))


@pytest.mark.usefixtures("allow_model_requests")
async def test_a_proxy_the_host_names_is_used() -> None:
    async with serving(streaming(*HELLO)) as proxy:
        address = proxy.url.removesuffix("/v1")
        model = OpenAIChatModel("m", base_url="http://far.example/v1", proxy=address)
        await drain(model)
    assert proxy.last.line.startswith("POST http://far.example/v1/chat/completions")


# --- the guard of the tests -------------------------------------------------------


async def test_where_real_requests_are_forbidden_none_leaves() -> None:
    token = REAL_REQUESTS_ALLOWED.set(False)
    try:
        with pytest.raises(ConfigError, match=r"real request to api\.example"):
            await drain(OpenAIChatModel("m", base_url="https://api.example/v1"))
        await ask(streaming(*HELLO))  # loopback stays allowed
    finally:
        REAL_REQUESTS_ALLOWED.reset(token)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("a.localhost", True), ("127.0.0.1", True),
        ("127.9.9.9", True), ("::1", True), ("10.0.0.1", False),
        ("localhost.example", False), ("api.openai.com", False), ("0.0.0.0", False),
    ],
)  # fmt: skip
def test_loopback_is_this_machine_and_nothing_else(host: str, here: bool) -> None:
    assert is_loopback(host) is here
