"""What goes wrong, and where: the faults a `FaultyStore` is given."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from typing_extensions import override

from agentcore._base.clock import SystemClock
from agentcore.errors import StoreFailed
from agentcore.protocols.runtime import Clock
from agentcore.testing._places import Place, place_of
from agentcore.testing.runtime import FakeClock
from agentcore.testing.steps import Waitable
from agentcore.types.records import Record
from agentcore.types.runs import Lease


class Crashed(BaseException):
    """The process of this handle is dead: nothing in it goes on.

    Not an `Exception`, so that no handler of errors keeps a dead process going.
    """


@runtime_checkable
class Torn(Protocol):
    """A store that can leave behind what a crash in the middle of an append would."""

    async def append_torn(
        self,
        lease: Lease,
        records: Sequence[Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> None:
        """Write a part of what `append` would: half a line, an open transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong once, at one place.

    Made by `fails`, `crashes`, `kills`, `delays`, `holds`, `turns_clock`, or by hand
    for anything else.
    """

    place: Place
    what: str
    """In a word, for messages."""
    act: Callable[[], Awaitable[object] | object]
    """Called, and awaited where it returns something to await. What it raises, the
    caller of the store gets; `Crashed` ends the whole handle."""

    @override
    def __str__(self) -> str:
        return f"{self.what} {self.place}"


def fails(at: str, error: BaseException | None = None) -> Fault:
    """The call raises, `before` having written anything or `after` it wrote all.

    Args:
        at: Where, see the module.
        error: By default `StoreFailed`, after which nobody knows what was written.
    """

    def act() -> None:
        raise error or StoreFailed(f"a fault was injected at {at}")

    return Fault(place_of(at), "fails", act)


def crashes(at: str) -> Fault:
    """The handle dies, as far as one process can play it: `Crashed`."""

    def act() -> None:
        raise Crashed(f"crashed at {at}")

    return Fault(place_of(at), "crashes", act)


def kills(at: str) -> Fault:
    """The real process is killed with SIGKILL, at once and with all its threads."""
    return Fault(place_of(at), "kills", kill_myself)


def delays(at: str, seconds: float, clock: Clock | None = None) -> Fault:
    """The call takes `seconds` longer, of a `FakeClock` for example."""
    return Fault(
        place_of(at), "delays", lambda: (clock or SystemClock()).sleep(seconds)
    )


def holds(at: str, gate: Waitable) -> Fault:
    """The call waits at a `Gate` until the test opens it."""
    return Fault(place_of(at), "holds", gate.wait)


def turns_clock(at: str, clock: FakeClock, wall: float) -> Fault:
    """The wall clock jumps to `wall`, also backwards; monotonic time goes on."""
    return Fault(place_of(at), "turns_clock", lambda: clock.set_wall(wall))


def kill_myself() -> None:
    """Kill this process as `kill -9` does: no `finally`, no `atexit`, no flush."""
    # Windows has no signal that cannot be caught; there, leaving at once comes closest.
    number = getattr(signal, "SIGKILL", None)
    if number is None:
        os._exit(9)
    os.kill(os.getpid(), number)
    signal.pause()  # the signal may take a moment; nothing must happen in it


async def strike(fault: Fault) -> None:
    """Let a fault happen."""
    done: Any = fault.act()
    if isawaitable(done):
        await done
