"""What a schedule is made of; each prints as the Python that makes it again.

One more kind of action is one more class here, and a line in `schedules.ACTIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tests.simulation.world import S, World, item_of

from agentcore.journal.apply import fold
from agentcore.types.policy import (
    Approve,
    Decision,
    Deny,
    DidNotHappen,
    Happened,
    LeaveUnknown,
)

MOST_ALIVE = 3


class Action(Protocol):
    async def do(self, world: World) -> None:
        """Begin it; what comes of it happens while the world rests."""
        ...


@dataclass(frozen=True)
class Run:
    """A new process runs a new input; awaited, or entered for its events."""

    entered: bool = False

    async def do(self, world: World) -> None:
        if len(world.alive) < MOST_ALIVE:
            world.run(entered=self.entered)


@dataclass(frozen=True)
class Resume:
    """A new process resumes the session."""

    entered: bool = False

    async def do(self, world: World) -> None:
        if world.records and len(world.alive) < MOST_ALIVE:
            world.resume(entered=self.entered)


@dataclass(frozen=True)
class Go:
    """Let one of the waiting tasks through, `times` in a row."""

    pick: int = 0
    times: int = 1

    async def do(self, world: World) -> None:
        for _ in range(self.times):
            world.let_through(self.pick)
            await world.rest()


@dataclass(frozen=True)
class Fail:
    """Let a write through, but into a `StoreFailed`, before or after it was made."""

    pick: int = 0

    async def do(self, world: World) -> None:
        world.fail(self.pick)


@dataclass(frozen=True)
class Crash:
    """A process is killed where it stands."""

    pick: int = 0

    async def do(self, world: World) -> None:
        if alive := world.alive:
            alive[self.pick % len(alive)].crash()


@dataclass(frozen=True)
class Leave:
    """A process is asked to stop, as by Ctrl-C."""

    pick: int = 0

    async def do(self, world: World) -> None:
        if alive := world.alive:
            alive[self.pick % len(alive)].leave()


@dataclass(frozen=True)
class Pause:
    """A process is to pause at the next boundary."""

    pick: int = 0

    async def do(self, world: World) -> None:
        running = [p for p in world.alive if p.run is not None]
        if running:
            world.spawn(running[self.pick % len(running)].run.pause)


@dataclass(frozen=True)
class Steer:
    async def do(self, world: World) -> None:
        _say(world, "steer")


@dataclass(frozen=True)
class FollowUp:
    async def do(self, world: World) -> None:
        _say(world, "follow_up")


@dataclass(frozen=True)
class Cancel:
    async def do(self, world: World) -> None:
        world.ask(lambda: world.client.cancel(session=S))


@dataclass(frozen=True)
class Withdraw:
    pick: int = 0

    async def do(self, world: World) -> None:
        if world.said:
            input_id = f"i{self.pick % world.said + 1}"
            world.ask(lambda: world.client.withdraw(S, input_id))


@dataclass(frozen=True)
class Redeliver:
    pick: int = 0

    async def do(self, world: World) -> None:
        if world.said:
            input_id = f"i{self.pick % world.said + 1}"
            item = item_of("redeliver", world.ids.new("item"), input_id)
            world.ask(lambda: world.store.accept(S, item))


@dataclass(frozen=True)
class Release:
    async def do(self, world: World) -> None:
        if world.records:
            world.ask(lambda: world.client.release(S))


@dataclass(frozen=True)
class Decide:
    """Somebody decides one thing the run waits for; half the time in its favour."""

    pick: int = 0

    async def do(self, world: World) -> None:
        waiting = waits_for(world)
        if waiting and len(world.alive) < MOST_ALIVE:
            key = waiting[self.pick % len(waiting)]
            decisions = {key: decide(world, key, self.pick)}
            world.resume(entered=bool(self.pick % 2), decisions=decisions)


def waits_for(world: World) -> list[str]:
    """The ids of what somebody has to decide."""
    run = fold(S, world.records).open_run
    if run is None or run.paused is None:
        return []
    return list(run.paused.subjects)


def decide(world: World, call_id: str, number: int) -> Decision:
    """A decision about a call; of one that may have happened, the truth or nothing."""
    run = fold(S, world.records).open_run
    if run is None or call_id not in run.calls or call_id in run.waiting:
        return Deny("no") if number % 2 else Approve()
    if number % 2:
        return LeaveUnknown()
    return Happened() if call_id in world.effects else DidNotHappen()


def _say(world: World, delivery: str) -> None:
    input_id = world.new_input()
    door = world.client.submit
    world.ask(
        lambda: door(input_id, session=S, delivery=delivery, input_id=input_id),  # type: ignore[arg-type]  # one of two words
        input_id,
    )
