"""Plays a schedule to its end, and judges what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import anyio
from tests.simulation import rules
from tests.simulation.actions import Action, decide, waits_for
from tests.simulation.world import Loop, Process, S, World, Wrong, running_loop

from agentcore.errors import AlreadySettled, ConfigError, SessionBusy, StoreFailed
from agentcore.journal.apply import fold
from agentcore.testing.journals import assert_journal
from agentcore.types import records as r

MOST_TURNS = 3_000
MOST_RESUMES = 12
PATIENCE = 5.0
REFUSED_RESUMES = (SessionBusy, ConfigError, AlreadySettled)
"""Somebody owns the session, or there is nothing to resume or to decide."""


@dataclass(frozen=True)
class Schedule:
    """Everything that is random about a simulation."""

    actions: tuple[Action, ...]
    replies: tuple[str, ...] = ()
    """What the model answers, in order, then "text"; see `world.reply`."""
    suspends: bool = True
    """Store calls take time, as on a disk; otherwise they are done at once."""


class Played(NamedTuple):
    """What came of a schedule."""

    records: Sequence[r.StoredRecord]
    effects: Sequence[str]
    replies: int
    """How many the model gave: each is a step of a run."""


def play(schedule: Schedule) -> Played:
    """Play a schedule on a new event loop.

    Raises:
        AssertionError: something happened that never should; it tells the story.
    """
    return anyio.run(_play, schedule, backend_options={"loop_factory": Loop})


async def _play(schedule: Schedule) -> Played:
    story: AssertionError | None = None
    async with anyio.create_task_group() as tasks:
        world = World(schedule.replies, suspends=schedule.suspends, tasks=tasks)
        try:
            await _follow(schedule, world)
        except Exception as error:  # noqa: BLE001 - told with its story, outside
            what = f"{type(error).__name__}: {error}"
            story = AssertionError(f"{what}\nplay({schedule})\n{world.told()}")
            story.__cause__ = error
        for process in world.processes:
            process.crash()
        tasks.cancel_scope.cancel()
    if story is not None:
        raise story
    return Played(world.records, world.effects, world.steps)


async def _follow(schedule: Schedule, world: World) -> None:
    for action in schedule.actions:
        world.log.append(f"  {action}")
        await action.do(world)
        await world.rest()
    world.log.append("  and then to the end:")
    await _to_the_end(world)
    await _judge(world)


async def _to_the_end(world: World) -> None:
    """Everything alive finishes; what is left undone is resumed until it is done."""
    await _finish(world)
    error: Exception | None = None
    for number in range(MOST_RESUMES):
        if not world.records or _is_done(world):
            return
        # Something else came instead of a decision: it takes none any more.
        settled = isinstance(error, AlreadySettled)
        waiting = [] if settled else waits_for(world)
        process = world.resume(
            entered=False,
            decisions={key: decide(world, key, number) for key in waiting},
        )
        await _finish(world)
        error = process.error
    raise Wrong(f"{MOST_RESUMES} resumes did not end it, the last one with {error!r}")


async def _finish(world: World) -> None:
    await world.rest()
    for _ in range(MOST_TURNS):
        if not world.waiting:
            if not world.alive:
                return
            # Whoever reads along with a dead owner looks after it now and then.
            if not running_loop().jump(PATIENCE):
                raise Wrong("somebody waits for something nobody will do")
        world.let_through(0)
        await world.rest()
    raise Wrong("it goes on and on")


def _is_done(world: World) -> bool:
    state = fold(S, world.records)
    return state.open_run is None and not state.pending


async def _judge(world: World) -> None:
    for process in world.processes:
        _judge_process(process)
        _judge_result(world, process)
    if not world.records:
        return
    assert_journal(world.records, world.effects)
    for rule in rules.KEPT:
        if problems := rule(world.records):
            raise Wrong("\n".join(problems))
    await _judge_inputs(world)
    lease = await world.store.acquire(S, "the judge")  # nobody holds it any more
    await world.store.release(lease)


def _judge_process(process: Process) -> None:
    error = process.error
    expected = REFUSED_RESUMES if process.resumes else ()
    if error is None or isinstance(error, expected):
        return
    if process.may_fail and isinstance(error, StoreFailed):
        return
    raise Wrong(f"{process.name} raised {type(error).__name__}: {error}") from error


def _judge_result(world: World, process: Process) -> None:
    """A caller is told how the run that served its input really stopped."""
    result = process.result
    if result is None or not result.run_id or result.stop.status == "paused":
        return
    ends = [
        stored.record.stop
        for stored in world.records
        if isinstance(stored.record, r.RunEnded)
        and stored.record.run_id == result.run_id
    ]
    if ends != [result.stop]:
        raise Wrong(f"{process.name} was told {result.stop}, the journal says {ends}")
    placed = [
        stored.record.run_id
        for stored in world.records
        if isinstance(stored.record, r.InputPlaced)
        and stored.record.input_id == process.input_id
    ]
    if result.stop.status == "completed" and placed not in ([], [result.run_id]):
        raise Wrong(f"{process.name} was told of {result.run_id}, not of {placed}")


async def _judge_inputs(world: World) -> None:
    """Every acknowledged input is exactly one of pending, placed, parked, withdrawn."""
    state = fold(S, world.records)
    seen: dict[str, list[str]] = {}
    for stored in world.records:
        record = stored.record
        if isinstance(record, r.InputPlaced):
            seen.setdefault(record.input_id, []).append("placed")
        elif isinstance(record, r.InputWithdrawn):
            seen.setdefault(record.input_id, []).append("withdrawn")
    for input_id in state.pending:
        seen.setdefault(input_id, []).append("pending")
    for input_id in state.parked:
        seen.setdefault(input_id, []).append("parked")
    page = await world.store.inbox(S, state.inbox_seen)
    unread = {item.id for _, item in page.items}  # type: ignore[union-attr]  # none unknown
    for input_id in world.receipts:
        places = seen.get(input_id, [])
        if len(places) + (input_id in unread) != 1:
            raise Wrong(f"input {input_id} is {places or 'nowhere'}")
