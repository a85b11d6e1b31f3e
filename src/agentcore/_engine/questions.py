"""Questions that running tools put to the user.

Where nobody can answer at once, a call of a tool that may safely run again is put off:
it unwinds, the run pauses, and with the answer the call runs once more from its start.
What it asked before is answered from the journal then.
"""

from __future__ import annotations

from typing import Final

from agentcore._engine.gate import ask_question
from agentcore._engine.owner import Owner
from agentcore.errors import ToolError
from agentcore.types import records as r
from agentcore.types.policy import Answer, Question

_NOBODY: Final = "user_not_reachable: nobody is there to answer"
_NOT_SAFE: Final = (
    "user_not_reachable: nobody is there now, and only a tool declared replay='safe' "
    "can be put off until there is an answer, because it runs again from its start"
)


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
            raise ToolError(_NOBODY)
        if owner.run.calls[call_id].replay != "safe":
            raise ToolError(_NOT_SAFE)
        self._suspended.add(call_id)
        raise Suspended

    async def _put_on_record(self, call_id: str, question: Question) -> None:
        writer = self._owner.writer
        if call_id in self._owner.run.waiting:  # asked before it was put off
            return
        await writer.turn()
        writer.stage(r.QuestionAsked(call_id, question))
        await writer.commit()

    async def _settle(
        self, call_id: str, answer: Answer | None, error: str = ""
    ) -> None:
        writer = self._owner.writer
        await writer.turn()
        actor = self._owner.yours.actor
        writer.stage(r.QuestionAnswered(call_id, answer, error, actor))


def _said(answered: r.QuestionAnswered) -> Answer:
    if answered.answer is None:
        raise ToolError(answered.error)
    return answered.answer
