"""Verdicts of policies, decisions of people, and budgets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from agentcore._base.describe import type_name
from agentcore._base.frozen import frozen
from agentcore.errors import ConfigError
from agentcore.types.content import ResultPart
from agentcore.types.json import EMPTY, JsonObject

# --- verdicts of a permission policy ----------------------------------------------


@frozen
class Allow:
    """The call may run."""

    kind: Literal["allow"] = "allow"


@frozen
class Forbid:
    """The call must not run; the model is told why."""

    reason: str
    kind: Literal["forbid"] = "forbid"


@frozen
class Ask:
    """Somebody must decide; `question` is shown to them."""

    question: str = ""
    kind: Literal["ask"] = "ask"


Verdict: TypeAlias = Allow | Forbid | Ask

# --- what a run waits for ---------------------------------------------------------


@frozen
class ApprovalRequest:
    """A call that waits for a yes or no. Bound to its arguments by `args_hash`."""

    id: str
    """The call id; the key of `resume(decisions=…)`."""
    tool: str
    arguments: JsonObject
    why: str = ""
    args_hash: str = ""
    kind: Literal["approval_request"] = "approval_request"
    extra: JsonObject = EMPTY


@frozen
class QuestionOption:
    """One choice of a question."""

    label: str
    description: str = ""
    kind: Literal["question_option"] = "question_option"
    extra: JsonObject = EMPTY


@frozen
class Question:
    """Something the model wants to know from the user."""

    id: str
    text: str
    options: tuple[QuestionOption, ...] = ()
    multi_select: bool = False
    header: str = ""
    default: str | None = None
    kind: Literal["question"] = "question"
    extra: JsonObject = EMPTY


@frozen
class UnknownCall:
    """A call whose outcome was lost in a crash; a person must say what happened."""

    id: str
    tool: str
    arguments: JsonObject
    output: str = ""
    """What it had printed by then."""
    kind: Literal["unknown_call"] = "unknown_call"
    extra: JsonObject = EMPTY


Pending: TypeAlias = ApprovalRequest | Question | UnknownCall

# --- decisions of people ----------------------------------------------------------


@frozen
class Approve:
    """Run the call. `arguments` replaces them, which makes it a new decision."""

    arguments: JsonObject | None = None
    scope: Literal["once", "session", "always"] = "once"
    kind: Literal["approve"] = "approve"
    extra: JsonObject = EMPTY


@frozen
class Deny:
    """Do not run the call; the reason goes to the model."""

    reason: str = ""
    kind: Literal["deny"] = "deny"
    extra: JsonObject = EMPTY


@frozen
class Answer:
    """The answer to a question: free text, or the chosen labels."""

    text: str = ""
    choices: tuple[str, ...] = ()
    kind: Literal["answer"] = "answer"
    extra: JsonObject = EMPTY


@frozen
class Happened:
    """An unknown call did happen; `content` stands as its result."""

    content: tuple[ResultPart, ...] = ()
    kind: Literal["happened"] = "happened"
    extra: JsonObject = EMPTY


@frozen
class DidNotHappen:
    """An unknown call had no effect."""

    kind: Literal["did_not_happen"] = "did_not_happen"
    extra: JsonObject = EMPTY


@frozen
class LeaveUnknown:
    """Nobody can say; the model is told that the effect is unknown."""

    kind: Literal["leave_unknown"] = "leave_unknown"
    extra: JsonObject = EMPTY


Decision: TypeAlias = Approve | Deny | Answer | Happened | DidNotHappen | LeaveUnknown

# --- budgets ----------------------------------------------------------------------

BudgetKind: TypeAlias = Literal[
    "requests",
    "turns",
    "tokens_in",
    "tokens_out",
    "tokens_total",
    "cost",
    "wall_time",
    "tool_calls",
    "subruns",
]


@frozen
class Budget:
    """Upper limits for a run and everything below it. `None` means no limit.

    Raises:
        ConfigError: a limit is negative or not a number.
    """

    requests: int | None = None
    """Model requests, failed attempts and compaction included."""
    turns: int | None = None
    """Accepted main replies: the step cap."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost_usd: float | None = None
    tool_calls: int | None = None
    per_tool: Mapping[str, int] = EMPTY
    wall_time: float | None = None
    """Seconds of owned running time; paused time does not count."""
    subruns: int | None = None
    scope: Literal["run", "session"] = "run"
    kind: Literal["budget"] = "budget"
    extra: JsonObject = EMPTY

    def __post_init__(self) -> None:
        for name in _COUNTS:
            _check_limit(f"Budget.{name}", getattr(self, name), int, "an int")
        for name in _AMOUNTS:
            _check_limit(f"Budget.{name}", getattr(self, name), float, "a number")
        if not isinstance(self.per_tool, Mapping):
            raise ConfigError(
                "Budget.per_tool must be a mapping of tool name to limit, "
                f"not {type_name(self.per_tool)}"
            )
        for tool, limit in self.per_tool.items():
            _check_limit(f"Budget.per_tool[{tool!r}]", limit, int, "an int")
        if self.scope not in ("run", "session"):
            raise ConfigError(
                f"Budget.scope must be 'run' or 'session', not {self.scope!r}"
            )

    def lowered_by(self, other: Budget | None) -> Budget:
        """The lower of both for every limit: a caller may lower, never raise."""
        if other is None:
            return self
        changes: dict[str, Any] = {}
        for name in (*_COUNTS, *_AMOUNTS):
            both = (getattr(self, name), getattr(other, name))
            changes[name] = min((n for n in both if n is not None), default=None)
        per_tool = dict(self.per_tool)
        for tool, limit in other.per_tool.items():
            per_tool[tool] = min(limit, per_tool.get(tool, limit))
        return dataclasses.replace(self, per_tool=per_tool, **changes)


_COUNTS = (
    "requests",
    "turns",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "tool_calls",
    "subruns",
)
_AMOUNTS = ("cost_usd", "wall_time")
_MOST = 1e15
"""Dollars or seconds: more than anybody means, and few enough for every clock."""


def _check_limit(name: str, value: Any, kind: type, words: str) -> None:
    if value is None:
        return
    wanted = (int,) if kind is int else (int, float)
    fits = isinstance(value, wanted) and not isinstance(value, bool)
    most = math.inf if kind is int else _MOST
    if not fits or not 0 <= value <= most:
        raise ConfigError(
            f"{name} must be {words} of at least 0, or None for no limit, "
            f"not {type_name(value)} {value!r}"
        )


@frozen
class Charge:
    """What a reservation asks for; the kinds a request or call will use."""

    requests: int = 0
    tool_calls: int = 0
    tool: str | None = None
    input_tokens: int = 0
    """Estimate; 0 where none is made."""
    output_tokens: int = 0
    cost_usd: float = 0.0
    subruns: int = 0
    kind: Literal["charge"] = "charge"
    extra: JsonObject = EMPTY


@frozen
class Granted:
    """The charge fits; it is held until it is settled."""

    reservation_id: str
    max_output_tokens: int | None = None
    """A lower cap the request must keep to, where the remainder is small."""
    kind: Literal["granted"] = "granted"


@frozen
class Exhausted:
    """The charge does not fit; `limit` names which."""

    limit: BudgetKind
    detail: str = ""
    kind: Literal["exhausted"] = "exhausted"


BudgetVerdict: TypeAlias = Granted | Exhausted
