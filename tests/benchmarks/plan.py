"""What the benchmarks' model says: one script for the floor and for agentcore.

The model keeps no state. The id of the last tool result tells it which step it is at,
so it answers in the same time at any length of history, and any number of runs can
share it. Nothing here imports agentcore.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeAlias

Arguments: TypeAlias = dict[str, int]
Reply: TypeAlias = str | list[tuple[str, Arguments]]
"""A final text, or tool calls as (id, arguments)."""

DONE = "done"
DELTA = "token "


class Script(Protocol):
    """What a scripted model asks before it answers."""

    @property
    def model_sleep(self) -> float:
        """Seconds the model takes."""
        ...

    @property
    def tool_sleep(self) -> float:
        """Seconds the tool takes."""
        ...

    @property
    def deltas(self) -> int:
        """How many pieces of text come before the final answer."""
        ...

    def decide(self, last_call_id: str | None) -> Reply:
        """The next reply; `None`: the last message is the user's."""
        ...


@dataclass
class Plan:
    """The script of the timed runs: some steps with tool calls, then a final text."""

    tool_steps: int = 1
    fanout: int = 1
    """Tool calls per step."""
    model_sleep: float = 0.0
    tool_sleep: float = 0.0
    deltas: int = 0
    probe: Callable[[], float] | None = None
    """Read at each call of the model, into `readings`."""
    readings: list[float] = field(default_factory=list)

    def set(self, **changes: Any) -> None:
        """Put another script in force; what is not named goes back to its default."""
        other = Plan(**changes)
        for each in fields(other):
            setattr(self, each.name, getattr(other, each.name))

    def decide(self, last_call_id: str | None) -> Reply:
        """See `Script.decide`."""
        if self.probe is not None:
            self.readings.append(self.probe())
        step = 0 if last_call_id is None else int(last_call_id.partition("_")[0]) + 1
        if step < self.tool_steps:
            return [(f"{step}_{i}", {"a": step, "b": i}) for i in range(self.fanout)]
        return DONE


PLAN = Plan()
"""The plan in force for both sides."""


@dataclass
class SessionPlan:
    """The script of an idle session: two questions with a tool call, one without."""

    number: int = 0
    turn: int = 0
    model_sleep: float = 0.0
    tool_sleep: float = 0.0
    deltas: int = 0

    def decide(self, last_call_id: str | None) -> Reply:
        """See `Script.decide`."""
        if last_call_id is None and self.turn < 2:
            call_id = f"call_{self.turn}_{self.number}"
            return [(call_id, {"a": self.number, "b": self.turn})]
        return f"answer {self.number} {self.turn}"
