"""Records of a run's life."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.types.actor import Actor
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.runs import Stop, Verification
from agentcore.types.usage import RunUsage

PauseReason: TypeAlias = Literal[
    "approval", "question", "confirm_unknown", "cwd", "host"
]


@frozen
class RunStarted:
    """A run begins; the inputs it starts with are placed in the same append."""

    run_id: str
    continues: str | None = None
    """The run it continues, where the caller resumed an ended one."""
    settings: JsonObject = EMPTY
    input_ids: tuple[str, ...] = ()
    kind: Literal["run.started"] = "run.started"
    extra: JsonObject = EMPTY


@frozen
class RunPaused:
    """The run waits, holding nothing; `resume` continues it."""

    run_id: str
    reason: PauseReason
    subjects: tuple[str, ...] = ()
    detail: str = ""
    kind: Literal["run.paused"] = "run.paused"
    extra: JsonObject = EMPTY


@frozen
class RunUnpaused:
    """The run goes on."""

    run_id: str
    decisions: tuple[str, ...] = ()
    actor: Actor | None = None
    traceparent: str | None = None
    kind: Literal["run.unpaused"] = "run.unpaused"
    extra: JsonObject = EMPTY


@frozen
class RunEnded:
    """The run is over; nothing of it can start again."""

    run_id: str
    stop: Stop
    usage: RunUsage = RunUsage()
    output_req_id: str | None = None
    """The request whose reply is the final answer."""
    verification: Verification = "not_applicable"
    kind: Literal["run.ended"] = "run.ended"
    extra: JsonObject = EMPTY
