"""What happens next in a run: a pure function of the state, as an ordered table.

The first rule that has an opinion wins. The order is the one of run semantics 2.4: a
cancel comes before everything, open calls before the boundary, the boundary's checks
before the next request, and only what passed them all may finish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.journal.repetition import NUDGE_AT
from agentcore.journal.state import RunState, SessionState
from agentcore.types.records import ModelOutcome, QuestionAsked
from agentcore.types.records.run import PauseReason
from agentcore.types.runs import Check, Stop

# --- actions ----------------------------------------------------------------------


@frozen
class Start:
    """Open a run for what is pending."""


@frozen
class Calls:
    """Run the calls of the last reply that have no outcome."""


@frozen
class Request:
    """Ask the model; `nudge` is added to this request only."""

    nudge: str = ""


@frozen
class RunCheck:
    """Look at what the run did, by the check of this number."""

    number: int


@frozen
class Retry:
    """The last attempt failed: wait, then ask again."""


@frozen
class Pause:
    """Stop here and leave the run open: the host wants it, or somebody must decide."""

    reason: PauseReason = "host"
    subjects: tuple[str, ...] = ()


@frozen
class End:
    """Stop the run for this reason."""

    stop: Stop


@frozen
class Idle:
    """Nothing can be done by this owner."""


Action: TypeAlias = Start | Calls | Request | RunCheck | Retry | Pause | End | Idle

START: Final = Start()
CALLS: Final = Calls()
REQUEST: Final = Request()
RETRY: Final = Retry()
PAUSE: Final = Pause()
IDLE: Final = Idle()
COMPLETED: Final = Stop("completed", "final")

# --- what the engine knows beside the journal -------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Facts:
    """What the journal does not say."""

    max_attempts: int
    output_retries: int
    checks: tuple[Check, ...] = ()
    wanted: str = ""
    """The input this owner was started for; it is served whatever came before."""
    resumed: bool = False
    """The owner was started for whatever waits; it starts one run of it."""
    pausing: bool = False
    """The host asked to pause at the next boundary."""
    halted: bool = False
    """The host left: pause now."""
    out_of_time: bool = False
    blocked: bool = False
    """All open calls wait for somebody's decision."""


Rule: TypeAlias = Callable[[RunState, SessionState, Facts], Action | None]


def decide(state: SessionState, facts: Facts) -> Action:
    """The next action of the session's owner."""
    run = state.run
    if run is None or run.ended is not None:
        return START if not facts.halted and _startable(state, facts) else IDLE
    for rule in _RULES:
        action = rule(run, state, facts)
        if action is not None:
            return action
    return End(COMPLETED)


def _startable(state: SessionState, facts: Facts) -> bool:
    """Run semantics Q3, Q4, Q6, Q7."""
    if not state.pending:
        return False
    if facts.pausing:  # what this owner is for is started and paused: it can go on
        return facts.resumed or facts.wanted in state.pending
    run = state.run
    if run is None or run.ended is None or facts.wanted in state.pending:
        return True
    if facts.resumed:
        return True
    if run.ended.stop.status == "completed":
        return True
    # A cancel parked what came before it: whatever still waits is new intent.
    return run.ended.stop.status == "cancelled"


# --- rules ------------------------------------------------------------------------


def _cancelled(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    cancel = run.cancel
    if cancel is None:
        return None
    return End(Stop("cancelled", cancel.cause, cancel.reason, (cancel.cancel_id,)))


def _halted(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    if run.paused is not None:
        return IDLE
    return PAUSE if facts.halted else None


def _waiting(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    if not (facts.blocked and run.waiting):
        return None
    asked = any(type(w) is QuestionAsked for w in run.waiting.values())
    approvals = any(type(w) is not QuestionAsked for w in run.waiting.values())
    reason: PauseReason = "question" if asked and not approvals else "approval"
    return Pause(reason, tuple(run.waiting))


def _pausing(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    return PAUSE if facts.pausing else None


def _open_calls(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    return CALLS if run.open_calls else None


def _limits(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    if facts.out_of_time:
        return End(Stop("budget", "wall_time"))
    if run.exhausted:
        return End(Stop("budget", run.exhausted))
    call = run.fatal_call
    if call is not None:
        name, call_id = call.planned.name, call.planned.call_id
        detail = f"tool {name!r} failed and is declared on_fatal='end'"
        return End(Stop("failed", "tool", detail, (call_id,)))
    return None


def _failed(run: RunState, outcome: ModelOutcome, facts: Facts) -> Action | None:
    if outcome.status == "aborted":
        return REQUEST  # the host left in the middle of it, and is back
    can_retry = outcome.retryable or outcome.status == "unknown"
    if can_retry and run.attempts < facts.max_attempts:
        return RETRY
    reason = _FAILURES.get(outcome.error.partition(":")[0], "model")
    return End(Stop("failed", reason, outcome.error, (outcome.req_id,)))


_FAILURES: Final = {
    "AuthFailed": "auth",
    "ContextOverflow": "context",
    "ConfigError": "config",
    "InternalError": "internal",
}


def _empty(run: RunState, outcome: ModelOutcome, facts: Facts) -> Action | None:
    if run.missing_call_rounds >= MAX_ROUNDS:
        detail = f"{MAX_ROUNDS} replies announced a tool call and held none"
        return End(Stop("stuck", "invalid_output", detail))
    if run.empty_rounds >= MAX_ROUNDS:
        detail = f"{MAX_ROUNDS} empty replies in a row"
        return End(Stop("stuck", "empty", detail))
    return NUDGE_CALL if run.missing_call_rounds else NUDGE_EMPTY


MAX_ROUNDS: Final = 3
MAX_CONTINUATIONS: Final = 3
NUDGE_EMPTY: Final = Request("your last reply was empty; please answer")
NUDGE_CALL: Final = Request(
    "your last reply announced a tool call but held none; "
    "call the tool or answer in words"
)
NUDGE_REPEAT: Final = Request(
    "you made the same call several times with the same result; "
    "use the result you have, or try something else"
)
NUDGE_CONTINUE: Final = Request(
    "your reply was cut off by the length limit; continue exactly where it stopped"
)
NUDGE_SHORTER: Final = Request(
    "your reply was cut off by the length limit, so its tool calls were not run; "
    "send them again, with shorter arguments if they were long"
)


def _truncated(run: RunState, outcome: ModelOutcome, facts: Facts) -> Action | None:
    if run.truncated_rounds > MAX_CONTINUATIONS:
        detail = f"{run.truncated_rounds} replies in a row hit the length limit"
        return End(Stop("stuck", "truncated", detail))
    return NUDGE_SHORTER if run.batch else NUDGE_CONTINUE


_BY_STATUS: Final = {
    "error": _failed,
    "aborted": _failed,
    "unknown": _failed,
    "empty": _empty,
    "length": _truncated,
}


def _reply(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    """The last reply was not one to work with, or there is none yet."""
    outcome = run.outcome
    if outcome is None:
        return REQUEST
    rule = _BY_STATUS.get(outcome.status)
    return rule(run, outcome, facts) if rule is not None else None


def _stuck(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    if run.invalid_rounds >= MAX_ROUNDS:
        detail = f"{MAX_ROUNDS} replies in a row held only unusable calls"
        return End(Stop("stuck", "invalid_output", detail))
    if run.output_rejections > facts.output_retries:
        times = f"{run.output_rejections} times, the last time because"
        detail = f"the answer was not accepted {times} {run.rejected}"
        return End(Stop("stuck", "invalid_output", detail))
    verdict = run.repetition.verdict
    if verdict is None:
        return None
    detail = "the same call gave the same result again and again"
    return End(Stop("stuck", verdict, detail))


def _unanswered(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    """Something the model has not seen, or asked for, is there."""
    if run.final_call is None and (run.batch or run.rejected):
        return NUDGE_REPEAT if run.repetition.equal >= NUDGE_AT else REQUEST
    if max(run.placed_seq, run.repair_seq) > run.head_seq or _steer_waits(state):
        return REQUEST
    return None


def _unchecked(run: RunState, state: SessionState, facts: Facts) -> Action | None:
    """Effects that a check has not looked at yet (settled 39: the phase `checking`)."""
    if not run.effects:
        return None
    for number, check in enumerate(facts.checks):
        seen = run.evidence.get(check.name)
        tools = run.effects.keys() if check.after is None else check.after
        changed = max((run.effects.get(name, 0) for name in tools), default=0)
        if changed and (seen is None or seen.start_seq < max(changed, run.placed_seq)):
            return RunCheck(number)
    return None


def _steer_waits(state: SessionState) -> bool:
    return any(item.delivery == "steer" for item in state.pending.values())


_RULES: Final[tuple[Rule, ...]] = (
    _cancelled,
    _halted,
    _waiting,
    _open_calls,
    _pausing,
    _limits,
    _reply,
    _stuck,
    _unanswered,
    _unchecked,
)
