"""Every fault of the wire becomes one of our errors, and the right one."""

import email.utils
import inspect
import ssl
import time

import httpx
import pytest

from agentcore.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BrokenStream,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerError,
    Timeout,
    Unreachable,
)
from agentcore.providers._faults import (
    error_from_response,
    error_from_transport,
    error_in_stream,
    parse_error,
    rate_limits,
    redact,
    retry_after,
)

HTTPX_ERRORS = sorted(
    (
        cls
        for _, cls in inspect.getmembers(httpx, inspect.isclass)
        if issubclass(cls, Exception) and not issubclass(cls, Warning)
    ),
    key=lambda cls: cls.__name__,
)
SURELY_NOT_SENT = {"ConnectTimeout", "ConnectError", "PoolTimeout", "ProxyError"}


def made(cls: type[Exception]) -> Exception:
    request = httpx.Request("POST", "http://x")
    if cls is httpx.HTTPStatusError:
        return cls("x", request=request, response=httpx.Response(429))
    if cls in (httpx.StreamConsumed, httpx.ResponseNotRead, httpx.RequestNotRead):
        return cls()
    return httpx.StreamClosed() if cls is httpx.StreamClosed else cls("no luck")


@pytest.mark.parametrize("cls", HTTPX_ERRORS)
def test_whatever_httpx_raises_becomes_a_provider_error(cls: type[Exception]) -> None:
    error = error_from_transport(made(cls), host="api.example", in_stream=True)
    assert isinstance(error, ProviderError)
    assert "api.example" in str(error)
    assert error.in_stream


@pytest.mark.parametrize("cls", [c for c in HTTPX_ERRORS if c is not httpx.HTTPError])
def test_unreachable_is_said_only_where_nothing_was_sent(cls: type[Exception]) -> None:
    error = error_from_transport(made(cls))
    assert isinstance(error, Unreachable) == (cls.__name__ in SURELY_NOT_SENT)


@pytest.mark.parametrize(
    ("fault", "expected", "retryable"),
    [
        (httpx.ReadTimeout("x"), Timeout, True),
        (httpx.WriteTimeout("x"), Timeout, True),
        (httpx.ReadError("x"), BrokenStream, True),
        (httpx.RemoteProtocolError("x"), BrokenStream, True),
        (httpx.LocalProtocolError("x"), BadRequest, False),
        (httpx.UnsupportedProtocol("x"), BadRequest, False),
        (httpx.InvalidURL("x"), BadRequest, False),
        (httpx.DecodingError("x"), BadResponse, False),
        (httpx.HTTPStatusError(
            "x", request=httpx.Request("GET", "http://x"), response=httpx.Response(503)
        ), Overloaded, True),
        (ValueError("something else"), BrokenStream, True),
    ],
)  # fmt: skip
def test_a_transport_fault_has_its_own_type(
    fault: Exception, expected: type[ProviderError], retryable: bool
) -> None:
    error = error_from_transport(fault)
    assert type(error) is expected
    assert error.retryable is retryable


def test_a_certificate_nobody_trusts_is_not_tried_again() -> None:
    fault = httpx.ConnectError("certificate verify failed")
    fault.__cause__ = ssl.SSLCertVerificationError()
    error = error_from_transport(fault)
    assert type(error) is Unreachable
    assert not error.retryable


BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthFailed, 402: QuotaExhausted, 403: AuthFailed, 408: Timeout,
    429: RateLimited, 498: Overloaded, 503: Overloaded, 504: Timeout, 524: Timeout,
    529: Overloaded,
}  # fmt: skip
FINAL = {501, 505}
AGAIN = {408, 409, 425, 429, 498}


@pytest.mark.parametrize("status", range(400, 600))
def test_every_status_has_its_type_and_says_whether_to_try_again(status: int) -> None:
    error = error_from_response(status, {}, b"")
    assert type(error) is BY_STATUS.get(
        status, BadRequest if status < 500 else ServerError
    )
    assert error.status == status
    assert error.retryable == (
        status in AGAIN or (status >= 500 and status not in FINAL)
    )


def test_a_redirect_is_not_followed_and_not_tried_again() -> None:
    error = error_from_response(307, {"location": "https://elsewhere"}, b"")
    assert type(error) is BadResponse
    assert not error.retryable


LLAMA_CPP_OVERFLOW = (
    b'{"error":{"code":400,"message":"the request exceeds the available context size, '
    b'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,'
    b'"n_ctx":8192}}'
)
VLLM_OVERFLOW = (
    b'{"object":"error","message":"This model\'s maximum context length is 4096 tokens.'
    b'","type":"BadRequestError","code":400}'
)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, b'{"error":{"message":"x","code":"insufficient_quota"}}', QuotaExhausted),
        (429, b'{"error":{"message":"x","type":"insufficient_quota"}}', QuotaExhausted),
        (429, b'{"error":{"message":"x","code":"1113"}}', QuotaExhausted),
        (429, b'{"error":{"message":"x","type":"exceeded_current_quota_error"}}',
         QuotaExhausted),
        (403, b'{"error":{"message":"x","code":"AccountOverdueError"}}',
         QuotaExhausted),
        (402, b'{"error":{"message":"Insufficient Balance"}}', QuotaExhausted),
        (400, b'{"code":"Arrearage","message":"x"}', QuotaExhausted),
        (429, b'{"error":{"message":"x","code":"rate_limit_exceeded"}}', RateLimited),
        (400, b'{"error":{"message":"x","code":"context_length_exceeded"}}',
         ContextOverflow),
        (400, LLAMA_CPP_OVERFLOW, ContextOverflow),
        (400, VLLM_OVERFLOW, ContextOverflow),
        (400, b'{"error":{"message":"prompt is too long: 9 tokens"}}', ContextOverflow),
        (413, b"input length 5 exceeds the limit", ContextOverflow),
        (400, b'{"error":{"message":"Unknown parameter: foo"}}', BadRequest),
        (401, b'{"detail":"no"}', AuthFailed),
    ],
)  # fmt: skip
def test_the_words_of_the_body_go_before_the_status(
    status: int, body: bytes, expected: type[ProviderError]
) -> None:
    error = error_from_response(status, {}, body)
    assert type(error) is expected
    assert error.retryable is (expected is RateLimited)


def test_a_model_that_breaks_the_tool_format_is_not_asked_the_same_again() -> None:
    body = (
        b'{"error":{"code":500,"message":"The model produced output that does not '
        b'match the expected peg-native format","type":"server_error"}}'
    )
    error = error_from_response(500, {}, body)
    assert type(error) is ServerError
    assert not error.retryable
    assert error_from_response(500, {}, b'{"error":{"message":"oops"}}').retryable


def test_the_vendor_may_say_itself_whether_to_retry() -> None:
    assert not error_from_response(500, {"X-Should-Retry": "false"}, b"").retryable
    assert error_from_response(400, {"x-should-retry": "true"}, b"").retryable


def test_an_empty_account_is_not_retried_even_if_asked_to() -> None:
    error = error_from_response(402, {"x-should-retry": "true"}, b"")
    assert not error.retryable


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "m", "code": "rate_limit_exceeded"}}, RateLimited),
        ({"error": {"message": "m", "code": 502}}, ServerError),
        ({"error": {"message": "m", "code": 429}}, RateLimited),
        ({"error": {"message": "m", "type": "overloaded_error"}}, Overloaded),
        ({"error": {"message": "m", "type": "invalid_request_error"}}, BadRequest),
        ({"error": {"code": 400, "type": "exceed_context_size_error"}},
         ContextOverflow),
        ({"error": {"message": "m", "code": "insufficient_quota"}}, QuotaExhausted),
        ({"error": "plain words"}, ServerError),
        ({"object": "error", "message": "m", "code": 400}, BadRequest),
    ],
)  # fmt: skip
def test_an_error_inside_the_stream_is_read_by_its_own_code(
    body: object, expected: type[ProviderError]
) -> None:
    error = error_in_stream(body, {})
    assert type(error) is expected
    assert error.in_stream


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"m"}}', "m"),
        (b'{"error":"m"}', "m"),
        (b'{"message":"m"}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'[{"error":{"message":"m"}}]', "m"),
        (b"m\n", "m"),
        (b"<html><head><style>p{}</style></head><h1>502</h1> Bad</html>", "502 Bad"),
        (b"", ""), (b"[]", ""), (b"{}", ""), (b"null", ""), (b'"m"', "m"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"error":null,"message":3}', "3"),
        (b'{"error":{"message":{"deep":1}}}', "{'deep': 1}"),
    ],
)  # fmt: skip
def test_an_error_body_of_any_shape_is_read(body: bytes, message: str) -> None:
    assert message in parse_error(body).message


def test_the_message_names_who_answered_what_and_why() -> None:
    body = b'{"error":{"message":"slow down","type":"requests","code":"rate_limit"}}'
    headers = {"Retry-After": "2", "X-Request-Id": "req_1"}
    error = error_from_response(429, headers, body, host="api.example")
    assert str(error) == "api.example answered 429 (rate_limit, requests): slow down"
    assert (error.retry_after, error.request_id) == (2.0, "req_1")


def test_a_key_that_the_vendor_repeats_does_not_appear() -> None:
    key = "sk-very-secret-" + "x" * 700
    body = b'{"error":{"message":"Incorrect API key: %s"}}' % key.encode()
    text = str(error_from_response(401, {}, body, secrets=(key, "")))
    assert "very-secret" not in text
    assert "***" in text
    assert redact("a", ("",)) == "a"


def test_a_message_is_never_long() -> None:
    assert len(str(error_from_response(400, {}, b"x" * 100_000))) <= 600


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
          "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT",
          "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
    ],
)  # fmt: skip
def test_the_wait_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


def test_a_date_without_the_answers_own_is_read_against_the_clock() -> None:
    then = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < (retry_after({"retry-after": then}) or 0) <= 100


def test_the_rate_limit_headers_are_collected_as_sent() -> None:
    headers = {"x-ratelimit-reset-tokens": "6m0s", "ratelimit": "a", "server": "b"}
    assert rate_limits(headers) == {
        "x-ratelimit-reset-tokens": "6m0s",
        "ratelimit": "a",
    }
