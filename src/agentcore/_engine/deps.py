"""What a run needs from outside, put together once per agent: parts, and a place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from agentcore._base.frozen import frozen
from agentcore._engine.deadlines import DeadlineBook
from agentcore.protocols.context import Projector
from agentcore.protocols.model import Model
from agentcore.protocols.policy import BudgetPolicy, PermissionPolicy
from agentcore.protocols.runtime import Clock, IdSource
from agentcore.protocols.sink import EventSink
from agentcore.protocols.store import RunStore
from agentcore.protocols.tools import ToolExecutor
from agentcore.types.actor import Actor
from agentcore.types.inbox import Delivery, Input
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.model import OutputSchema
from agentcore.types.options import NO_OPTIONS, Options
from agentcore.types.policy import ApprovalRequest, Budget, Decision, Question
from agentcore.types.runs import Check
from agentcore.types.tools import ToolSpec


class RetryPolicy(Protocol):
    """When a failed model attempt is tried again. Pure."""

    max_attempts: int

    def delay(self, retry_after: float | None, attempt: int) -> float | None:
        """Seconds to wait after failed attempt `attempt`; `None`: give up."""
        ...


class OutputPlan(Protocol):
    """How the final answer becomes the `output_type`."""

    @property
    def tool(self) -> ToolSpec | None:
        """The output tool, where the answer is given through one."""
        ...

    @property
    def schema(self) -> OutputSchema | None:
        """The schema for the model, where it follows one natively."""
        ...

    def check(self, text: str) -> str:
        """Why this JSON text is no valid output; empty if it is one."""
        ...

    def value(self, text: str) -> Any:
        """The validated output."""
        ...


AskHandler: TypeAlias = Callable[[ApprovalRequest | Question], Awaitable[Decision]]
Asks: TypeAlias = Literal["refuse", "pause"] | AskHandler
CheckArguments: TypeAlias = Callable[[str, str], JsonObject]


@dataclass(slots=True, eq=False, repr=False)
class Setup:
    """An agent's part: the same for all its runs, never changed by one."""

    model: Model
    executor: ToolExecutor
    check_arguments: CheckArguments | None
    """Validation by the executor, where it offers one."""
    projector: Callable[[], Projector]
    permissions: PermissionPolicy | None
    budget: Callable[[Budget], BudgetPolicy]
    retry: RetryPolicy
    clock: Clock
    ids: IdSource
    instructions: str = ""
    options: Options = NO_OPTIONS
    limits: Budget | None = None
    output: OutputPlan | None = None
    output_retries: int = 3
    asks: Asks = "refuse"
    ask_timeout: float = 60.0
    on_unknown: Literal["pause", "continue"] = "pause"
    max_resumes: int = 3
    checks: tuple[Check, ...] = ()
    repair_rounds: int = 0
    sinks: Sequence[EventSink] = ()
    owner: str = ""
    deadlines: DeadlineBook = field(default_factory=DeadlineBook)
    advertised: Any = field(default=None)
    """The last tool list and its digest, kept while the list stays the same."""


@dataclass(slots=True, eq=False, repr=False)
class RunSetup:
    """One caller's part."""

    deps: Any = None
    options: Options = NO_OPTIONS
    budget: Budget | None = None
    timeout: float | None = None
    tools_filter: frozenset[str] | None = None
    asks: Asks | None = None
    history: Literal["full", "none"] = "full"
    actor: Actor | None = None
    traceparent: str | None = None
    ephemeral: bool = False
    settings: Mapping[str, Any] = EMPTY


MakeInput = Callable[[Any, Delivery, str, RunSetup], Input]
"""Makes the inbox item of a message; raises `ConfigError` for a bad one."""


class Lifetimes(Protocol):
    """Keeps the agent's parts open while somebody is inside."""

    async def enter(self) -> None:
        """Open them, or count one more user."""
        ...

    async def leave(self) -> None:
        """Close them after the last user."""
        ...


@frozen
class Place:
    """Where runs of an agent take place; made once per agent."""

    store: Callable[[bool], RunStore]
    """Gives the store; told whether anybody could read the journal again."""
    lifetimes: Lifetimes
    make_input: MakeInput
    live: set[Any]
    """The handles that are at work."""
    watch: bool = True
    """The store can be watched."""
    private: bool = False
    """The store lives only as long as the handle."""
