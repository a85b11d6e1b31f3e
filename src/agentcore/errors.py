"""Every exception agentcore raises, in one tree.

    AgentCoreError
    ├── ConfigError                 you misused the library; nothing was sent or stored
    │   └── OutputInvalid           no schema can be made of this `output_type`
    ├── WorkspaceMismatch           the session belongs to another working directory
    ├── ProviderError               a model request failed
    │   ├── Unreachable             no connection: the request surely never arrived
    │   ├── Timeout                 no (further) answer in time: it may have arrived
    │   ├── RateLimited             asked to slow down; `retry_after` says how long
    │   ├── QuotaExhausted          the account is out of credit or over its plan
    │   ├── Overloaded              the vendor is busy (503, 529)
    │   ├── ServerError             the vendor failed (5xx)
    │   ├── AuthFailed              the key is missing, wrong or lacks a right
    │   ├── BadRequest              the vendor refused the request as written
    │   ├── ContextOverflow         the prompt is larger than the model's window
    │   ├── BadResponse             the answer breaks its own wire format
    │   └── BrokenStream            the stream ended before its terminal marker
    ├── ToolError                   a tool call failed
    │   ├── NotFound                no such tool: it surely never ran
    │   ├── InvalidArguments        the arguments do not fit: it surely never ran
    │   ├── Unavailable             the executor was out of reach: it surely never ran
    │   ├── TimedOut                stopped at its deadline: its effect is unknown
    │   └── Retryable               the tool itself says: try again
    ├── StoreError                  the journal refused or failed
    │   ├── SequenceConflict        somebody appended since you read
    │   ├── InboxChanged            something was accepted since you looked
    │   ├── LeaseLost               another owner took the session over
    │   ├── SessionBusy             another owner holds the session
    │   ├── SessionNotFound, SessionExists
    │   ├── InputConflict           same id with other content, or placed already
    │   ├── InboxFull               too much waits unplaced; nothing was written
    │   ├── AlreadySettled          the decision was taken before
    │   ├── StoreFailed             disk full or I/O error: the handle is poisoned
    │   ├── NotAStore               the file is something else
    │   ├── SchemaTooNew            written by a newer agentcore
    │   └── CorruptRecord           the journal is damaged before its end
    ├── SkillError                  a skill could not be loaded
    ├── BudgetExceeded              only where the host asked for an exception
    └── RunCancelled                only where the host asked for an exception

Pause, denial and an exhausted budget are results of a run (`RunResult.stop`), not
exceptions. `category` says what a caller may conclude: `retryable` (the same call may
succeed later), `policy_denied` (a rule refused it) or `fatal`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Category: TypeAlias = Literal["retryable", "policy_denied", "fatal"]
ToolEffect: TypeAlias = Literal["none", "done", "unknown"]


class AgentCoreError(Exception):
    """Root of everything agentcore raises on purpose."""


class ConfigError(AgentCoreError):
    """The library was misused; the message names the object and the fix.

    Raised at definition or acceptance time: no request left, nothing was stored.
    """


class OutputInvalid(ConfigError):
    """No JSON Schema can be made of the `output_type`."""


class WorkspaceMismatch(AgentCoreError):
    """The session was created for another working directory; nothing ran."""


class ProviderError(AgentCoreError):
    """A model request failed.

    `retry_after` is in seconds. `in_stream` tells that output had already arrived when
    it failed, so a retry is a new recorded attempt, never a silent one.
    """

    default_retryable = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        in_stream: bool = False,
        retryable: bool | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.in_stream = in_stream
        chosen = self.default_retryable if retryable is None else retryable
        self.retryable: bool = chosen
        self.request_id = request_id

    @property
    def category(self) -> Category:
        """`retryable` or `fatal`, by this instance's `retryable`."""
        return "retryable" if self.retryable else "fatal"


class Unreachable(ProviderError):
    """No connection was made: the request surely never arrived."""

    default_retryable = True


class Timeout(ProviderError):
    """No answer, or no further one, in time: the request may have arrived."""

    default_retryable = True


class RateLimited(ProviderError):
    """The vendor asked to slow down (429)."""

    default_retryable = True


class QuotaExhausted(ProviderError):
    """The account is out of credit: waiting does not help."""


class Overloaded(ProviderError):
    """The vendor is busy (503, 529)."""

    default_retryable = True


class ServerError(ProviderError):
    """The vendor failed (5xx); `retryable=False` where the failure is repeatable."""

    default_retryable = True


class AuthFailed(ProviderError):
    """The key is missing, wrong, or lacks the right (401, 403)."""


class BadRequest(ProviderError):
    """The vendor refused the request as written (4xx)."""


class ContextOverflow(BadRequest):
    """The prompt and the reserved output do not fit the model's window."""


class BadResponse(ProviderError):
    """The answer breaks its own wire format."""


class BrokenStream(ProviderError):
    """The stream ended before its terminal marker."""

    default_retryable = True


class ToolError(AgentCoreError):
    """A tool call failed; the text is shown to the model.

    `effect` says what the call may have done to the world: `none`, `done`, `unknown`,
    or `None` where only the tool's declaration can tell.
    """

    category: Category = "fatal"
    effect: ToolEffect | None = None

    def __init__(self, message: str, *, category: Category | None = None) -> None:
        super().__init__(message)
        if category is not None:
            self.category = category


class NotFound(ToolError):
    """No such tool: nothing ran."""

    effect: ToolEffect | None = "none"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema: nothing ran."""

    effect: ToolEffect | None = "none"


class Unavailable(ToolError):
    """The executor could not be reached: the call surely never ran."""

    category: Category = "retryable"
    effect: ToolEffect | None = "none"


class TimedOut(ToolError):
    """The call was stopped at its deadline; what it did is not known."""

    effect: ToolEffect | None = "unknown"


class Retryable(ToolError):
    """Raise it in a tool: the same call may succeed later."""

    category: Category = "retryable"


class StoreError(AgentCoreError):
    """The journal refused a write or could not be read."""


class SequenceConflict(StoreError):
    """The journal grew since you read it; nothing was written."""


class InboxChanged(StoreError):
    """Something was accepted since version `expected`; nothing was written."""


class LeaseLost(StoreError):
    """Another owner took the session over: stop every effect; nothing was written."""


class SessionBusy(StoreError):
    """Another owner holds the session."""

    def __init__(self, message: str, *, owner: str | None = None) -> None:
        super().__init__(message)
        self.owner = owner


class SessionNotFound(StoreError):
    """The store has no session of this id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r} in this store")
        self.session_id = session_id


class SessionExists(StoreError):
    """The session was created before: read it instead."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already")
        self.session_id = session_id


class InputConflict(StoreError):
    """The id was used with other content, or the input has been placed already."""


class InboxFull(StoreError):
    """As much as a session may hold already waits to be placed; nothing was written."""


class AlreadySettled(StoreError):
    """The call or question was settled before: the new decision changes nothing."""


class StoreFailed(StoreError):
    """The write may or may not have happened; the handle is poisoned, reopen it."""


class NotAStore(StoreError):
    """The file or folder is not a store of this kind; it was not touched."""


class SchemaTooNew(StoreError):
    """Written by a newer agentcore; refused instead of guessed at."""


class CorruptRecord(StoreError):
    """The journal is damaged before its end; it can be read up to there only."""


class SkillError(AgentCoreError):
    """A skill could not be found, parsed or loaded."""


class BudgetExceeded(AgentCoreError):
    """A limit ended the run and the host asked for an exception."""

    def __init__(self, message: str, *, limit: str, result: Any = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.result = result


class RunCancelled(AgentCoreError):
    """The run was cancelled and the host asked for an exception."""

    def __init__(self, message: str, *, result: Any = None) -> None:
        super().__init__(message)
        self.result = result
