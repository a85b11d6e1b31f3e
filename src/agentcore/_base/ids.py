"""Identifiers: unique across processes, cheap inside one."""

from __future__ import annotations

import itertools
import os
import secrets

_PREFIX_BYTES = 6


class RandomIds:
    """Ids like `call_8f3ac01b22d4_1f`: a random prefix per process, then a counter.

    Drawing randomness once keeps an id under 0.3 µs; a forked child draws anew, so
    parent and child never mint the same id.
    """

    __slots__ = ("_count", "_pid", "_prefix")

    def __init__(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self._pid = os.getpid()
        self._prefix = secrets.token_hex(_PREFIX_BYTES)
        self._count = itertools.count()

    def new(self, kind: str) -> str:
        """A new id; `kind` is its readable head (`run`, `call`, `input` …)."""
        if os.getpid() != self._pid:
            self._draw()
        return f"{kind}_{self._prefix}_{next(self._count):x}"
