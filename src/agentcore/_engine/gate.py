"""The one gate of a call: budget, permission, approval; and whoever can be asked.

A call passes once, before its intent. A denial is enforced above every executor, so no
executor can ignore it (settled 35).

Where nobody can answer the question of a running tool at once, a call that may safely
run again is put off: it unwinds, the run pauses, and with the answer the call runs once
more from its start. What it asked before is answered from the journal then.
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
from agentcore.types.records import (
    ApprovalDecided,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    ToolOutcome,
)
from agentcore.types.tools import ToolCall, ToolSpec

_NOBODY: Final = "user_not_reachable: nobody is there to approve this call"
_NOBODY_ANSWERS: Final = "user_not_reachable: nobody is there to answer"
_NOT_SAFE: Final = (
    "user_not_reachable: nobody is there now, and only a tool declared replay='safe' "
    "can be put off until there is an answer, because it runs again from its start"
)


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


class Suspended(BaseException):
    """Unwinds a tool whose question waits. No `Exception`: tools must not catch it."""


class Questions:
    """What the calls of one owner asked."""

    __slots__ = ("_asked", "_owner", "_suspended")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._asked: dict[str, int] = {}
        """How many questions a call has asked in this process, by call id."""
        self._suspended: set[str] = set()

    def begin(self, call_id: str) -> None:
        """The call runs from its start."""
        self._asked.pop(call_id, None)
        self._suspended.discard(call_id)

    def suspended(self, call_id: str) -> bool:
        """The call was put off."""
        return call_id in self._suspended

    async def ask(self, call_id: str, question: Question) -> Answer:
        """Ask, and keep question and answer on record.

        Raises:
            ToolError: there is no answer, and why.
            Suspended: the answer comes later.
        """
        owner = self._owner
        number = self._asked.get(call_id, 0)
        self._asked[call_id] = number + 1
        given = owner.run.answers.get(call_id, ())
        if number < len(given):
            return _said(given[number])
        await self._put_on_record(call_id, question)
        try:
            answer = await self._put(call_id, question)
        except ToolError as failure:
            await self._settle(call_id, None, str(failure))
            raise
        await self._settle(call_id, answer)
        return answer

    async def _put(self, call_id: str, question: Question) -> Answer:
        owner = self._owner
        if owner.handler is not None:
            return await ask_question(owner, owner.handler, question)
        if not owner.may_ask:
            raise ToolError(_NOBODY_ANSWERS)
        if owner.run.calls[call_id].replay != "safe":
            raise ToolError(_NOT_SAFE)
        self._suspended.add(call_id)
        raise Suspended

    async def _put_on_record(self, call_id: str, question: Question) -> None:
        writer = self._owner.writer
        if call_id in self._owner.run.waiting:  # asked before it was put off
            return
        await writer.turn()
        writer.stage(QuestionAsked(call_id, question))
        await writer.commit()

    async def _settle(
        self, call_id: str, answer: Answer | None, error: str = ""
    ) -> None:
        writer = self._owner.writer
        await writer.turn()
        actor = self._owner.yours.actor
        writer.stage(QuestionAnswered(call_id, answer, error, actor))


def _said(answered: QuestionAnswered) -> Answer:
    if answered.answer is None:
        raise ToolError(answered.error)
    return answered.answer
