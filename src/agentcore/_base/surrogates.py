"""Halves of characters: legal in a Python string, but no UTF-8 can carry them.

They come from file names in tool output, and from servers that cut a stream inside a
character and escape both halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_surrogates(value: Any) -> Any:
    """The same JSON value, each lone surrogate in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {
            without_surrogates(key): without_surrogates(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


def clean(text: str) -> str:
    """The text with each lone surrogate replaced; nearly always the text itself."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return str(without_surrogates(text))
    return text
