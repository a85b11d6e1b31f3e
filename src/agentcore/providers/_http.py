"""One HTTP client per event loop, shared by everyone who entered the pool.

Building a client costs milliseconds and its TLS context tens of them, so both are made
when the first request needs them and kept while somebody holds the pool. A client is
bound to its loop and dies with it; a second `asyncio.run` gets a new one.

Deliberately not done here:

- Retries: attempts belong to the engine, which records each.
- Redirects: a key must not follow one to another host; they are errors.
- The environment: proxies and certificates from variables are not used
  (`trust_env=False`); a host passes `proxy=`.

This is the only module of the providers that opens connections.
"""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self
from weakref import WeakKeyDictionary

import anyio
import httpx
from anyio.lowlevel import RunVar

from agentcore._base.frozen import frozen
from agentcore._base.guard import REAL_REQUESTS_ALLOWED
from agentcore.errors import ConfigError, ProviderError, Timeout
from agentcore.providers._faults import error_from_response, error_from_transport

ERROR_BODY_LIMIT: Final = 64 * 1024
"""Bytes of an error body that are read; the rest is not fetched."""
ERROR_BODY_SECONDS: Final = 10.0
"""How long one is read; what has come by then has to do."""

_CLOSE_SECONDS: Final = 5.0
_KEPT_CONNECTIONS: Final = 100


@frozen
class HttpTimeout:
    """How patient a request is, in seconds. There is no limit on the whole answer."""

    connect: float = 10.0
    """Until a connection stands."""
    read: float = 120.0
    """Between two signs of life, of whatever kind, and until the first."""
    idle: float = 600.0
    """In which only the connection is kept alive (`: ping`) and nothing of the answer
    comes. Some vendors let a request wait for minutes like that."""


class Answer:
    """A vendor's answer: its head, and its body a piece at a time."""

    __slots__ = (
        "_body",
        "_idle_seconds",
        "_idle_since",
        "_response",
        "headers",
        "host",
        "status",
    )

    def __init__(self, response: httpx.Response, host: str, idle: float) -> None:
        self._response = response
        self._body = response.aiter_bytes()
        self._idle_seconds = idle
        self._idle_since: float | None = None
        self.headers: Mapping[str, str] = response.headers
        self.host = host
        self.status = response.status_code

    async def read(self) -> bytes | None:
        """The next piece of the body as it arrives, or `None` at its end.

        Raises:
            ProviderError: the connection failed; `in_stream` is left to the caller.
        """
        try:
            return await anext(self._body, None)
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise error_from_transport(error, host=self.host) from error

    async def read_all(self, limit: int) -> bytes:
        """What is left of the body, at most about `limit` bytes; never fails.

        For error bodies: where one breaks off, its status is an answer too.
        """
        body = b""
        in_time = anyio.move_on_after(ERROR_BODY_SECONDS)
        with in_time, contextlib.suppress(ProviderError):
            while len(body) < limit and (piece := await self.read()) is not None:
                body += piece
        return body[:limit]

    def note_data(self) -> None:
        """The last piece held something of the answer."""
        self._idle_since = None

    def note_idle(self) -> float:
        """The last piece held nothing of the answer; seconds for which that is so.

        Such pieces keep `HttpTimeout.read` from ever being over.

        Raises:
            Timeout: it has been so for too long.
        """
        now = anyio.current_time()
        if self._idle_since is None:
            self._idle_since = now
        idle = now - self._idle_since
        if idle >= self._idle_seconds:
            raise Timeout(
                f"{self.host} kept the connection alive for {idle:.0f} s and sent "
                "nothing of the answer"
            )
        return idle

    async def aclose(self) -> None:
        """Close the connection, or give it back if the body was read to its end."""
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._response.aclose()
            # httpx reads through a row of async generators and closes only the
            # connection. What is left of them would be found by the garbage collector,
            # which trio reports. Run them out: on a closed connection each stops.
            with contextlib.suppress(Exception):
                while True:
                    await anext(self._body)


class _Shared:
    """A client, made for the first request, and how many hold it."""

    __slots__ = ("client", "holders")

    def __init__(self) -> None:
        self.client: httpx.AsyncClient | None = None
        self.holders = 0


# Kept per event loop by anyio; a pool that is dropped leaves it by itself.
_CLIENTS: RunVar[WeakKeyDictionary[HttpPool, _Shared]] = RunVar("agentcore_clients")


class HttpPool:
    """Sends requests to one base URL; `async with` keeps its connections.

    Entering is shared and counted per event loop: the last to leave closes. A request
    outside of any `async with` works too, with a connection of its own.

    Args:
        base_url: `http://` or `https://`, with the path every request begins with.
        timeout: patience.
        proxy: URL of an HTTP proxy, or `None` for none.

    Raises:
        ConfigError: the URL is none of these.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout: HttpTimeout | None = None,
        proxy: str | None = None,
    ) -> None:
        self._base = _checked(base_url)
        self.host: str = self._base.host
        self._timeout = timeout or HttpTimeout()
        self._proxy = proxy
        self._tls: ssl.SSLContext | None = None

    async def __aenter__(self) -> Self:
        """Hold the client of this event loop."""
        self._here().holders += 1
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of it; the last one closes it, cancelled or not."""
        clients = _CLIENTS.get()
        shared = clients[self]
        shared.holders -= 1
        if not shared.holders:
            del clients[self]
            if shared.client is not None:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await shared.client.aclose()

    @asynccontextmanager
    async def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        secrets: tuple[str, ...] = (),
    ) -> AsyncGenerator[Answer, None]:
        """Send a body; gives the successful answer with its body still unread.

        Leaving closes the answer, and with it the connection if it was not read to the
        end.

        Raises:
            ProviderError: as the tables of `_faults` say.
            ConfigError: real requests are forbidden here; nothing was sent.
        """
        self._guard()
        async with self:
            response = await self._send(path, body, headers)
            answer = Answer(response, self.host, self._timeout.idle)
            try:
                if not 200 <= answer.status < 300:
                    raise error_from_response(
                        answer.status,
                        answer.headers,
                        await answer.read_all(ERROR_BODY_LIMIT),
                        host=self.host,
                        secrets=secrets,
                    )
                yield answer
            finally:
                await answer.aclose()

    async def _send(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> httpx.Response:
        shared = self._here()
        client = shared.client = shared.client or self._new_client()
        url = self._base.copy_with(path=self._base.path.rstrip("/") + path)
        try:
            request = client.build_request("POST", url, content=body, headers=headers)
            return await client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise error_from_transport(error, host=self.host) from error

    def _guard(self) -> None:
        if REAL_REQUESTS_ALLOWED.get() or is_loopback(self.host):
            return
        raise ConfigError(
            f"a real request to {self.host} is forbidden here; use ScriptedModel or a "
            "server on loopback, or allow real requests for this test"
        )

    def _here(self) -> _Shared:
        try:
            clients = _CLIENTS.get()
        except LookupError:
            clients = WeakKeyDictionary()
            _CLIENTS.set(clients)
        shared = clients.get(self)
        if shared is None:
            shared = clients[self] = _Shared()
        return shared

    def _new_client(self) -> httpx.AsyncClient:
        timeout = self._timeout
        # No limit on connections: how many requests run is the host's decision, and
        # a queue in here would look like a slow vendor.
        kept = _KEPT_CONNECTIONS if _keeps_connections(self.host) else 0
        limits = httpx.Limits(max_keepalive_connections=kept)
        return httpx.AsyncClient(
            verify=self._trust(),
            timeout=httpx.Timeout(timeout.read, connect=timeout.connect),
            limits=limits,
            proxy=self._proxy,
            trust_env=False,
            follow_redirects=False,
        )

    def _trust(self) -> ssl.SSLContext | bool:
        """The TLS context, made once; plain HTTP needs none and pays for none."""
        if self._base.scheme == "http" and self._proxy is None:
            return False
        if self._tls is None:
            self._tls = httpx.create_ssl_context(trust_env=False)
        return self._tls


def is_loopback(host: str) -> bool:
    """Whether a request to this host stays on this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _keeps_connections(host: str) -> bool:
    """Whether a connection is used for more than one request.

    Not on loopback: connecting there is cheap, and llama.cpp's server promises to keep
    a connection and closes it behind each streamed answer, so the next request on it
    may be lost.
    """
    return not is_loopback(host)


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError) as error:
        raise ConfigError(f"base_url is no URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(
            f"base_url must begin with http:// or https://, not {base_url!r}"
        )
    return url
