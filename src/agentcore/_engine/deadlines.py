"""Deadlines of running tools: one timer for all runs on an event loop.

Nearly every call ends long before its deadline. A timer for each would cost a good part
of the call, and a cancelled timer stays in the event loop's heap until its time has
come. So asyncio's loop gets one timer, set for the earliest deadline there was; when it
goes off it looks which deadlines have passed, and is set for the next. On other event
loops the scope's own deadline is used.
"""

from __future__ import annotations

import math
from typing import Any

import anyio


class SharedDeadlines:
    """For event loops that can call a function at a time, as asyncio's can."""

    __slots__ = ("_at", "_loop", "_scopes", "_timer")

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._scopes: dict[anyio.CancelScope, float] = {}
        self._timer: Any = None
        self._at = math.inf

    def set(self, scope: anyio.CancelScope, deadline: float) -> None:
        """Cancel the scope at `deadline`, on the event loop's clock."""
        self._scopes[scope] = deadline
        if deadline < self._at:
            self._arm(deadline)

    def clear(self, scope: anyio.CancelScope, otherwise: float) -> None:
        """The call is over."""
        self._scopes.pop(scope, None)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at = at
        self._timer = self._loop.call_at(at, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        self._timer, self._at = None, math.inf
        for scope in [s for s, at in self._scopes.items() if at <= now]:
            del self._scopes[scope]
            scope.cancel()
        if self._scopes:
            self._arm(min(self._scopes.values()))


class ScopeDeadlines:
    """For every other event loop: the scope's own deadline."""

    __slots__ = ()

    def set(self, scope: anyio.CancelScope, deadline: float) -> None:
        """Cancel the scope at `deadline`, on the event loop's clock."""
        scope.deadline = min(deadline, scope.deadline)

    def clear(self, scope: anyio.CancelScope, otherwise: float) -> None:
        """The call is over; `otherwise` is the deadline of what comes next."""
        scope.deadline = otherwise


Deadlines = SharedDeadlines | ScopeDeadlines
_SCOPES = ScopeDeadlines()


class DeadlineBook:
    """The deadlines of an agent's runs, by event loop."""

    __slots__ = ("_by_loop",)

    def __init__(self) -> None:
        self._by_loop: dict[Any, SharedDeadlines] = {}

    def on(self, loop: Any) -> Deadlines:
        """The deadlines kept on this event loop."""
        known = self._by_loop.get(loop)
        if known is not None:
            return known
        if not hasattr(loop, "call_at"):
            return _SCOPES
        for closed in [other for other in self._by_loop if other.is_closed()]:
            del self._by_loop[closed]
        made = self._by_loop[loop] = SharedDeadlines(loop)
        return made
