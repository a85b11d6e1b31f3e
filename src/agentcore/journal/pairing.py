"""Does every tool call have its result? A check of messages, whatever the vendor.

Every wire format refuses a history in which a call has no result directly after it, or
a result no call directly before it; one such history makes every later request of a
session fail. It says nothing of the order of the results, which vendors do not mind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentcore.types.content import ToolCallPart, ToolResultPart
from agentcore.types.messages import AssistantMessage, Message, ToolMessage


def check_pairing(messages: Iterable[Message]) -> list[str]:
    """What is wrong with the calls and results of a history; empty if nothing is.

    Results of one reply may stand in several tool messages, as long as nothing else
    stands between.
    """
    problems: list[str] = []
    owed: dict[str, str] = {}
    paid: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            for result in message.results:
                problem = _settle(result, owed, paid)
                if problem:
                    problems.append(f"message {number}: {problem}")
            continue
        problems += _unpaid(owed, f"before message {number}")
        owed, paid = {}, set()
        if isinstance(message, AssistantMessage):
            owed, twice = _owed(message.tool_calls)
            problems += [f"message {number}: call {key} stands twice" for key in twice]
    return problems + _unpaid(owed, "at the end")


def _owed(calls: Sequence[ToolCallPart]) -> tuple[dict[str, str], list[str]]:
    owed: dict[str, str] = {}
    twice: list[str] = []
    for call in calls:
        key = _key(call)
        if key in owed:
            twice.append(key)
        owed[key] = call.name
    return owed, twice


def _settle(result: ToolResultPart, owed: dict[str, str], paid: set[str]) -> str:
    key = _key(result)
    if key in paid:
        return f"a second result of call {key}"
    if key not in owed:
        return f"a result of call {key}, which is not in the reply before it"
    name = owed.pop(key)
    paid.add(key)
    if name != result.name:
        return f"the result of call {key} names {result.name!r}, the call {name!r}"
    return ""


def _unpaid(owed: dict[str, str], where: str) -> list[str]:
    return [
        f"{where}: call {key} of {name!r} has no result" for key, name in owed.items()
    ]


def _key(part: ToolCallPart | ToolResultPart) -> str:
    return part.call_id or part.provider_call_id
