"""API keys and headers: values, or functions asked anew for every request."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from typing_extensions import override

from agentcore.errors import AgentCoreError, AuthFailed, ConfigError

ApiKey: TypeAlias = str | Callable[[], str | Awaitable[str]] | None
"""A key, a function (sync or async) that gives one for each request, or none."""

Headers: TypeAlias = (
    Mapping[str, str]
    | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]
    | None
)
"""Extra headers, or a function that gives them for each request."""


class MissingKey(AuthFailed, ConfigError):  # noqa: N818 - as in `errors`
    """No key is set where one is needed: nothing was sent, and nothing can be.

    It is both: the request failed for want of a right, and the fix is configuration.
    """


class EnvironmentKey:
    """A key read from an environment variable at each request; see there."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> str:
        """The variable's value now.

        Raises:
            MissingKey: it is not set, or empty.
        """
        # Only for a host that named the variable, or gave no more than a model string
        # such as "openai:gpt-5-mini".
        value = os.environ.get(self._name, "")  # noqa: TID251 - the one place that looks
        if not value.strip():
            raise MissingKey(
                f"no API key: set the environment variable {self._name}, or pass "
                "api_key= to the model"
            )
        return value

    @override
    def __repr__(self) -> str:
        return f"key_from_environment({self._name!r})"


def key_from_environment(name: str) -> EnvironmentKey:
    """An `api_key=` that reads the variable `name` when a request is about to leave.

    The library reads no environment by itself; this is how a host asks for it. A model
    string such as `"openai:gpt-5-mini"` uses the vendor's usual variable this way.
    """
    return EnvironmentKey(name)


async def current_key(api_key: ApiKey) -> str | None:
    """The key for the next request, or `None` where none is used.

    Raises:
        AuthFailed: the key's function failed, or gave what cannot be sent as a key.
            Nothing was sent.
    """
    value: object
    if api_key is None or isinstance(api_key, str):
        value = api_key
    else:
        value = await _ask(api_key, "api_key")
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise MissingKey("api_key is empty or no str; nothing was sent")
    key = value.strip()
    if not _sendable(key):
        raise AuthFailed("api_key holds characters no HTTP header can carry")
    return key


async def current_headers(headers: Headers) -> Mapping[str, str]:
    """The extra headers for the next request, their names in lower case.

    Raises:
        AuthFailed: the headers' function failed, or gave what no header can carry.
            Nothing was sent.
    """
    if headers is None:
        return {}
    given: object = headers
    if not isinstance(headers, Mapping):
        given = await _ask(headers, "headers")
    if not isinstance(given, Mapping):
        raise AuthFailed("headers= gave no mapping of header to value")
    for name, value in given.items():
        if not (_sendable(name) and _sendable(value)):
            raise AuthFailed(f"the header {name!r} holds what HTTP cannot carry")
    return {name.lower(): value for name, value in given.items()}


def _sendable(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable()


async def _ask(source: Callable[[], object], name: str) -> object:
    try:
        value = source()
        if inspect.isawaitable(value):
            value = await value
    except AgentCoreError:
        raise
    except Exception as error:
        # Its message may hold the secret it was about to give: name the type only.
        raise AuthFailed(
            f"the function passed as {name}= raised {type(error).__name__}; "
            "nothing was sent"
        ) from error
    return value
