"""The small conveniences of the shared types."""

import copy
import pickle
from typing import Any

import pytest

from agentcore.types.content import TextPart, ToolCallPart
from agentcore.types.json import EMPTY
from agentcore.types.messages import (
    AssistantMessage,
    SystemMessage,
    ToolMessage,
    host_note,
    user_text,
)
from agentcore.types.model import ModelResponse
from agentcore.types.options import UNSET, merge
from agentcore.types.skills import Skill
from agentcore.types.tools import ToolResult
from agentcore.types.usage import RunUsage, Usage


def test_every_message_tells_its_role() -> None:
    messages: list[Any] = [
        SystemMessage("be kind"),
        user_text("hi"),
        host_note("well"),
        AssistantMessage(()),
        ToolMessage(()),
    ]
    roles = [message.role for message in messages]
    assert roles == ["system", "user", "user", "assistant", "tool"]


def test_a_response_tells_its_text_and_its_calls() -> None:
    call = ToolCallPart("look", "{}")
    response = ModelResponse((TextPart("a"), call, TextPart("b")), "tool_calls")
    assert response.text == "ab"
    assert response.tool_calls == (call,)


def test_a_result_tells_whether_it_is_one() -> None:
    assert ToolResult.of_text("fine").ok
    failed = ToolResult.failed("not so")
    assert not failed.ok
    assert failed.text == "not so"


def test_a_total_is_unknown_while_a_part_of_it_is() -> None:
    assert Usage(1, 2).total_tokens == 3
    assert Usage(1, None).total_tokens is None
    assert Usage(None, 2).total_tokens is None
    assert RunUsage(input_tokens=1, output_tokens=2).total_tokens == 3


def test_the_empty_object_is_one_and_stays_empty() -> None:
    assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY
    assert copy.deepcopy(EMPTY) is EMPTY
    assert EMPTY == {}
    assert EMPTY != {"a": 1}
    assert EMPTY != ()
    assert hash(EMPTY) == hash(EMPTY)
    assert (list(EMPTY), len(EMPTY), repr(EMPTY)) == ([], 0, "{}")
    with pytest.raises(KeyError):
        EMPTY["anything"]


def test_of_layered_options_the_last_opinion_counts() -> None:
    assert repr(UNSET) == "UNSET"
    stop = ["x"]
    low = {"a": 1, "b": {"c": 1, "d": 2}, "e": 5, "stop": stop}
    merged = merge(low, {"a": None, "b": {"c": UNSET, "f": 3}, "e": {"g": 4}})
    assert merged == {"a": None, "b": {"d": 2, "f": 3}, "e": {"g": 4}, "stop": ["x"]}
    assert merged["stop"] is not stop
    assert merge({"a": 1}, {"a": UNSET, "b": UNSET}) == {}


def test_a_skill_without_a_list_of_tools_restricts_none() -> None:
    skill = Skill("tea", "Makes tea", "Boil water.")
    assert skill.allowed_tools is None
    assert skill.files == ()
