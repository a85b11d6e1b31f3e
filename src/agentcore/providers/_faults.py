"""From what went wrong on the wire to one of our errors: total tables, no I/O.

Whatever status, body or transport fault comes, a `ProviderError` comes out whose type
says what may be concluded. Vendors use statuses loosely, so the body's words go first:
an empty account hides behind 429, 403 and 400, a full context behind 400, 413 and 500.
Error texts never hold a secret that the request carried.
"""

from __future__ import annotations

import email.utils
import math
import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, Final

import httpx
from pydantic_core import from_json

from agentcore._base.clock import SystemClock
from agentcore._base.frozen import frozen
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

_MESSAGE_LIMIT: Final = 600

_OVERFLOW_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens"}
)
_OVERFLOW_WORDS = re.compile(
    r"maximum context length|context.{0,10} (length|size|window).{0,20}exceed"
    r"|exceeds?.{0,30}context.{0,10}(length|size|window)|prompt is too long"
    r"|(input|prompt) (length|tokens?).{0,40}exceed|too many (input )?tokens in",
    re.IGNORECASE,
)
_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",  # moonshot
        "insufficient_balance",
        "arrearage",  # qwen
        "accountoverdueerror",  # doubao
        "1113",  # zhipu
    }
)
_QUOTA_WORDS = re.compile(r"insufficient (balance|credit|quota|funds)", re.IGNORECASE)
# llama.cpp: the model broke the tool format. At temperature 0 it will do so again.
_REPEATABLE_500 = re.compile(r"does not match the expected \S+ format", re.IGNORECASE)

_BY_STATUS: Final[Mapping[int, type[ProviderError]]] = {
    401: AuthFailed,
    402: QuotaExhausted,
    403: AuthFailed,
    408: Timeout,
    429: RateLimited,
    498: Overloaded,  # groq: no capacity in this tier
    503: Overloaded,
    504: Timeout,
    524: Timeout,  # a proxy's name for 504
    529: Overloaded,
}
# Where the same request may well succeed later, against the type's habit, or never.
_RETRYABLE: Final = {409: True, 425: True, 501: False, 505: False}

_STATUS_OF_WORD: Final = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "exceed_context_size_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "permission_error": 403,
}


@frozen
class VendorError:
    """What an error body says, whichever of the usual shapes it has."""

    message: str = ""
    type: str = ""
    code: str = ""


def parse_error(body: object) -> VendorError:
    """Read an error body: bytes, or JSON that was parsed already. Never fails."""
    if isinstance(body, bytes):
        raw = body
        try:
            body = from_json(raw)
        except ValueError:
            return VendorError(_plain(raw))
    if isinstance(body, list):
        body = body[0] if body else {}
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            # Where `error` holds one field only, the others stand beside it.
            fields = {**body, **inner}
            message = _word(fields, "message") or _word(fields, "detail")
            return VendorError(message, _word(fields, "type"), _word(fields, "code"))
        if isinstance(inner, str):
            return VendorError(inner, _word(body, "type"), _word(body, "code"))
    return VendorError(str(body) if body else "")


def error_from_response(
    status: int,
    headers: Mapping[str, str],
    body: object,
    *,
    host: str = "the vendor",
    secrets: Iterable[str] = (),
    in_stream: bool = False,
) -> ProviderError:
    """The error for an answer that is no success.

    Args:
        status: the HTTP status; for an error inside a stream, see `error_in_stream`.
        headers: the answer's headers; their names may have any case.
        body: the body, as bytes or parsed; as much of it as was read.
        host: who answered, for the message.
        secrets: what must not appear in the message even if the vendor repeats it.
        in_stream: output had already arrived.
    """
    told = parse_error(body)
    low = {name.lower(): value for name, value in headers.items()}
    kind = _kind_of(status, told)
    return kind(
        _sentence(f"{host} answered {status}", told, secrets),
        status=status,
        retry_after=retry_after(low),
        in_stream=in_stream,
        retryable=_retryable(status, told, kind, low),
        request_id=request_id(low),
    )


def error_in_stream(
    body: object,
    headers: Mapping[str, str],
    *,
    host: str = "the vendor",
    secrets: Iterable[str] = (),
    in_stream: bool = True,
) -> ProviderError:
    """The error for an error object that came inside a successful stream.

    The status was sent long before, so the object's own code or type stands for it; an
    object that names neither counts as the vendor's failure.
    """
    told = parse_error(body)
    status = _STATUS_OF_WORD.get(told.code) or _STATUS_OF_WORD.get(told.type) or 500
    if told.code.isdigit() and 400 <= int(told.code) <= 599:
        status = int(told.code)
    return error_from_response(
        status, headers, body, host=host, secrets=secrets, in_stream=in_stream
    )


def _kind_of(status: int, told: VendorError) -> type[ProviderError]:
    if 300 <= status < 400:
        return BadResponse
    words = {told.code.lower(), told.type.lower()}
    if status < 500 and (words & _QUOTA_CODES or _QUOTA_WORDS.search(told.message)):
        return QuotaExhausted
    if status in {400, 413, 422, 500} and (
        words & _OVERFLOW_CODES or _OVERFLOW_WORDS.search(told.message)
    ):
        return ContextOverflow
    return _BY_STATUS.get(status) or (ServerError if status >= 500 else BadRequest)


def _retryable(
    status: int, told: VendorError, kind: type[ProviderError], low: Mapping[str, str]
) -> bool | None:
    if kind is ServerError and _REPEATABLE_500.search(told.message):
        return False
    if kind in (QuotaExhausted, ContextOverflow):
        return False
    asked = low.get("x-should-retry")  # OpenAI knows its own failures best
    if asked in ("true", "false"):
        return asked == "true"
    return _RETRYABLE.get(status)


_TRANSPORT: Final[tuple[tuple[type[Exception], type[ProviderError], str], ...]] = (
    (httpx.ConnectTimeout, Unreachable, "did not accept a connection in time"),
    (httpx.PoolTimeout, Unreachable, "had no free connection in time"),
    (httpx.ConnectError, Unreachable, "could not be reached"),
    (httpx.ProxyError, Unreachable, "could not be reached through the proxy"),
    (httpx.UnsupportedProtocol, BadRequest, "has an address nobody can send to"),
    (httpx.InvalidURL, BadRequest, "has an address nobody can send to"),
    (httpx.LocalProtocolError, BadRequest, "was not sent an illegal request"),
    (httpx.TimeoutException, Timeout, "sent nothing for too long"),
    (httpx.DecodingError, BadResponse, "sent a body that does not decode"),
    (httpx.TooManyRedirects, BadResponse, "only redirects"),
    (httpx.NetworkError, BrokenStream, "lost the connection"),
    (httpx.ProtocolError, BrokenStream, "ended the connection early"),
    (httpx.StreamError, BrokenStream, "ended the stream early"),
)


def error_from_transport(
    error: Exception, *, host: str = "the vendor", in_stream: bool = False
) -> ProviderError:
    """The error for a fault below HTTP; total over everything httpx raises.

    `Unreachable` only where the request surely never arrived.
    """
    if isinstance(error, httpx.HTTPStatusError):
        answer = error.response
        return error_from_response(
            answer.status_code, answer.headers, b"", host=host, in_stream=in_stream
        )
    kind, words = next(
        ((kind, words) for base, kind, words in _TRANSPORT if isinstance(error, base)),
        (BrokenStream, "failed"),
    )
    reason = str(error) or type(error).__name__
    # A certificate that is not trusted now is not trusted in a second either.
    retryable = False if _is_certificate(error) else None
    return kind(
        f"{host} {words}: {reason[:_MESSAGE_LIMIT]}",
        in_stream=in_stream,
        retryable=retryable,
    )


def _is_certificate(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def retry_after(low: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date).

    A date is read against the answer's own `date`, so a wrong clock here does no harm.
    """
    if (millis := _number(low.get("retry-after-ms"))) is not None:
        return millis / 1000
    text = low.get("retry-after")
    if text is None:
        return None
    if (seconds := _number(text)) is not None:
        return seconds
    then = _timestamp(text)
    if then is None:
        return None
    now = _timestamp(low.get("date")) or SystemClock.now()
    return max(0.0, then - now)


def request_id(low: Mapping[str, str]) -> str | None:
    """The vendor's id of the request, from whichever header it uses."""
    return next((low[name] for name in _REQUEST_ID_HEADERS if low.get(name)), None)


_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-req-id", "x-trace-id", "cf-ray")


def rate_limits(low: Mapping[str, str]) -> dict[str, str]:
    """The rate-limit headers of an answer, as sent."""
    return {
        name: value
        for name, value in low.items()
        if name.startswith(("x-ratelimit-", "ratelimit", "retry-after"))
    }


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret replaced."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def _sentence(start: str, told: VendorError, secrets: Iterable[str]) -> str:
    names = dict.fromkeys(name for name in (told.code, told.type) if name)
    marks = f" ({', '.join(names)})" if names else ""
    said = f": {told.message}" if told.message else ""
    # Redacted before it is cut, or half a secret would stay.
    return redact(f"{start}{marks}{said}", secrets)[:_MESSAGE_LIMIT]


def _plain(body: bytes) -> str:
    text = body[: 4 * _MESSAGE_LIMIT].decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":  # a proxy's error page
        text = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
    return " ".join(text.split())


def _word(fields: Mapping[Any, Any], name: str) -> str:
    value = fields.get(name)
    return "" if value is None or isinstance(value, bool) else str(value)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _timestamp(text: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() if text else None
    except (TypeError, ValueError, OverflowError):
        return None
