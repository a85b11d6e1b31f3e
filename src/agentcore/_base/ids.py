"""Identifiers: unique across processes, cheap inside one."""

from __future__ import annotations

import itertools
import os

_PREFIX_BYTES = 6


class _Forks:
    """How often this process was made by a fork; asking the system costs a call."""

    __slots__ = ("count", "watching")

    def __init__(self) -> None:
        self.count = 0
        self.watching = False

    def watch(self) -> None:
        """Count from now on."""
        if not self.watching and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        self.watching = True

    def _forked(self) -> None:
        self.count += 1


_forks = _Forks()


class RandomIds:
    """Ids like `call_8f3ac01b22d4_1f`: a random prefix per process, then a counter.

    Drawing randomness once keeps an id cheap; a forked child draws anew, so parent and
    child never mint the same id.
    """

    __slots__ = ("_count", "_generation", "_prefix")

    def __init__(self) -> None:
        _forks.watch()
        self._draw()

    def _draw(self) -> None:
        self._generation = _forks.count
        self._prefix = os.urandom(_PREFIX_BYTES).hex()
        self._count = itertools.count()

    def new(self, kind: str) -> str:
        """A new id; `kind` is its readable head (`run`, `call`, `input` …)."""
        if _forks.count != self._generation:
            self._draw()
        return f"{kind}_{self._prefix}_{next(self._count):x}"
