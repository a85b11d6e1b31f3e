"""Run results: folds of the journal, the same wherever they are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

from pydantic_core import from_json
from typing_extensions import override

from agentcore._engine.deps import OutputPlan
from agentcore.journal.state import CallState, RunState, SessionState
from agentcore.types.content import join_text
from agentcore.types.inbox import Input
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.messages import AssistantMessage, Message
from agentcore.types.policy import ApprovalRequest, Pending, UnknownCall
from agentcore.types.records import ApprovalRequested, ToolOutcome
from agentcore.types.runs import CallSummary, RunResult, Stop
from agentcore.types.usage import RunUsage


class CallSummaries(Sequence[CallSummary]):
    """The calls of a run; made when somebody looks, because most callers do not."""

    __slots__ = ("_made", "_run")

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._made: tuple[CallSummary, ...] | None = None

    def _all(self) -> tuple[CallSummary, ...]:
        if self._made is None:
            final = self._run.final_call
            self._made = tuple(
                _summary(call, call.outcome)
                for call in self._run.calls.values()
                if call is not final and call.outcome is not None
            )
        return self._made

    @override
    def __len__(self) -> int:
        return len(self._all())

    @override
    def __iter__(self) -> Iterator[CallSummary]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> CallSummary: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[CallSummary]: ...

    @override
    def __getitem__(self, index: int | slice) -> CallSummary | Sequence[CallSummary]:
        return self._all()[index]

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    @override
    def __hash__(self) -> int:
        return hash(self._all())

    @override
    def __repr__(self) -> str:
        return repr(self._all())


def result_of(
    run: RunState,
    messages: Sequence[Message],
    session_id: str,
    output: OutputPlan | None,
) -> RunResult[Any]:
    """The result of a run that ended or paused."""
    stop = _stop(run)
    return RunResult(
        output=_output(run, messages, output) if stop.status == "completed" else None,
        stop=stop,
        usage=run.ended.usage if run.ended is not None else run.totals.usage(),
        messages=messages,
        tool_calls=CallSummaries(run),
        session_id=session_id,
        run_id=run.run_id,
        pending=_pending(run),
        verification=run.ended.verification if run.ended else run.verification,
        evidence=tuple(run.evidence.values()),
    )


_PARKED: Final = Stop(
    "cancelled", "user", "a cancel set this input aside; release it to have it served"
)
_WITHDRAWN: Final = Stop("cancelled", "user", "this input was withdrawn")
_WAITING: Final = Stop(
    "paused", "host", "no run has begun for this input; resume the session"
)


def result_of_unserved(
    state: SessionState, item: Input | None
) -> RunResult[Any] | None:
    """The result of a caller whose input no run has begun with, and none will now.

    `None`: the session has a run that says more.
    """
    if item is None:
        return None
    if item.id in state.parked:
        return _unserved(state.session_id, _PARKED)
    run = state.run
    # Until a person has done something about the open run, that is the news.
    stuck = run is not None and run.paused is not None and run.paused.reason != "host"
    if run is None or (item.id in state.pending and not stuck):
        return _unserved(state.session_id, _WAITING)
    return None


def result_of_waiting(session_id: str) -> RunResult[Any]:
    """The result of a caller who left before its input came to its turn."""
    return _unserved(session_id, _WAITING)


def result_of_withdrawn(session_id: str) -> RunResult[Any]:
    """The result of a caller whose input was taken back."""
    return _unserved(session_id, _WITHDRAWN)


def _unserved(session_id: str, stop: Stop) -> RunResult[Any]:
    return RunResult(None, stop, RunUsage(), (), (), session_id, "")


def _stop(run: RunState) -> Stop:
    if run.ended is not None:
        return run.ended.stop
    if run.paused is not None:
        paused = run.paused
        return Stop("paused", paused.reason, paused.detail, paused.subjects)
    return Stop("paused", "host", "the run is open; nobody drives it")


def _output(
    run: RunState, messages: Sequence[Message], output: OutputPlan | None
) -> Any:
    if output is None:
        return _last_text(messages)
    if run.final_call is not None:
        return output.value(run.final_call.arguments)
    return output.value(_last_text(messages))


def _last_text(messages: Sequence[Message]) -> str:
    """The final answer: the last reply, joined with what it continued."""
    last = messages[-1] if messages else None
    return join_text(last.content, "") if type(last) is AssistantMessage else ""


def _summary(call: CallState, outcome: ToolOutcome) -> CallSummary:
    planned, changed = call.planned, call.changed
    return CallSummary(
        planned.call_id,
        planned.name,
        changed if changed is not None else _arguments(call.arguments),
        outcome.status,
        outcome.effect,
        outcome.content,
        outcome.meta,
    )


def _arguments(text: str) -> JsonObject:
    try:
        value = from_json(text or "{}")
    except ValueError:
        return EMPTY
    return value if isinstance(value, dict) else EMPTY


def _pending(run: RunState) -> tuple[Pending, ...]:
    if run.paused is None:
        return ()
    waiting = (
        ApprovalRequest(w.call_id, w.tool, w.arguments, w.why, w.args_hash)
        if isinstance(w, ApprovalRequested)
        # The call's id: that of the question was the tool's to choose.
        else dataclasses.replace(w.question, id=w.call_id)
        for w in run.waiting.values()
    )
    unknown = (_unknown_call(run.calls[name]) for name in run.unconfirmed)
    return (*waiting, *unknown)


def _unknown_call(call: CallState) -> UnknownCall:
    planned, changed, outcome = call.planned, call.changed, call.outcome
    arguments = changed if changed is not None else _arguments(call.arguments)
    output = join_text(outcome.content) if outcome is not None else ""
    return UnknownCall(planned.call_id, planned.name, arguments, output)
