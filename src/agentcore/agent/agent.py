"""`ToolLoopAgent`: a model, tools and policies, put together and ready to run."""

from __future__ import annotations

import dataclasses
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self

import anyio
from anyio.lowlevel import current_token
from typing_extensions import TypeVar, Unpack, override

from agentcore._base.clock import SystemClock
from agentcore._base.ids import RandomIds
from agentcore._engine.deps import Asks, RunSetup
from agentcore._engine.handle import RunHandle
from agentcore.agent.doors import SessionDoors
from agentcore.agent.options import (
    check_decisions,
    check_id,
    input_item,
    run_setup,
)
from agentcore.agent.settings import check_settings, checked_tools
from agentcore.agent.wiring import Wiring, checked_model
from agentcore.errors import ConfigError
from agentcore.policies.retry import RetryPolicy
from agentcore.protocols.agent import Prompt
from agentcore.protocols.model import Model
from agentcore.protocols.policy import PermissionPolicy
from agentcore.protocols.runtime import Clock, IdSource
from agentcore.protocols.sink import EventSink
from agentcore.protocols.store import RunStore
from agentcore.protocols.tools import Tool, ToolExecutor
from agentcore.types.context import DepsT
from agentcore.types.inbox import Input
from agentcore.types.json import EMPTY
from agentcore.types.options import NO_OPTIONS, Options
from agentcore.types.policy import Budget, Decision
from agentcore.types.runs import AgentHealth, Check, RunOptions, RunResult

OutputT = TypeVar("OutputT", default=str)

_SYSTEM_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ToolLoopAgent(SessionDoors, Generic[DepsT, OutputT]):
    """An agent: it calls the model, runs the tools it asks for, and so on to an answer.

    Immutable and shareable: one object serves any number of runs at once, on any event
    loop. Everything of one run belongs to the run.

    Raises:
        ConfigError: a part has the wrong type, two tools share a name, or nobody knows
            the model; at construction, before anything is sent or stored.
    """

    model: Model | str
    """A model, or a name like `"openai:gpt-5-mini"`."""
    _: dataclasses.KW_ONLY
    name: str = "agent"
    description: str = ""
    """What it is good for, in a sentence another model can read."""
    instructions: str = ""
    """The system prompt."""
    tools: Iterable[Any] = ()
    """`@tool` objects, plain typed functions, toolsets."""
    executor: ToolExecutor | None = None
    """Runs tools elsewhere; may stand beside `tools`."""
    store: RunStore | None = None
    """Keeps sessions. Without one, a session lives as long as its run."""
    deps_type: type[DepsT] | None = None
    """Only for type checkers: what tools find in `ToolContext.deps`."""
    output_type: Any = str
    """Anything pydantic can validate; `str` for plain text."""
    output_mode: Literal["tool", "native"] = "tool"
    """How a typed answer is given: by the tool `final_result`, or as native JSON."""
    output_retries: int = 3
    """Times an answer that does not fit goes back to the model with the errors."""
    options: Options = NO_OPTIONS
    permissions: PermissionPolicy | None = None
    """Without one, every tool the host registered may run."""
    budget: Budget | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    asks: Asks = "refuse"
    """Who answers questions and approvals (settled 2)."""
    ask_timeout: float = 60.0
    """Seconds an `asks` handler may take."""
    on_unknown: Literal["pause", "continue"] = "pause"
    """After a crash in a call that may have reached the outside: ask what happened
    (`RunResult.pending` holds an `UnknownCall`), or tell the model it is unknown."""
    checks: Sequence[Check] = ()
    """Look at a run's effects before it may complete; what they find is evidence."""
    repair_rounds: int = 0
    """How often, in one run, the output of a failed check goes back to the model."""
    sinks: Sequence[EventSink] = ()
    clock: Clock = _SYSTEM_CLOCK
    ids: IdSource = field(default_factory=RandomIds)
    _model: Model = field(init=False, repr=False)
    _tools: tuple[Tool, ...] = field(init=False, repr=False)
    _parts: list[Wiring] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_model", checked_model(self.model))
        object.__setattr__(self, "_tools", checked_tools(self.tools))
        object.__setattr__(self, "_parts", [])
        self._check()

    def _check(self) -> None:
        check_settings(self)
        if self.output_type is not str:
            self._wiring()  # builds the output's schema, so that a bad type shows now

    def with_(self, **changes: Any) -> ToolLoopAgent[DepsT, OutputT]:
        """A copy with other settings; this agent stays as it is.

        Raises:
            ConfigError: there is no such setting, or its value does not fit.
        """
        known = {f.name for f in dataclasses.fields(self) if f.init}
        unknown = sorted(changes.keys() - known)
        if unknown:
            raise ConfigError(
                f"ToolLoopAgent has no setting {unknown[0]!r}; "
                f"the settings are {', '.join(sorted(known))}"
            )
        return dataclasses.replace(self, **changes)

    # --- running ------------------------------------------------------------------

    def run(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        input_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Coroutine[Any, Any, RunResult[OutputT]]:
        """Run to the end: await it for the result. See `start` for the arguments."""
        return self._handle(prompt, session, input_id, options).drain()

    def run_sync(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        input_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[OutputT]:
        """`run`, for callers without an event loop.

        Raises:
            ConfigError: an event loop runs in this thread; await `run` instead.
        """
        if _in_event_loop():
            raise ConfigError(
                "run_sync was called inside a running event loop; "
                "use `await agent.run(...)`"
            )
        handle = self._handle(prompt, session, input_id, options)
        return anyio.run(_await, handle)

    def start(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        input_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> RunHandle:
        """Begin a run: `async with agent.start(...) as run`, or await it.

        Args:
            prompt: What the user says: a str, parts, or a `UserMessage`.
            session: The conversation, which the agent's `store` keeps; without one it
                is a new one.
            input_id: The client's idempotency key: the same id again is the same input.
            options: Per-run options, see `RunOptions`.

        Raises:
            ConfigError: bad input; nothing was stored or sent.
        """
        return self._handle(prompt, session, input_id, options)

    def resume(
        self,
        session: str,
        *,
        decisions: Mapping[str, Decision] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunHandle:
        """Continue a paused or interrupted session, or what is pending in it.

        Args:
            session: The session.
            decisions: What somebody decided, by the id in `RunResult.pending`. What
                has no decision goes on waiting.
            options: Per-run options, see `RunOptions`.

        Raises:
            ConfigError: there is no store to find the session in, nothing waits under
                an id, or a decision does not fit what it is about.
            AlreadySettled: something was decided before, or is over; nothing was
                stored, and nothing runs again.
        """
        if self.store is None:
            raise ConfigError("resume needs an agent with a store")
        return self._make_handle(
            self.store,
            check_id("session", session),
            None,
            run_setup(options),
            decisions=check_decisions(decisions),
        )

    def _handle(
        self,
        prompt: Prompt,
        session: str | None,
        input_id: str | None,
        options: RunOptions,
    ) -> RunHandle:
        yours = run_setup(options)
        if input_id is None:
            input_id = self.ids.new("input")
        else:
            check_id("input_id", input_id)
        item = input_item(prompt, "follow_up", input_id, yours)
        store = None if yours.ephemeral else self.store
        if yours.ephemeral and session is not None:
            raise ConfigError(
                "an ephemeral run leaves nothing behind, so it has no place in session "
                f"{session!r}: leave session= out"
            )
        if store is None and (yours.asks or self.asks) == "pause":
            raise ConfigError(
                "asks='pause' needs a store that keeps the paused run: pass "
                "store=MemoryRunStore(), and leave ephemeral out"
            )
        fresh = session is None
        session = self.ids.new("session") if fresh else check_id("session", session)
        if not fresh and store is None:
            raise ConfigError(
                f"session={session!r} needs an agent with a store: without one, "
                "nothing is kept that a later run could find. Pass "
                "store=MemoryRunStore(), or leave session= out"
            )
        return self._make_handle(store, session, item, yours, fresh=fresh)

    def _make_handle(
        self,
        store: RunStore | None,
        session: str,
        item: Input | None,
        yours: RunSetup,
        *,
        fresh: bool = False,
        decisions: Mapping[str, Decision] = EMPTY,
    ) -> RunHandle:
        wiring = self._wiring()
        place = wiring.private if store is None else wiring.shared
        fresh = fresh or place.private
        return RunHandle(
            wiring.setup,
            yours,
            place,
            session,
            item,
            fresh=fresh,
            decisions=decisions,
        )

    @override
    def _wiring(self) -> Wiring:
        if not self._parts:
            self._parts.append(Wiring(self, self._tools, self._model))
        return self._parts[0]

    def health(self) -> AgentHealth:
        """What this agent holds right now; ask as often as you like."""
        return AgentHealth(self._wiring().local.held_workers)

    # --- lifetime -----------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Keep connections and pools open until the end of the block."""
        await self._wiring().lifetimes.enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._wiring().leave()


def _in_event_loop() -> bool:
    try:
        current_token()
    except RuntimeError:
        return False
    return True


async def _await(handle: RunHandle) -> Any:
    return await handle
