"""Canonical JSON and hashes: the same value gives the same bytes everywhere."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic_core import to_json

_SCALARS = frozenset({str, int, bool, type(None)})


def canonical_json(value: Any) -> bytes:
    """JSON bytes with sorted keys and no blanks.

    Flat objects whose keys stand in order already, which most tool arguments are, take
    the short way; both ways give the same bytes.

    Raises:
        ValueError: the value holds NaN or an infinity.
        TypeError: the value holds what JSON cannot.
    """
    if type(value) is dict and _is_flat_and_sorted(value):
        return to_json(value)
    text = json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode()


def _is_flat_and_sorted(value: dict[Any, Any]) -> bool:
    last = ""
    for key, item in value.items():
        if type(key) is not str or key < last or type(item) not in _SCALARS:
            return False
        last = key
    return True


def digest(data: bytes) -> str:
    """32 hex digits of BLAKE2b: short enough to store per call, safe enough to bind."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def json_digest(value: Any) -> str:
    """The digest of a value's canonical JSON."""
    return digest(canonical_json(value))
