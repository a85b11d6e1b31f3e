"""What the steps of one owner share: its journal, its tools, its signals."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Final, cast

import anyio
from anyio.lowlevel import current_token

from agentcore._engine.decide import Facts
from agentcore._engine.deps import RunSetup, Setup
from agentcore._engine.toolbox import Toolbox
from agentcore._engine.view import LiveView
from agentcore._engine.writer import Writer
from agentcore.journal.state import RunState, SessionState
from agentcore.protocols.policy import BudgetPolicy
from agentcore.types.options import NO_OPTIONS, Options

_NO_TOOLS: Final = Toolbox((), {}, "")


def _clock_of(loop: object) -> Callable[[], float]:
    """`anyio.current_time`, without looking the event loop up at each call."""
    clock = getattr(loop, "time", None)
    return cast("Callable[[], float]", clock or anyio.current_time)


class Owner:
    """The owner of one session while it holds the lease.

    `scope` is the one cancel scope effects run in. It is cancelled only while
    `in_effect` is true; between effects a signal is a flag in `facts` or the journal.
    """

    __slots__ = (
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
        "token",
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
        self.facts = Facts(setup.retry.max_attempts, setup.output_retries, wanted)
        self.view = LiveView(writer.state, writer.projector, setup.clock)
        self.scope: anyio.CancelScope = cast("anyio.CancelScope", None)
        """There from the moment the owner drives."""
        self.in_effect = False
        self.token = current_token()
        loop = self.token.native_token
        self.native: Any = loop
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
        """Call a function on the event loop, from the thread of a blocking tool."""
        schedule = getattr(self.native, "call_soon_threadsafe", None)
        (schedule or self.native.run_sync_soon)(function, argument)

    def interrupt(self) -> None:
        """Cut the effect in flight short; between effects the flags are enough."""
        if self.in_effect:
            self.scope.cancel()
