"""What the suites write into a store: a run as an engine would journal it."""

from __future__ import annotations

from agentcore.types.actor import Actor
from agentcore.types.content import ImagePart, TextPart, ToolCallPart
from agentcore.types.inbox import Input
from agentcore.types.json import Unknown
from agentcore.types.policy import Approve
from agentcore.types.records import (
    ApprovalDecided,
    InputAccepted,
    InputPlaced,
    ModelIntent,
    ModelOutcome,
    Record,
    RunEnded,
    RunStarted,
    StateChanged,
    ToolOutcome,
    ToolsAdvertised,
)
from agentcore.types.runs import Stop
from agentcore.types.tools import ToolSpec
from agentcore.types.usage import RunUsage, Usage

SOMEBODY = Actor("user-1", roles=("admin",), tags={"team": ["a", None, 1.5]})

RUN: tuple[Record, ...] = (
    InputAccepted("input-1", 1, (TextPart("Hällo\n\x00"),), actor=SOMEBODY),
    RunStarted("run-1", settings={"timeout": 3.5}, input_ids=("input-1",)),
    InputPlaced("input-1", "run-1"),
    ToolsAdvertised(
        "digest", (ToolSpec("t", "d", {"type": "object"}, uses=frozenset({"exec"})),)
    ),
    ModelIntent("req-1", 1, 4, "digest", "a-model", prepared={"nudge": "go on"}),
    ModelOutcome(
        "req-1",
        1,
        "ok",
        (TextPart("Let me see."), ToolCallPart("t", '{"a": 1}', "call-1", "p1")),
        "tool_calls",
        Usage(10, 5, extra={"from_the_future": 1}),
    ),
    ApprovalDecided("call-1", "hash", Approve({"a": 2}, "session"), SOMEBODY),
    ToolOutcome(
        "call-1",
        "ok",
        "done",
        (TextPart("two"), ImagePart("image/png", data=b"\x00\xff")),
        structured={"n": [1, None, {"deep": True}]},
    ),
    StateChanged("todos", [{"text": "x", "done": False}]),
    RunEnded("run-1", Stop("completed", "final"), RunUsage(1, 1, 1, 10, 5)),
)

FROM_THE_FUTURE: tuple[Record, ...] = (
    Unknown("future.kind", {"kind": "future.kind", "nested": {"a": [1, {"b": None}]}}),
    InputPlaced("input-1", "run-1", extra={"why": {"new": ["field"]}}),
    ToolOutcome(
        "call-2", "ok", content=(Unknown("hologram", {"kind": "hologram", "w": 3}),)
    ),
)


def text_input(item_id: str, text: str = "hello") -> Input:
    """An input of one text."""
    return Input(item_id, (TextPart(text),), actor=SOMEBODY)
