"""What a reply asked for, on record: every call planned, the unusable ones settled.

Nothing is repaired by guessing: broken arguments, unknown names, cut-off replies and
repeated ids each get an outcome the model can read, and nothing of them runs
(run semantics 2.12).
"""

from __future__ import annotations

from typing import Final

from pydantic_core import from_json

from agentcore._base.canonical import canonical_json, json_digest
from agentcore._base.describe import message_of
from agentcore._engine.outcome import lost
from agentcore._engine.owner import Owner
from agentcore.errors import InvalidArguments, NotFound
from agentcore.journal.state import CallState
from agentcore.types import records as r
from agentcore.types.content import CallStatus, TextPart, ToolCallPart
from agentcore.types.json import JsonObject
from agentcore.types.tools import OUTPUT_TOOL, ToolCall, ToolSpec

_TRUNCATED: Final = "truncated: the reply was cut off by the length limit; not executed"
_DUPLICATE: Final = "this call id appeared before in the same reply; not executed"
_LISTED_NAMES: Final = 30
"""Tool names shown to a model that asked for one there is not."""


class Ready:
    """A usable call: parsed, checked, not yet started."""

    __slots__ = ("args_hash", "call", "rerun", "spec", "state", "why")

    def __init__(
        self, call: ToolCall, spec: ToolSpec, args_hash: str, state: CallState
    ) -> None:
        self.call = call
        self.spec = spec
        self.args_hash = args_hash
        """Empty where a decision changed the arguments."""
        self.state = state
        self.why = ""
        """Why somebody must approve it."""
        self.rerun = False
        """It was started before, had no outcome, and may safely run again."""


def plan_calls(
    owner: Owner, req_id: str, calls: list[ToolCallPart], *, truncated: bool
) -> list[Ready]:
    """Stage the calls of a reply; returns the usable ones in source order.

    All are planned before the first outcome, so that they are one batch to whoever
    reads the journal.
    """
    ready: list[Ready] = []
    unusable: list[r.ToolOutcome] = []
    seen: set[str] = set()
    for index, part in enumerate(calls):
        duplicate = part.provider_call_id in seen
        if part.provider_call_id:
            seen.add(part.provider_call_id)
        if truncated:
            _stage_planned(owner, req_id, index, part)
            unusable.append(_refused(part.call_id, "invalid_args", _TRUNCATED))
        elif part.name == OUTPUT_TOOL and owner.setup.output is not None:
            answered = any(outcome.status == "ok" for outcome in unusable)
            unusable.append(_plan_output(owner, req_id, index, part, answered))
        else:
            call = _plan_call(owner, req_id, index, part)
            if isinstance(call, r.ToolOutcome):
                unusable.append(call)
            elif duplicate:
                unusable.append(_refused(part.call_id, "duplicate", _DUPLICATE))
            else:
                ready.append(call)
    for outcome in unusable:
        owner.writer.stage(outcome)
    return ready


def plan_again(owner: Owner) -> list[Ready]:
    """The open calls of the journal, after a resume or a timeout: usable again.

    A call that was started is among them only where it may safely run again; one that
    waits for an answer runs again when it is there, or when somebody can be asked now.
    """
    ready: list[Ready] = []
    for state in owner.run.batch:
        if state.outcome is not None:
            continue
        call_id = state.planned.call_id
        if state.started and call_id in owner.run.waiting and owner.handler is None:
            continue
        if state.started and not may_rerun(owner, state):
            # It has run, or may have: whatever kept its outcome away, never again.
            owner.writer.stage(lost(state, "no outcome came back"))
            continue
        again = _usable(owner, state)
        if isinstance(again, Ready):
            again.rerun = state.started
            ready.append(again)
        else:
            owner.writer.stage(again)
    return ready


def may_rerun(owner: Owner, state: CallState) -> bool:
    """A started call without an outcome can be run again without any harm (R6)."""
    if state.replay != "safe" or owner.run.cancel is not None:
        return False
    again = _usable(owner, state)
    return isinstance(again, Ready) and again.spec.replay == "safe"


def _usable(owner: Owner, state: CallState) -> Ready | r.ToolOutcome:
    """A planned call, parsed and checked against what the tools are now."""
    planned = state.planned
    spec = owner.toolbox.by_name.get(planned.name)
    if spec is None:
        message = _unknown(owner, planned.name)
        return _refused(planned.call_id, "unavailable", message)
    changed = state.changed
    text = state.arguments if changed is None else canonical_json(changed).decode()
    try:
        arguments = _parse(owner, planned.name, text)
    except InvalidArguments as error:
        return _refused(planned.call_id, "invalid_args", str(error))
    call = ToolCall(planned.call_id, planned.name, arguments, spec.replay, spec.timeout)
    return Ready(call, spec, planned.args_hash if changed is None else "", state)


def change_arguments(
    owner: Owner, ready: Ready, arguments: JsonObject
) -> r.ToolOutcome | None:
    """Put an approver's arguments in the place of the model's; or why they do not fit.

    They are what was approved, so nobody is asked again (run semantics 2.13).
    """
    call = ready.call
    try:
        fitting = _parse(owner, call.name, canonical_json(arguments).decode())
    except (InvalidArguments, TypeError, ValueError) as error:
        message = f"the approver's arguments do not fit: {message_of(error)}"
        return _refused(call.id, "invalid_args", message)
    ready.call = ToolCall(call.id, call.name, fitting, call.replay, call.timeout)
    ready.args_hash = ""
    return None


def _refused(call_id: str, status: CallStatus, message: str) -> r.ToolOutcome:
    """The outcome of a call that is not going to run."""
    return r.ToolOutcome(call_id, status, "none", (TextPart(message),), status)


def _plan_call(
    owner: Owner, req_id: str, index: int, part: ToolCallPart
) -> Ready | r.ToolOutcome:
    spec = owner.toolbox.by_name.get(part.name)
    if spec is None:
        _stage_planned(owner, req_id, index, part)
        return _refused(part.call_id, "unavailable", _unknown(owner, part.name))
    try:
        arguments = _parse(owner, part.name, part.arguments)
    except InvalidArguments as error:
        _stage_planned(owner, req_id, index, part, error=str(error))
        return _refused(part.call_id, "invalid_args", str(error))
    args_hash = json_digest(arguments)
    _stage_planned(owner, req_id, index, part, args_hash)
    call = ToolCall(part.call_id, part.name, arguments, spec.replay, spec.timeout)
    return Ready(call, spec, args_hash, owner.run.calls[part.call_id])


def _stage_planned(
    owner: Owner,
    req_id: str,
    index: int,
    part: ToolCallPart,
    args_hash: str = "",
    error: str = "",
) -> None:
    owner.writer.stage(
        r.ToolPlanned(
            part.call_id,
            req_id,
            index,
            part.name,
            args_hash,
            part.provider_call_id,
            error,
        )
    )


def stage_unstarted(
    owner: Owner, req_id: str, calls: list[ToolCallPart], outcome: str
) -> None:
    """Complete calls of a reply that was stopped: on record, never run."""
    for index, part in enumerate(calls):
        _stage_planned(owner, req_id, index, part)
    for part in calls:
        owner.writer.stage(_refused(part.call_id, "not_started", outcome))


def _parse(owner: Owner, name: str, text: str) -> JsonObject:
    text = text or "{}"  # vendors send nothing for "no arguments"
    check = owner.setup.check_arguments
    if check is not None:
        try:
            return check(name, text)
        except NotFound:
            pass  # another executor's tool: it checks for itself
    try:
        value = from_json(text)
    except ValueError as error:
        raise InvalidArguments(f"the arguments are no valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArguments("the arguments must be a JSON object")
    return value


def _plan_output(
    owner: Owner, req_id: str, index: int, part: ToolCallPart, answered: bool
) -> r.ToolOutcome:
    """A call of the output tool: it is the final content, not an effect."""
    output, run = owner.setup.output, owner.run
    errors = output.check(part.arguments) if output is not None else ""
    _stage_planned(owner, req_id, index, part, error=errors)
    if errors:
        owner.writer.stage(r.OutputRejected(req_id, errors, run.output_rejections + 1))
        return _refused(part.call_id, "invalid_args", errors)
    if answered:
        return _refused(part.call_id, "duplicate", "a final answer was given before")
    return r.ToolOutcome(part.call_id, "ok", "none", (TextPart("accepted"),))


def _unknown(owner: Owner, name: str) -> str:
    names = sorted(owner.toolbox.by_name)
    shown = ", ".join(names[:_LISTED_NAMES]) or "none"
    return f"there is no tool named {name!r}; the tools are: {shown}"
