"""The model: encodes, sends, decodes. What the format means is known elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    suppress,
)
from types import TracebackType
from typing import Any, Final, Self

import anyio
from pydantic_core import from_json
from typing_extensions import override

from agentcore._base.describe import type_name
from agentcore.errors import BadResponse, ConfigError, ProviderError
from agentcore.providers._faults import error_in_stream, rate_limits, request_id
from agentcore.providers._http import Answer, HttpPool, HttpTimeout
from agentcore.providers._keys import (
    ApiKey,
    Headers,
    MissingKey,
    current_headers,
    current_key,
)
from agentcore.providers._profiles import KNOWN, Profile, profile_of
from agentcore.providers._sse import MAX_EVENT_BYTES, SseEvent, SseParser
from agentcore.providers.openai_chat.decode import Decoder, ErrorObject
from agentcore.providers.openai_chat.encode import Encoder
from agentcore.types.model import (
    ModelCapabilities,
    ModelDelta,
    ModelRequest,
    ResponseDone,
)
from agentcore.types.options import NO_OPTIONS, Options

_PATH: Final = "/chat/completions"
_GRACE_SECONDS: Final = 5.0
"""How long a reply that has all it needs waits for its formal end."""
_DRAIN_SECONDS: Final = 0.5
_SECRET_LENGTH: Final = 8


def _check_settings(given: Mapping[str, Any]) -> None:
    """Every setting is of a type that can work; the message names the one that is not.

    Raises:
        ConfigError: it is not.
    """
    for name, (fits, wanted) in _SETTINGS.items():
        value = given[name]
        if not fits(value):
            raise ConfigError(
                f"OpenAIChatModel: {name} must be {wanted}, not {type_name(value)}"
            )


def _is_patience(value: Any) -> bool:
    if value is None or isinstance(value, HttpTimeout):
        return True
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value < _MAX_SECONDS


def _are_headers(value: Any) -> bool:
    if value is None or callable(value):
        return True
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for pair in value.items() for text in pair
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


_MAX_SECONDS: Final = 10 * 365 * 86_400
_SETTINGS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "model": (_is_text, "the vendor's name of a model"),
    "provider": (_is_text, "the name of a vendor"),
    "options": (lambda v: isinstance(v, Options), "an Options"),
    "capabilities": (
        lambda v: v is None or isinstance(v, ModelCapabilities),
        "a ModelCapabilities",
    ),
    "http_timeout": (_is_patience, "seconds above 0, or an HttpTimeout"),
    "proxy": (lambda v: v is None or _is_text(v), "the URL of a proxy"),
    "headers": (_are_headers, "a mapping of str to str, or a function giving one"),
    "api_key": (
        lambda v: v is None or _is_text(v) or callable(v),
        "a key that is not empty, or a function giving one",
    ),
}


class OpenAIChatModel:
    """A model behind OpenAI's chat completions format: OpenAI itself or a compatible.

    Immutable and shareable between tasks, event loops and threads. `async with model:`
    keeps connections open between requests; without it each request opens its own.

    Args:
        model: the vendor's name of the model, `gpt-5-mini`.
        base_url: where the API is, up to and with `/v1`. Default: the vendor's.
        api_key: the key, or a function (sync or async) asked before each request, such
            as `key_from_environment("OPENAI_API_KEY")`. It is sent as a bearer token
            and never appears in an error.
        headers: extra headers, or a function that gives them for each request; they
            win over the library's own.
        options: defaults for every request; the request's own options lie over them.
        capabilities: what the model takes, where it differs from its vendor's usual.
        http_timeout: patience. A number is the seconds in which nothing of the answer
            comes, be the connection kept alive or not; connecting may take 10.
        provider: the vendor's name: which profile applies, which block of
            `Options.provider` is sent, and the head of `id`. A name the library does
            not know needs `base_url`.
        proxy: URL of an HTTP proxy. Variables of the environment are not read.

    Raises:
        ConfigError: the provider is not known and has no `base_url`, or the URL is no
            HTTP URL.
    """

    def __init__(  # noqa: PLR0913 - each is a setting that hosts know by this name
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        headers: Headers = None,
        options: Options = NO_OPTIONS,
        capabilities: ModelCapabilities | None = None,
        http_timeout: float | HttpTimeout | None = None,
        provider: str = "openai",
        proxy: str | None = None,
    ) -> None:
        given = {"model": model, "provider": provider, "options": options}
        given |= {"capabilities": capabilities, "proxy": proxy}
        given |= {"http_timeout": http_timeout, "headers": headers, "api_key": api_key}
        _check_settings(given)
        profile = _profile(provider, base_url)
        self._id = f"{provider}:{model}"
        self._profile = profile
        self._capabilities = capabilities or profile.capabilities
        self._api_key = api_key
        self._headers = headers
        self._options = options
        # At the vendor's own address nothing works without a key; elsewhere it may.
        self._needs_key = base_url is None and headers is None
        if isinstance(http_timeout, int | float):
            http_timeout = HttpTimeout(read=http_timeout, idle=http_timeout)
        self._pool = HttpPool(
            profile.base_url if base_url is None else base_url,
            timeout=http_timeout,
            proxy=proxy,
        )
        self._encoder = Encoder(model, profile, self._capabilities)

    @property
    def id(self) -> str:
        """`provider:name`, as stored in the journal."""
        return self._id

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it can take and give."""
        return self._capabilities

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._id!r})"

    async def __aenter__(self) -> Self:
        """Keep connections of this event loop open; shared and counted."""
        await self._pool.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """The last to leave closes them."""
        await self._pool.__aexit__(exc_type, exc, traceback)

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[ModelDelta]]:
        """Send one request; iterate the deltas; the last one is `ResponseDone`.

        Leaving the context early closes the connection. Nothing is retried.

        Raises:
            ProviderError: entering fails with what the vendor answered, or before
                anything left (`BadRequest` for what cannot be sent, `AuthFailed` for a
                missing key). Iterating fails with `in_stream` telling whether output
                had arrived.
            ConfigError: real requests are forbidden in this context (tests).
        """
        return self._stream(request)

    @asynccontextmanager
    async def _stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncIterator[ModelDelta], None]:
        body = self._encoder.encode(request, self._options)
        headers, secrets = await self._request_headers()
        async with (
            self._pool.post(_PATH, body, headers, secrets=secrets) as answer,
            aclosing(self._deltas(answer, secrets)) as deltas,
        ):
            yield deltas

    async def _request_headers(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The headers, and what in them must not appear in an error."""
        key = await current_key(self._api_key)
        if key is None and self._needs_key and self._profile.key_name is not None:
            raise MissingKey(
                f"{self._id} needs a key and none is set; nothing was sent. Pass "
                f"api_key=, for example key_from_environment("
                f"{self._profile.key_name!r})"
            )
        headers = {
            "accept": "text/event-stream, application/json",
            # A compressed stream would arrive in lumps.
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "agentcore",
        }
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        extra = await current_headers(self._headers)
        headers.update(extra)
        values = (value.removeprefix("Bearer ") for value in extra.values())
        secrets = (key or "", *(v for v in values if len(v) >= _SECRET_LENGTH))
        return headers, secrets

    async def _deltas(
        self, answer: Answer, secrets: tuple[str, ...]
    ) -> AsyncGenerator[ModelDelta, None]:
        decoder = Decoder()
        parser = _parser_for(answer)
        try:
            ended = False
            while not (ended or decoder.complete):
                piece = await _next(answer, decoder)
                ended = piece is None
                events = parser.end() if piece is None else parser.feed(piece)
                if events or parser.holds_data:
                    answer.note_data()
                elif not ended:
                    idle = answer.note_idle()
                    ended = decoder.may_end and idle >= _GRACE_SECONDS
                for event in events:
                    for delta in _feed(decoder, event, ended):
                        yield delta
            last: list[ModelDelta] = []
            response = decoder.finish(
                last,
                request_id=request_id(answer.headers),
                rate_limits=rate_limits(answer.headers),
            )
        except ErrorObject as error:
            raise error_in_stream(
                error.body,
                answer.headers,
                host=answer.host,
                secrets=secrets,
                in_stream=decoder.started,
            ) from None
        except ProviderError as error:
            error.in_stream = decoder.started
            error.request_id = error.request_id or request_id(answer.headers)
            raise
        for delta in last:
            yield delta
        # Before the last delta: whoever has it may leave. Read to its end, or the
        # connection could not be used again.
        await _drain(answer)
        yield ResponseDone(response)


def _profile(provider: str, base_url: str | None) -> Profile:
    profile = profile_of(provider, base_url)
    if profile is None:
        raise ConfigError(
            f"unknown provider {provider!r}: pass base_url=, or one of "
            f"{', '.join(KNOWN)}"
        )
    return profile


class _WholeBody:
    """Stands in for the parser where a server ignored `stream` and sent one object."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        self._size += len(chunk)
        if self._size > MAX_EVENT_BYTES:
            raise BadResponse(f"the reply is larger than {MAX_EVENT_BYTES} bytes")
        if self._parts or not chunk.isspace():  # blank until the reply is ready
            self._parts.append(chunk)
        return []

    @property
    def holds_data(self) -> bool:
        return bool(self._parts)

    def end(self) -> list[SseEvent]:
        return [SseEvent("whole", b"".join(self._parts))]


def _parser_for(answer: Answer) -> SseParser | _WholeBody:
    content_type = answer.headers.get("content-type", "").partition(";")[0].strip()
    if content_type == "application/json":
        return _WholeBody()
    if content_type == "text/html":
        raise BadResponse(
            f"{answer.host} answered with a web page, no reply; is base_url right?",
            status=answer.status,
        )
    return SseParser()


async def _next(answer: Answer, decoder: Decoder) -> bytes | None:
    """The next piece of the body, or `None` where the reply ends without its marker."""
    if not decoder.may_end:
        return await answer.read()
    # Some servers never send the marker, and leave the connection open or cut it.
    with anyio.move_on_after(_GRACE_SECONDS), suppress(ProviderError):
        return await answer.read()
    return None


def _feed(decoder: Decoder, event: SseEvent, ended: bool) -> list[ModelDelta]:
    if event.name == "error":
        raise ErrorObject({"error": _error_body(event.data)})
    try:
        return decoder.feed(event.data)
    except BadResponse:
        # Half an event at the end of a cut stream says nothing of its own.
        if ended and event.name != "whole":
            return []
        raise


def _error_body(data: bytes) -> object:
    try:
        body = from_json(data)
    except ValueError:
        return data.decode("utf-8", "replace")
    return body.get("error", body) if isinstance(body, dict) else body


async def _drain(answer: Answer) -> None:
    """Read what follows a complete reply; whatever it is, it does not matter."""
    with anyio.move_on_after(_DRAIN_SECONDS), suppress(ProviderError):
        while await answer.read() is not None:
            pass
