"""Short, safe descriptions of things for messages and terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcore._base.surrogates import clean

_VALUE_LIMIT = 40
_TYPE_NAMES = {"NoneType": "None"}


def argument_summary(arguments: Mapping[str, Any]) -> str:
    """`k=v, k=v` with every value cut at 40 characters (requirements H11)."""
    return ", ".join(f"{k}={_cut(v)}" for k, v in arguments.items())


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"


def type_name(value: Any) -> str:
    """The type of a value as a user would name it."""
    name = type(value).__name__
    return _TYPE_NAMES.get(name, name)


def message_of(error: BaseException) -> str:
    """The message of an exception, whatever its `__str__` does."""
    try:
        return clean(str(error))
    except Exception:  # noqa: BLE001 - foreign code; the type still tells something
        return "(its message cannot be read)"


def error_text(error: BaseException) -> str:
    """`Type: message`, or the type alone where the message is empty."""
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
