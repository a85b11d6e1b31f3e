"""Runs and sessions: how they stop, what they return, who owns them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypedDict

from typing_extensions import TypeVar

from agentcore._base.frozen import frozen
from agentcore.errors import ConfigError
from agentcore.types.actor import Actor
from agentcore.types.content import (
    BlobRef,
    CallStatus,
    Effect,
    ResultPart,
    UserPart,
    join_text,
)
from agentcore.types.inbox import Delivery
from agentcore.types.json import EMPTY, JsonObject, JsonValue
from agentcore.types.messages import Message
from agentcore.types.options import Options
from agentcore.types.policy import Budget, Decision, Pending
from agentcore.types.usage import RunUsage

OutputT = TypeVar("OutputT", default=str)
OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)

Status: TypeAlias = Literal[
    "completed", "paused", "cancelled", "budget", "stuck", "failed"
]
"""How a run stopped. Only `completed` means the model gave its final answer."""

Verification: TypeAlias = Literal[
    "not_applicable", "unverified", "passed", "failed", "stale"
]
"""What checks say of a run's effects; it never changes the status."""


@frozen
class Stop:
    """Why a run stopped: data, not an exception (run semantics 2.8).

    Reasons by status: completed/final · paused/{approval, question, confirm_unknown,
    cwd, host} · cancelled/{user, host, parent} · budget/{requests, turns, tokens_in,
    tokens_out, tokens_total, cost, wall_time, tool_calls, subruns} · stuck/{repeat,
    cycle, empty, invalid_output, truncated} · failed/{model, tool, context, auth,
    storage, config, resume_loop, internal}.
    """

    status: Status
    reason: str
    detail: str = ""
    """What happened, in a sentence; empty where status and reason say it all."""
    subjects: tuple[str, ...] = ()
    """Ids of the calls or questions it is about."""
    kind: Literal["stop"] = "stop"
    extra: JsonObject = EMPTY


@frozen
class CallSummary:
    """One tool call of a run and how it ended."""

    id: str
    name: str
    arguments: JsonObject
    """Parsed; empty where the model's text was no JSON object."""
    status: CallStatus
    effect: Effect
    content: tuple[ResultPart, ...] = ()
    meta: JsonObject = EMPTY
    kind: Literal["call_summary"] = "call_summary"

    @property
    def text(self) -> str:
        """The text of the result."""
        return join_text(self.content)


@frozen
class Evidence:
    """What a check found, and from which record on it looked."""

    id: str
    check: str
    result: Literal["passed", "failed", "error"]
    start_seq: int
    fingerprint: str | None = None
    output: str = ""
    kind: Literal["evidence"] = "evidence"
    extra: JsonObject = EMPTY


@frozen
class CheckResult:
    """What a check found."""

    passed: bool
    output: str = ""
    """Shown to whoever reads the evidence, and to the model where it is to repair."""


@frozen
class Check:
    """Looks at what a run did before it may end, such as by running the tests.

    What it finds is evidence beside the run's status and never changes it (settled 11).

    Raises:
        ConfigError: a part is of a wrong type; at construction.
    """

    name: str
    run: Callable[[], Awaitable[CheckResult | bool]]
    """An async function of no argument."""
    after: frozenset[str] | None = None
    """The tools whose effects it looks at; by default, those of any tool."""
    fingerprint: Callable[[], Awaitable[str]] | None = None
    """Names the state of what it looks at: evidence is stale once that has changed."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigError("Check.name must be a str that is not empty")
        for what in ("run", "fingerprint"):
            function = getattr(self, what)
            given = function is not None or what == "run"
            if given and not iscoroutinefunction(function):
                raise ConfigError(f"Check.{what} must be an async function")
        after: Any = self.after
        if isinstance(after, str):
            raise ConfigError("Check.after must be a set of tool names, not a str")
        if after is not None:
            object.__setattr__(self, "after", frozenset(after))


@frozen
class RunResult(Generic[OutputT]):
    """What a run came to. A fold of the journal: the same wherever it is read."""

    output: OutputT | None
    """The answer: text, or the validated `output_type`; `None` unless completed."""
    stop: Stop
    usage: RunUsage
    messages: Sequence[Message]
    """The whole history of the session, as the model would see it next."""
    tool_calls: Sequence[CallSummary]
    """The calls of this run, in the order the model asked for them."""
    session_id: str
    run_id: str
    pending: tuple[Pending, ...] = ()
    """What must be decided before a paused run goes on."""
    verification: Verification = "not_applicable"
    evidence: tuple[Evidence, ...] = ()


class RunView(Protocol):
    """What policies, tools and preparers may see of a run. Read-only and live."""

    @property
    def session_id(self) -> str:
        """The session."""
        ...

    @property
    def run_id(self) -> str:
        """The open run."""
        ...

    @property
    def root_session_id(self) -> str:
        """The session at the root of the tree; the session itself without a parent."""
        ...

    @property
    def actors(self) -> tuple[Actor, ...]:
        """Who is being served: the actors of the placed inputs."""
        ...

    @property
    def usage(self) -> RunUsage:
        """What the run has spent so far."""
        ...

    @property
    def tool_uses(self) -> Mapping[str, int]:
        """Started calls by tool name."""
        ...

    @property
    def running_seconds(self) -> float:
        """Owned running time of the run, paused time excluded."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The projected history."""
        ...

    @property
    def state(self) -> Mapping[str, JsonValue]:
        """The session's state map."""
        ...


@frozen
class RunRequest:
    """What `Agent.start` is asked to do."""

    content: tuple[UserPart, ...]
    session_id: str | None = None
    input_id: str | None = None
    """The client's idempotency key; minted where absent."""
    delivery: Delivery = "follow_up"
    source: Literal["user", "system"] = "user"


class RunOptions(TypedDict, total=False):
    """Per-run options, given to `run` and `start` as keywords (settled 15)."""

    timeout: float | None
    """Seconds of wall time; at the end the run stops with `budget/wall_time`."""
    options: Options
    budget: Budget
    """May only lower the agent's own limits."""
    tools_filter: Sequence[str]
    """Names of the tools to offer; may only narrow. One that nobody offers ends the run
    with `failed/config` before a request leaves."""
    asks: Any
    ephemeral: bool
    history: Literal["full", "none"]
    actor: Actor
    deps: Any
    traceparent: str


@frozen
class Workspace:
    """A session's working directory, pinned when the session was created."""

    path: str
    device: int = 0
    inode: int = 0
    boot_id: str = ""
    kind: Literal["workspace"] = "workspace"
    extra: JsonObject = EMPTY


@frozen
class ForkOrigin:
    """Where a forked session's journal was copied from."""

    session_id: str
    seq: int
    kind: Literal["fork_origin"] = "fork_origin"
    extra: JsonObject = EMPTY


@frozen
class SessionHeader:
    """What `RunStore.create` needs; it becomes the record `session.created`."""

    session_id: str
    root_session_id: str | None = None
    parent_session_id: str | None = None
    parent_call_id: str | None = None
    workspace: Workspace | None = None
    fork_of: ForkOrigin | None = None
    config_digest: str = ""
    kind: Literal["session_header"] = "session_header"
    extra: JsonObject = EMPTY


@frozen
class Lease:
    """The right to append to a session. Every append checks the epoch."""

    session_id: str
    owner: str
    epoch: int
    """Owner generation: rises by one with every acquisition."""
    took_over: bool = False
    """The previous owner ended without releasing."""
    kind: Literal["lease"] = "lease"


@frozen
class Receipt:
    """The acknowledgement of an inbox item: it is durable."""

    item_id: str
    position: int
    """Place in the session's inbox, from 1; not a journal sequence number."""
    duplicate: bool = False
    """The same item had been accepted before; nothing was written."""
    note: str = ""
    """`already_ended` for a cancel that found no open run, otherwise empty."""
    kind: Literal["receipt"] = "receipt"


@frozen
class SessionQuery:
    """Which sessions `RunStore.sessions` lists, newest first."""

    prefix: str = ""
    parent_session_id: str | None = None
    roots_only: bool = False
    limit: int = 100
    before: str | None = None
    """Page on: ids after this session id in the listing's order."""
    kind: Literal["session_query"] = "session_query"


@frozen
class SessionInfo:
    """One line of a listing."""

    session_id: str
    created_at: float
    updated_at: float
    records: int
    parent_session_id: str | None = None
    kind: Literal["session_info"] = "session_info"


@frozen
class AgentHealth:
    """What an agent holds in this process right now."""

    held_workers: int = 0
    """Threads whose blocking tool was cancelled and still runs: each is one slot of the
    pool that nobody else can have until the tool returns."""
    kind: Literal["agent_health"] = "agent_health"


@frozen
class RunSnapshot:
    """A session in one JSON object: a fold of its journal (settled 8)."""

    session_id: str
    seq: int
    messages: tuple[Message, ...] = ()
    usage: RunUsage = RunUsage()
    state: JsonObject = EMPTY
    stop: Stop | None = None
    pending: tuple[Pending, ...] = ()
    actor: Actor | None = None
    version: int = 1
    kind: Literal["run_snapshot"] = "run_snapshot"
    extra: JsonObject = EMPTY


Decisions: TypeAlias = Mapping[str, Decision]
"""Decisions by the id of what they settle."""

__all__ = [
    "Actor",
    "AgentHealth",
    "BlobRef",
    "CallSummary",
    "Check",
    "CheckResult",
    "Decisions",
    "Evidence",
    "ForkOrigin",
    "Lease",
    "OutputT",
    "OutputT_co",
    "Receipt",
    "RunOptions",
    "RunRequest",
    "RunResult",
    "RunSnapshot",
    "RunView",
    "SessionHeader",
    "SessionInfo",
    "SessionQuery",
    "Status",
    "Stop",
    "Verification",
    "Workspace",
]
