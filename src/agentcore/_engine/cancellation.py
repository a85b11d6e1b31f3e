"""Did somebody cancel this task, or did a tool make a cancellation up?

A tool may raise asyncio's `CancelledError` itself, or let one through from a future
that was cancelled elsewhere. Taken for a real cancellation it would end the run, or, in
a batch, the task group; it is a failed call like any other.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import anyio


def in_cancelled_scope() -> bool:
    """A cancel scope around this task was cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def was_cancelled() -> bool:
    """Somebody cancelled this task: through a scope, or asyncio's own `cancel()`."""
    if in_cancelled_scope():
        return True
    # Not imported: where asyncio is not there yet, it is not what runs us.
    asyncio: Any = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:  # another event loop runs, which knows only scopes
        task = None
    return task is None or task.cancelling() > 0
