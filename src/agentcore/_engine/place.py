"""Where runs of an agent take place: its store, its open parts, its idea of input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agentcore._base.frozen import frozen
from agentcore._engine.deps import RunSetup
from agentcore.protocols.store import RunStore
from agentcore.types.inbox import Delivery, Input

MakeInput = Callable[[Any, Delivery, str, RunSetup], Input]
"""Makes the inbox item of a message; raises `ConfigError` for a bad one."""


class Lifetimes(Protocol):
    """Keeps the agent's parts open while somebody is inside."""

    async def enter(self) -> None:
        """Open them, or count one more user."""
        ...

    async def leave(self) -> None:
        """Close them after the last user."""
        ...


@frozen
class Place:
    """Where runs of an agent take place; made once per agent."""

    store: Callable[[bool], RunStore]
    """Gives the store; told whether anybody could read the journal again."""
    lifetimes: Lifetimes
    make_input: MakeInput
    watch: bool = True
    """The store can be watched."""
    private: bool = False
    """The store lives only as long as the handle."""
