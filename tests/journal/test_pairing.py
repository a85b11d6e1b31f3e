"""The pairing check: every call has exactly one result directly after it."""

import pytest

from agentcore.testing import check_pairing
from agentcore.types.content import TextPart, ToolCallPart, ToolResultPart
from agentcore.types.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    user_text,
)

USER = user_text("hi")


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolCallPart("t", "{}", one) for one in ids))


def results(*ids: str, name: str = "t") -> ToolMessage:
    return ToolMessage(tuple(ToolResultPart(i, name, (TextPart("r"),)) for i in ids))


SOUND: dict[str, list[Message]] = {
    "nothing": [],
    "no calls": [USER, AssistantMessage((TextPart("x"),)), USER],
    "one": [USER, calls("a"), results("a")],
    "a batch": [USER, calls("a", "b"), results("a", "b"), USER],
    "another order": [USER, calls("a", "b"), results("b", "a")],
    "several messages": [USER, calls("a", "b"), results("a"), results("b"), USER],
    "an id again later": [calls("a"), results("a"), calls("a"), results("a")],
    "vendor ids": [
        AssistantMessage((ToolCallPart("t", "{}", provider_call_id="v"),)),
        ToolMessage((ToolResultPart("", "t", (), provider_call_id="v"),)),
    ],
}
BROKEN: dict[str, tuple[list[Message], str]] = {
    "open at the end": ([USER, calls("a")], "call a of 't' has no result"),
    "open in the middle": ([calls("a"), USER, results("a")], "has no result"),
    "half a batch": ([calls("a", "b"), results("a"), USER], "call b"),
    "an orphan": ([USER, results("a")], "not in the reply before it"),
    "a result before its call": ([results("a"), calls("a")], "not in the reply"),
    "a second result": ([calls("a"), results("a", "a")], "second result of call a"),
    "again later": ([calls("a"), results("a"), USER, results("a")], "not in the reply"),
    "another call's": ([calls("a"), results("b")], "call b"),
    "another name": ([calls("a"), results("a", name="u")], "names 'u'"),
    "a call twice": ([calls("a", "a"), results("a")], "call a stands twice"),
    "a word between": (
        [calls("a"), SystemMessage("x"), results("a")],
        "before message 1",
    ),
}


@pytest.mark.parametrize("messages", SOUND.values(), ids=SOUND)
def test_a_history_in_order_has_no_problem(messages: list[Message]) -> None:
    assert check_pairing(messages) == []


@pytest.mark.parametrize(("messages", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_history_is_told_where_and_what(
    messages: list[Message], words: str
) -> None:
    assert words in "\n".join(check_pairing(messages))
