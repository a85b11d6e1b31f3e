"""Records of approvals and questions."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.actor import Actor
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.policy import Answer, Decision, Question


@frozen
class ApprovalRequested:
    """A call waits for a yes or no about exactly these arguments."""

    call_id: str
    args_hash: str
    tool: str
    arguments: JsonObject
    why: str = ""
    kind: Literal["approval.requested"] = "approval.requested"
    extra: JsonObject = EMPTY


@frozen
class ApprovalDecided:
    """The decision; it holds once, for this call and these arguments.

    On a call whose outcome a crash made unknown it says what had really happened.
    """

    call_id: str
    args_hash: str
    decision: Decision
    actor: Actor | None = None
    position: int = 0
    """Inbox position; 0 where a handler decided, which no inbox saw."""
    kind: Literal["approval.decided"] = "approval.decided"
    extra: JsonObject = EMPTY


@frozen
class QuestionAsked:
    """The run waits for an answer."""

    call_id: str
    question: Question
    kind: Literal["question.asked"] = "question.asked"
    extra: JsonObject = EMPTY


@frozen
class QuestionAnswered:
    """The answer, or why there is none."""

    call_id: str
    answer: Answer | None = None
    error: str = ""
    actor: Actor | None = None
    position: int = 0
    """Inbox position; 0 where a handler answered, which no inbox saw."""
    kind: Literal["question.answered"] = "question.answered"
    extra: JsonObject = EMPTY
