"""What the steps of one owner share: its journal, its tools, its signals."""

from __future__ import annotations

import logging
import math
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import anyio
from anyio.lowlevel import current_token

from agentcore._base.describe import error_text
from agentcore._engine.decide import Facts
from agentcore._engine.deps import AskHandler, RunSetup, Setup
from agentcore._engine.toolbox import Toolbox
from agentcore._engine.view import LiveView
from agentcore._engine.writer import Writer
from agentcore.journal.state import RunState, SessionState
from agentcore.protocols.policy import BudgetPolicy
from agentcore.types.options import NO_OPTIONS, Options

logger = logging.getLogger("agentcore")

_NO_TASKS: Final[frozenset[Any]] = frozenset()
_NO_TOOLS: Final = Toolbox((), {}, "")


def _clock_of(loop: object) -> Callable[[], float]:
    """`anyio.current_time`, without looking the event loop up at each call."""
    clock = getattr(loop, "time", None)
    return cast("Callable[[], float]", clock or anyio.current_time)


async def _logged(function: Callable[[], Awaitable[None]]) -> None:
    try:
        await function()
    except Exception as error:  # noqa: BLE001 - a task nobody waits for
        logger.warning("an accepted item was not looked at: %s", error_text(error))


class Owner:
    """The owner of one session while it holds the lease.

    `scope` is the one cancel scope effects run in. It is cancelled only while
    `in_effect` is true; between effects a signal is a flag in `facts` or the journal.
    """

    __slots__ = (
        "_tasks",
        "budget",
        "deadlines",
        "facts",
        "history_start",
        "in_effect",
        "native",
        "now",
        "options",
        "run_deadline",
        "scope",
        "setup",
        "thread",
        "toolbox",
        "view",
        "writer",
        "yours",
    )

    def __init__(
        self, setup: Setup, yours: RunSetup, writer: Writer, wanted: str
    ) -> None:
        self.setup = setup
        self.yours = yours
        self.writer = writer
        self.facts = Facts(
            setup.retry.max_attempts, setup.output_retries, setup.checks, wanted
        )
        self.view = LiveView(writer.state, writer.projector, setup.clock)
        self.scope: anyio.CancelScope = cast("anyio.CancelScope", None)
        """There from the moment the owner drives."""
        self.in_effect = False
        loop = current_token().native_token
        self.native: Any = loop
        self._tasks: frozenset[Any] | set[Any] = _NO_TASKS
        self.thread = threading.get_ident()
        self.now = _clock_of(loop)
        """The event loop's own clock, which deadlines are told in; seconds."""
        self.deadlines = setup.deadlines.on(loop)
        self.run_deadline = math.inf
        """When the run is out of time, on the event loop's clock."""
        self.history_start = 0
        self.toolbox = _NO_TOOLS
        self.budget: BudgetPolicy | None = None
        self.options: Options = NO_OPTIONS

    @property
    def state(self) -> SessionState:
        """The fold of the journal."""
        return self.writer.state

    @property
    def run(self) -> RunState:
        """The open run."""
        run = self.writer.state.run
        if run is None:
            raise RuntimeError("no run has been started")
        return run

    @property
    def handler(self) -> AskHandler | None:
        """Who can be asked now, while the run waits."""
        asks = self.yours.asks or self.setup.asks
        return None if isinstance(asks, str) else asks

    @property
    def may_ask(self) -> bool:
        """Somebody can be asked: now, or while the run is paused."""
        return (self.yours.asks or self.setup.asks) != "refuse"

    def may_start_effects(self) -> bool:
        """Admission is open: nobody cancelled, and the host is still here."""
        return self.run.cancel is None and not self.facts.halted

    def stop_cause(self) -> str:
        """What stops the run: the id of a cancel, or a word."""
        cancel = self.run.cancel
        if cancel is not None:
            return cancel.cancel_id
        return "wall_time" if self.facts.out_of_time else "host"

    def call_soon(self, function: Callable[..., object], argument: object) -> None:
        """Call a function on the event loop, from another thread."""
        schedule = getattr(self.native, "call_soon_threadsafe", None)
        try:
            (schedule or self.native.run_sync_soon)(function, argument)
        except RuntimeError:
            logger.debug("the event loop of this run has ended")

    def spawn_soon(self, function: Callable[[], Awaitable[None]]) -> None:
        """Start a task on the event loop, from another thread; nobody waits for it."""
        self.call_soon(self.spawn, function)

    def spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        """Start a task that nobody waits for; what it raises is logged."""
        if hasattr(self.native, "create_task"):
            task = self.native.create_task(_logged(function))
            self._tasks = {*self._tasks, task}  # a loop keeps only weak references
            task.add_done_callback(self._forget)
        else:
            # Not imported: what runs us is there.
            sys.modules["trio"].lowlevel.spawn_system_task(_logged, function)

    def _forget(self, task: Any) -> None:
        self._tasks = self._tasks - {task}

    def interrupt(self) -> None:
        """Cut the effect in flight short; between effects the flags are enough."""
        if self.in_effect:
            self.scope.cancel()
