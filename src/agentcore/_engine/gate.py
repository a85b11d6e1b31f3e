"""The one gate of a call: budget, permission, approval; once, before its intent.

A denial here is enforced above every executor, so no executor can ignore it
(settled 35).
"""

from __future__ import annotations

import inspect
from typing import Any, Final

import anyio

from agentcore._base.canonical import json_digest
from agentcore._base.describe import error_text, type_name
from agentcore._base.frozen import frozen
from agentcore._base.surrogates import clean
from agentcore._engine.deps import AskHandler
from agentcore._engine.owner import Owner
from agentcore.errors import ToolError
from agentcore.types.content import TextPart
from agentcore.types.policy import (
    Allow,
    Answer,
    ApprovalRequest,
    Approve,
    Ask,
    Charge,
    Decision,
    Deny,
    Exhausted,
    Forbid,
    Question,
)
from agentcore.types.records import ApprovalDecided, ApprovalRequested, ToolOutcome
from agentcore.types.tools import ToolCall, ToolSpec

_NOBODY: Final = "user_not_reachable: nobody is there to approve this call"


@frozen
class NeedsApproval:
    """The call may only run after somebody said yes."""

    why: str


def judge(
    owner: Owner, spec: ToolSpec, call: ToolCall
) -> ToolOutcome | NeedsApproval | None:
    """The verdict on a call: a denial, a question, or `None` for "run it"."""
    policy = owner.setup.permissions
    if policy is not None:
        try:
            verdict = policy.decide(call, spec, owner.view)
        except Exception as error:  # noqa: BLE001 - a broken policy must not let pass
            return denied(call.id, f"the permission policy failed: {error_text(error)}")
        if type(verdict) is Forbid:
            return denied(call.id, verdict.reason)
        if type(verdict) is Ask:
            return NeedsApproval(clean(str(verdict.question)))
        if type(verdict) is not Allow:
            return denied(call.id, _no_verdict(verdict))
    if spec.approval == "ask":
        return NeedsApproval(f"{spec.name} asks for approval")
    return None


def _no_verdict(value: Any) -> str:
    """Whatever is no verdict forbids: a policy fails closed."""
    if inspect.iscoroutine(value):
        value.close()
        return "the permission policy is async; `decide` must be a plain function"
    return (
        f"the permission policy returned {type_name(value)}, "
        "which is not Allow, Forbid or Ask"
    )


def charge(owner: Owner, call: ToolCall) -> ToolOutcome | None:
    """Reserve the call in the budget; a denial where it does not fit."""
    if owner.budget is None:
        return None
    verdict = owner.budget.reserve(Charge(tool_calls=1, tool=call.name), owner.view)
    if type(verdict) is Exhausted:
        reason = verdict.detail or f"the limit on {verdict.limit} is reached"
        return denied(call.id, reason, limit=verdict.limit)
    return None


def nobody_there(call_id: str) -> ToolOutcome:
    """The outcome of a call that needs a yes where nobody can give one."""
    return denied(call_id, _NOBODY)


def denied(call_id: str, reason: str, *, limit: str = "") -> ToolOutcome:
    """The outcome of a call that was refused: it never ran."""
    meta = {"category": "policy_denied"} | ({"limit": limit} if limit else {})
    content = (TextPart(f"denied: {clean(str(reason))}"),)
    return ToolOutcome(call_id, "denied", "none", content, "denied", meta=meta)


def request_approval(owner: Owner, spec: ToolSpec, call: ToolCall, why: str) -> None:
    """Put on record that a call waits for a yes or no about exactly these arguments."""
    args_hash = json_digest(call.arguments)
    owner.writer.stage(
        ApprovalRequested(call.id, args_hash, spec.name, call.arguments, why)
    )


async def ask_approval(
    owner: Owner, handler: AskHandler, asked: ApprovalRequested
) -> None:
    """Ask the host's handler now, and put its decision on record.

    It holds for exactly these arguments, unless it brings its own.
    """
    request = ApprovalRequest(
        asked.call_id, asked.tool, asked.arguments, asked.why, asked.args_hash
    )
    await owner.writer.commit()
    decision = await _put(owner, handler, request)
    owner.writer.stage(
        ApprovalDecided(asked.call_id, asked.args_hash, decision, owner.yours.actor)
    )


def denied_by_user(call_id: str, decision: Deny) -> ToolOutcome:
    """The outcome of a call that a person refused."""
    return denied(call_id, decision.reason or "the user said no")


async def _put(
    owner: Owner, handler: AskHandler, request: ApprovalRequest
) -> Approve | Deny:
    """Run the host's handler; everything but an approval is a denial."""
    owner.in_effect = True
    decision: Decision | None = None
    problem = "no answer in time"
    with anyio.move_on_after(owner.setup.ask_timeout):
        try:
            decision = await handler(request)
        except Exception as error:  # noqa: BLE001 - the host's code; silence means no
            problem = f"the approval handler failed: {error_text(error)}"
    owner.in_effect = False
    if isinstance(decision, Deny):
        return Deny(clean(str(decision.reason)))
    if isinstance(decision, Approve):
        return decision
    if decision is not None:
        problem = f"the approval handler returned {type_name(decision)}"
    return Deny(problem)


async def ask_question(owner: Owner, handler: AskHandler, question: Question) -> Answer:
    """Put a tool's question to the user.

    Raises:
        ToolError: no answer came in time, or the handler failed.
    """
    answer: Decision | None = None
    with anyio.move_on_after(owner.setup.ask_timeout) as limit:
        try:
            answer = await handler(question)
        except Exception as error:
            message = f"the question handler failed: {error_text(error)}"
            raise ToolError(message) from error
    if limit.cancelled_caught:
        raise ToolError("user_timeout: no answer in time", category="retryable")
    if isinstance(answer, Answer):
        return answer
    if isinstance(answer, Deny):
        raise ToolError(f"user_rejected: {answer.reason}", category="policy_denied")
    raise ToolError(f"the question handler returned {type_name(answer)}")
