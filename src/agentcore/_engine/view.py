"""The read-only, live view of a run that policies and tools get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agentcore.journal.state import RunState, SessionState
from agentcore.protocols.context import Projector
from agentcore.protocols.runtime import Clock
from agentcore.types.actor import Actor
from agentcore.types.json import JsonValue
from agentcore.types.messages import Message
from agentcore.types.usage import RunUsage


class LiveView:
    """A `RunView` over the fold; made once per owner, always current."""

    __slots__ = ("_clock", "_projector", "_since", "_state")

    def __init__(self, state: SessionState, projector: Projector, clock: Clock) -> None:
        self._state = state
        self._projector = projector
        self._clock = clock
        self._since = clock.monotonic()

    def restart_clock(self) -> None:
        """A run begins: its running time is counted from here."""
        self._since = self._clock.monotonic()

    @property
    def _run(self) -> RunState:
        run = self._state.run
        if run is None:
            raise LookupError("no run has been started in this session")
        return run

    @property
    def session_id(self) -> str:
        """The session."""
        return self._state.session_id

    @property
    def run_id(self) -> str:
        """The open run."""
        return self._run.run_id

    @property
    def root_session_id(self) -> str:
        """The root of the session tree."""
        return self._state.root_session_id

    @property
    def actors(self) -> tuple[Actor, ...]:
        """The actors of the placed inputs."""
        return self._run.actors

    @property
    def usage(self) -> RunUsage:
        """What the run has spent so far."""
        return self._run.totals.usage()

    @property
    def tool_uses(self) -> Mapping[str, int]:
        """Started calls by tool name."""
        return MappingProxyType(self._run.tool_uses)

    @property
    def running_seconds(self) -> float:
        """Owned running time of the run."""
        return self._clock.monotonic() - self._since

    @property
    def messages(self) -> Sequence[Message]:
        """The projected history."""
        return self._projector.messages

    @property
    def state(self) -> Mapping[str, JsonValue]:
        """The session's state map."""
        return MappingProxyType(self._state.values)
