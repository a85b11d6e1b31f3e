"""The one table from what a tool did to what the journal says of it.

It holds for every tool of every executor alike: an exception is not "no effect", a
refusal is never a failure of the tool, and a long result is shortened for the model but
kept whole (run semantics 2.12).
"""

from __future__ import annotations

from typing import Any, Final, get_args

from agentcore._base.canonical import canonical_json
from agentcore._base.describe import error_text, message_of, type_name
from agentcore._base.surrogates import clean
from agentcore.errors import (
    InvalidArguments,
    NotFound,
    TimedOut,
    ToolError,
    Unavailable,
)
from agentcore.journal.state import CallState
from agentcore.protocols.store import RunStore
from agentcore.types.content import (
    AudioPart,
    BlobRef,
    CallStatus,
    Effect,
    FilePart,
    ImagePart,
    ResultPart,
    TextPart,
    join_text,
)
from agentcore.types.json import EMPTY, Unknown
from agentcore.types.records import ToolOutcome
from agentcore.types.tools import (
    DEFAULT_OUTPUT_CAP,
    ToolFailure,
    ToolResult,
    ToolSpec,
)

_HEAD_SHARE: Final = 0.75
"""Share of a shortened result that shows its beginning."""
_EFFECTS: Final = ("none", "done", "unknown")
_PLAIN: Final = frozenset({type(None), str, int, bool})
"""Values that are JSON without a look inside."""
_STATUSES: Final = frozenset(get_args(CallStatus))
_PARTS: Final = frozenset({TextPart, ImagePart, AudioPart, FilePart, Unknown})
_NO_EFFECT_STATUSES: Final = frozenset(
    {"denied", "invalid_args", "unavailable", "duplicate", "not_started"}
)


def result_of_error(error: Exception, spec: ToolSpec) -> ToolResult:
    """What an exception out of an executor means."""
    if isinstance(error, InvalidArguments):
        return ToolResult.failed(
            message_of(error), status="invalid_args", effect="none"
        )
    if isinstance(error, (NotFound, Unavailable)):
        return ToolResult.failed(
            message_of(error),
            status="unavailable",
            category=error.category,
            effect="none",
            cause=type(error).__name__,
        )
    if isinstance(error, TimedOut):
        return timed_out(spec, message_of(error))
    if isinstance(error, ToolError):
        return ToolResult.failed(
            message_of(error),
            category=error.category,
            effect=error.effect if error.effect in _EFFECTS else None,
            cause=type(error).__name__,
        )
    return ToolResult.failed(error_text(error), cause=type(error).__name__)


def timed_out(spec: ToolSpec, detail: str = "") -> ToolResult:
    """A call that was stopped at its deadline."""
    message = detail or f"{spec.name} did not finish within {spec.timeout:g} s"
    if spec.effects == "none":
        return ToolResult.failed(message, effect="none", cause="TimedOut")
    return ToolResult.failed(
        message, status="unknown", effect="unknown", cause="TimedOut"
    )


def not_a_result(spec: ToolSpec, defect: str) -> ToolResult:
    """An executor returned something that cannot be taken for a result."""
    return ToolResult.failed(f"the executor of {spec.name} returned {defect}")


def interrupted(call: CallState, cause: str) -> ToolOutcome:
    """A started call that a cancel or the host stopped before it returned."""
    call_id = call.planned.call_id
    if call.effects == "none":
        text = TextPart("stopped before it finished")
        return ToolOutcome(call_id, "cancelled", "none", (text,), cause)
    text = TextPart("stopped while it was running")
    return ToolOutcome(call_id, "unknown", "unknown", (text,), cause)


def lost(call: CallState, cause: str) -> ToolOutcome:
    """A started call whose owner died before it returned (R6)."""
    effect: Effect = "none" if call.effects == "none" else "unknown"
    text = TextPart("its outcome was lost when the process running it ended")
    return ToolOutcome(call.planned.call_id, "unknown", effect, (text,), cause)


def shortened(result: ToolResult, spec: ToolSpec | None) -> tuple[ResultPart, ...]:
    """The content of a result, its text cut to the cap and kept nowhere else."""
    cap = spec.output_cap if spec is not None else DEFAULT_OUTPUT_CAP
    if _length(result.content) <= cap:
        return tuple(map(_clean, result.content))
    text = clean(join_text(result.content))
    return (TextPart(f"{text[:cap]}[… {len(text) - cap} characters left out …]"),)


def not_started(call_id: str, cause: str) -> ToolOutcome:
    """A planned call that will not be run."""
    return ToolOutcome(
        call_id, "not_started", "none", (TextPart("not executed: run stopped"),), cause
    )


def fits(result: ToolResult, spec: ToolSpec) -> bool:
    """The result is shown whole."""
    return _length(result.content) <= spec.output_cap


async def outcome_of(
    call: CallState, spec: ToolSpec, result: ToolResult, store: RunStore
) -> ToolOutcome:
    """The record of a call that came back; a long text is stored and shortened."""
    if fits(result, spec):
        return outcome_now(call, spec, result)
    record, _ = await outcome_with_blob(call, spec, result, store)
    return record


async def outcome_with_blob(
    call: CallState, spec: ToolSpec, result: ToolResult, store: RunStore
) -> tuple[ToolOutcome, BlobRef]:
    """The record of a call whose text is too long, and where the whole of it is."""
    content, full = await _shorten(result.content, spec.output_cap, store)
    return _outcome(call, spec, result, content, full), full


def outcome_now(call: CallState, spec: ToolSpec, result: ToolResult) -> ToolOutcome:
    """The record of a call whose result fits."""
    return _outcome(call, spec, result, result.content, None)


def _outcome(
    call: CallState,
    spec: ToolSpec,
    result: ToolResult,
    content: tuple[ResultPart, ...],
    full: BlobRef | None,
) -> ToolOutcome:
    error = result.error
    if not all(type(p) is TextPart and p.text.isascii() for p in content):
        content = tuple(map(_clean, content))
    return ToolOutcome(
        call.planned.call_id,
        result.status,
        _effect(result, spec),
        content,
        "" if error is None else error.cause or "",
        full,
        result.structured,
        _meta(result, spec, error),
    )


def _clean(part: ResultPart) -> ResultPart:
    """Text that every store and every vendor can take."""
    if type(part) is TextPart and not part.text.isascii():
        return TextPart(clean(part.text))
    return part


def defect_of(result: Any) -> str:
    """What is wrong with the object an executor gave; empty if nothing is."""
    if type(result) is not ToolResult:
        return f"{type_name(result)}, not a ToolResult"
    if result.status not in _STATUSES:
        return f"a ToolResult of status {result.status!r}"
    if result.effect is not None and result.effect not in _EFFECTS:
        return f"a ToolResult of effect {result.effect!r}"
    return _defect_of_content(result.content) or _defect_of_facts(result)


def _defect_of_content(content: Any) -> str:
    if type(content) is not tuple:
        return f"a ToolResult whose content is {type_name(content)}, not a tuple"
    for part in content:
        if type(part) not in _PARTS:
            return f"a ToolResult whose content holds {type_name(part)}"
        if type(part) is TextPart and type(part.text) is not str:
            return f"a TextPart of {type_name(part.text)}"
    return ""


def _defect_of_facts(result: ToolResult) -> str:
    cost = result.cost_usd
    if cost is not None and (not isinstance(cost, (int, float)) or cost < 0):
        return f"a ToolResult whose cost_usd is {cost!r}"
    if type(result.structured) in _PLAIN and not result.meta:
        return ""
    try:
        canonical_json([result.structured, dict(result.meta)])
    except (TypeError, ValueError) as error:
        return f"a ToolResult whose structured or meta is no JSON ({error})"
    return ""


def own_cancellation(spec: ToolSpec) -> ToolResult:
    """A tool raised a cancellation that nobody had asked for."""
    return ToolResult.failed(
        f"{spec.name} ended with a cancellation of its own", cause="Cancelled"
    )


def _effect(result: ToolResult, spec: ToolSpec) -> Effect:
    if result.effect is not None:
        return result.effect
    if spec.effects == "none" or result.status in _NO_EFFECT_STATUSES:
        return "none"
    return "done" if result.status == "ok" else "unknown"


def _meta(result: ToolResult, spec: ToolSpec, error: ToolFailure | None) -> Any:
    if error is None and not spec.polling and result.cost_usd is None:
        return result.meta
    meta = dict(result.meta)
    if spec.polling:
        meta["polling"] = True
    if result.cost_usd is not None:
        meta["cost_usd"] = result.cost_usd
    if error is not None:
        meta["category"] = error.category
        if error.category == "fatal" and spec.on_fatal == "end":
            meta["on_fatal"] = "end"
    return meta or EMPTY


def _length(content: tuple[ResultPart, ...]) -> int:
    if len(content) == 1 and type(content[0]) is TextPart:
        return len(content[0].text)
    return sum(len(part.text) for part in content if type(part) is TextPart)


async def _shorten(
    content: tuple[ResultPart, ...], cap: int, store: RunStore
) -> tuple[tuple[ResultPart, ...], BlobRef]:
    """Head and tail of the text with a marker between; the whole goes to the store."""
    text = "\n".join(part.text for part in content if type(part) is TextPart)
    ref = await store.put_blob(text.encode(), media_type="text/plain; charset=utf-8")
    head = int(cap * _HEAD_SHARE)
    tail = cap - head
    marker = f"\n[… {len(text) - cap} of {len(text)} characters left out …]\n"
    shown = TextPart(text[:head] + marker + text[len(text) - tail :])
    others = tuple(part for part in content if type(part) is not TextPart)
    return (shown, *others), ref
