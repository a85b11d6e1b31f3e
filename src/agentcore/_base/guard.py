"""The switch that keeps real model requests out of tests.

`providers/_http.py` asks it before a request leaves; the pytest plugin turns it off for
the whole process. A context variable alone would not hold: an event loop that outlives
a test keeps the context it was started in, and a new thread starts with none. So there
are two vetoes, one of the process and one of the current context, and either is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token


class RequestSwitch:
    """Whether real model requests may leave.

    It is used as a `ContextVar[bool]` is: `get`, `set` and `reset` speak of the current
    context and the tasks started from it.
    """

    __slots__ = ("_here", "_process")

    def __init__(self) -> None:
        self._process = True
        self._here = ContextVar("agentcore_requests_allowed", default=True)

    def get(self) -> bool:
        """True unless the process or the current context forbids it."""
        return self._process and self._here.get()

    def set(self, allowed: bool, /) -> Token[bool]:
        """Set the word of this context; it cannot allow what the process forbids."""
        return self._here.set(allowed)

    def reset(self, token: Token[bool], /) -> None:
        """Take a `set` back."""
        self._here.reset(token)

    @contextmanager
    def process(self, *, allowed: bool) -> Iterator[None]:
        """Set the word of the process: every thread and event loop sees it."""
        before, self._process = self._process, allowed
        try:
            yield
        finally:
            self._process = before


REAL_REQUESTS_ALLOWED = RequestSwitch()
"""The one switch of this process; allowed until somebody says otherwise."""


@contextmanager
def forbid_model_requests() -> Iterator[None]:
    """Refuse real model requests in the current context and tasks started from it."""
    token = REAL_REQUESTS_ALLOWED.set(False)
    try:
        yield
    finally:
        REAL_REQUESTS_ALLOWED.reset(token)
