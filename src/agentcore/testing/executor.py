"""An executor that runs nothing: it answers calls as the test says, and logs them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from inspect import isawaitable
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack

from anyio.lowlevel import checkpoint

from agentcore._base.clock import SystemClock
from agentcore.errors import ConfigError, NotFound, Unavailable
from agentcore.protocols.runtime import Clock
from agentcore.testing.steps import Waitable
from agentcore.types.content import TextPart
from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import (
    Effects,
    Replay,
    ToolCall,
    ToolResult,
    ToolSpec,
    Use,
)

Outcome: TypeAlias = Any
"""What a call comes to: a `ToolResult`; an exception, raised; a function of the
`ToolCall`, sync or async, that returns or raises one of these; `in_turn(…)`; a text; or
any other JSON value, shown as JSON and kept as `structured`."""


class Declarations(TypedDict, total=False):
    """What a tool may declare besides its name and parameters; see `ToolSpec`."""

    description: str
    effects: Effects
    replay: Replay
    parallel: bool
    timeout: float
    output_cap: int
    approval: Literal["auto", "ask"]
    uses: frozenset[Use]
    fallback: bool
    on_fatal: Literal["continue", "end"]
    polling: bool
    available_in_plan_mode: bool
    risk: Literal["low", "medium", "high"]
    version: str
    source: str


def tool_spec(
    name: str,
    parameters: Mapping[str, str | JsonObject] | None = None,
    /,
    **declarations: Unpack[Declarations],
) -> ToolSpec:
    """A `ToolSpec` in short.

    Args:
        name: The tool's name.
        parameters: Per parameter a JSON type (`"string"`) or a JSON Schema, all
            required. `None`: an object with anything in it.
        **declarations: As in `ToolSpec`, with its conservative defaults.
    """
    schema: dict[str, Any] = {"type": "object"}
    if parameters is not None:
        properties = {
            key: {"type": kind} if isinstance(kind, str) else kind
            for key, kind in parameters.items()
        }
        schema |= {
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    declarations.setdefault("description", f"The fake tool {name}.")
    return ToolSpec(name=name, parameters=schema, **declarations)


class in_turn:  # noqa: N801 - reads as a function, like `call` and `step`
    """Outcomes for one call after another; the last one stays for all later calls.

    Args:
        *outcomes: At least one.
    """

    def __init__(self, *outcomes: Outcome) -> None:
        if not outcomes:
            raise ConfigError("in_turn() needs at least one outcome")
        self._outcomes = list(outcomes)

    def next(self) -> Outcome:
        """The outcome of the next call."""
        return self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]


class FakeExecutor:
    """A `ToolExecutor` whose calls come to what the test says.

    Args:
        outcomes: Per tool name, see `Outcome`.
        specs: What it offers. A name without a spec gets `tool_spec(name)`.
        gates: Per tool name, where a call waits before it does anything.
        delays: Per tool name, the seconds a call takes.
        clock: Whose seconds; real ones by default.
    """

    def __init__(
        self,
        outcomes: Mapping[str, Outcome],
        *,
        specs: Iterable[ToolSpec] = (),
        gates: Mapping[str, Waitable] | None = None,
        delays: Mapping[str, float] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.calls: list[ToolCall] = []
        """Every call that reached it, in order of start."""
        self.finished: list[ToolCall] = []
        """Those that returned or raised, in that order; a cancelled one did not."""
        self.running: int = 0
        """Calls being executed now."""
        self.peak: int = 0
        """The most calls that were ever executed at a time."""
        self.entered: int = 0
        """How many times it is open now."""
        self.online = True
        """Set it to `False`, and everything raises `Unavailable`."""
        self._outcomes = dict(outcomes)
        given = {spec.name: spec for spec in specs}
        if strangers := sorted(given.keys() - self._outcomes.keys()):
            raise ConfigError(f"FakeExecutor: no outcome for {', '.join(strangers)}")
        self._specs = tuple(given.get(n) or tool_spec(n) for n in self._outcomes)
        self._gates = gates or {}
        self._delays = delays or {}
        self._clock = clock or SystemClock()

    async def __aenter__(self) -> Self:
        """Count an entry."""
        self.entered += 1
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Count an exit."""
        self.entered -= 1

    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        """The specs, in the order of the outcomes."""
        await checkpoint()
        self._check_online()
        return self._specs

    async def execute(self, call: ToolCall, context: ToolContext[Any]) -> ToolResult:
        """Log the call, pass its gate, take its time, and come to its outcome."""
        self._check_online()
        if call.name not in self._outcomes:
            raise NotFound(f"no tool {call.name!r} here")
        self.calls.append(call)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            return await self._run(call)
        finally:
            self.running -= 1

    async def _run(self, call: ToolCall) -> ToolResult:
        await checkpoint()
        if (gate := self._gates.get(call.name)) is not None:
            await gate.wait()
        if seconds := self._delays.get(call.name):
            await self._clock.sleep(seconds)
        try:
            result = await _resolve(self._outcomes[call.name], call)
        except Exception:
            self.finished.append(call)
            raise
        self.finished.append(call)
        return result

    def _check_online(self) -> None:
        if not self.online:
            raise Unavailable("the fake executor is offline")


async def _resolve(outcome: Outcome, call: ToolCall) -> ToolResult:
    """Work out what an outcome stands for, until it is a result or raises."""
    if isinstance(outcome, type) and issubclass(outcome, BaseException):
        raise outcome(f"fake {outcome.__name__}")
    if isinstance(outcome, BaseException):
        raise outcome
    if isinstance(outcome, ToolResult):
        return outcome
    if isinstance(outcome, str):
        return ToolResult.of_text(outcome)
    if isinstance(outcome, in_turn):
        return await _resolve(outcome.next(), call)
    if callable(outcome):
        made = outcome(call)
        return await _resolve(await made if isawaitable(made) else made, call)
    text = json.dumps(outcome, ensure_ascii=False)
    return ToolResult((TextPart(text),), structured=outcome)
