"""Time moves when the test says so, and ids count."""

import anyio
import pytest

from agentcore.protocols.runtime import Clock, IdSource
from agentcore.testing import CountingIds, FakeClock


async def sleep_and_note(
    clock: Clock, seconds: float, woken: list[tuple[float, float]]
) -> None:
    await clock.sleep(seconds)
    woken.append((seconds, clock.monotonic()))


def test_a_clock_stands_still_by_itself() -> None:
    clock = FakeClock(start=100.0)
    before: Clock = clock

    assert (before.now(), before.monotonic()) == (100.0, 0.0)
    assert FakeClock().now() == FakeClock().now() == 1_767_225_600.0


async def test_advancing_moves_wall_and_monotonic_time() -> None:
    clock = FakeClock(start=100.0)

    await clock.advance(2.5)

    assert (clock.now(), clock.monotonic()) == (102.5, 2.5)


async def test_sleepers_wake_in_order_of_their_deadlines_and_at_them() -> None:
    clock, woken = FakeClock(), list[tuple[float, float]]()

    async with anyio.create_task_group() as group:
        for seconds in (3.0, 1.0, 2.0):
            group.start_soon(sleep_and_note, clock, seconds, woken)
        await clock.sleeping(3)
        await clock.advance(2)
        assert woken == [(1.0, 1.0), (2.0, 2.0)]
        await clock.advance(1)

    assert woken[-1] == (3.0, 3.0)


async def test_a_sleep_that_starts_while_time_passes_ends_in_it() -> None:
    clock, ticks = FakeClock(), list[float]()

    async def tick() -> None:
        for _ in range(3):
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await clock.advance(25)
        assert ticks == [10.0, 20.0]
        assert clock.monotonic() == 25.0
        await clock.advance(5)

    assert ticks == [10.0, 20.0, 30.0]


async def test_advancing_lets_tasks_that_are_about_to_sleep_fall_asleep_first() -> None:
    clock, woken = FakeClock(), list[tuple[float, float]]()

    async with anyio.create_task_group() as group:
        group.start_soon(sleep_and_note, clock, 1.0, woken)
        await clock.advance(1)

    assert woken == [(1.0, 1.0)]


async def test_every_sleep_asked_for_is_noted() -> None:
    clock = FakeClock(autojump=True)

    for seconds in (0.5, 0, -1):
        await clock.sleep(seconds)

    assert clock.sleeps == [0.5, 0, -1]
    assert clock.monotonic() == 0.5


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()

    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 1)
        await clock.sleeping()
        group.cancel_scope.cancel()
    await clock.advance(1)

    with anyio.move_on_after(0.01) as scope:
        await clock.sleeping()
    assert scope.cancelled_caught


async def test_setting_the_wall_back_leaves_monotonic_time_alone() -> None:
    clock = FakeClock(start=100.0)
    await clock.advance(10)

    clock.set_wall(50)
    await clock.advance(1)

    assert (clock.now(), clock.monotonic()) == (51, 11)


async def test_autojump_skips_the_time_in_which_everybody_rests() -> None:
    clock, woken = FakeClock(autojump=True), list[tuple[float, float]]()

    async with anyio.create_task_group() as group:
        for seconds in (3600.0, 60.0, 7200.0, 60.0):
            group.start_soon(sleep_and_note, clock, seconds, woken)

    assert woken == [(60, 60), (60, 60), (3600, 3600), (7200, 7200)]


async def test_autojump_lets_a_woken_task_sleep_again_before_it_jumps_on() -> None:
    clock, seen = FakeClock(autojump=True), list[str]()

    async def beat(name: str, pause: float, times: int) -> None:
        for _ in range(times):
            await clock.sleep(pause)
            seen.append(f"{name}{clock.monotonic():g}")

    async with anyio.create_task_group() as group:
        group.start_soon(beat, "a", 2, 4)
        group.start_soon(beat, "b", 3, 2)

    assert seen == ["a2", "b3", "a4", "b6", "a6", "a8"]


async def test_autojump_goes_on_when_the_sleeper_that_moved_time_is_cancelled() -> None:
    clock, woken = FakeClock(autojump=True), list[tuple[float, float]]()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await clock.sleep(1)
        group.start_soon(sleep_and_note, clock, 5.0, woken)

    assert woken == [(5.0, 5.0)]


async def test_autojump_hands_over_when_its_mover_is_cancelled_amid_others() -> None:
    clock, woken = FakeClock(autojump=True), list[tuple[float, float]]()
    mover = anyio.CancelScope()

    async def first() -> None:
        with mover:
            await clock.sleep(9)

    async def second() -> None:
        await sleep_and_note(clock, 5.0, woken)

    async def canceller() -> None:
        mover.cancel()

    async with anyio.create_task_group() as group:
        for task in (first, second, canceller):
            group.start_soon(task)

    assert woken == [(5.0, 5.0)]


async def test_time_can_be_advanced_by_hand_although_it_jumps() -> None:
    clock, woken = FakeClock(autojump=True), list[tuple[float, float]]()

    async with anyio.create_task_group() as group:
        group.start_soon(sleep_and_note, clock, 5.0, woken)
        await clock.advance(7)

    assert woken == [(5.0, 5.0)]
    assert clock.monotonic() == 7.0


def test_ids_count_per_kind() -> None:
    ids: IdSource = CountingIds()

    assert [ids.new(k) for k in ("run", "call", "call", "run")] == [
        "run_1",
        "call_1",
        "call_2",
        "run_2",
    ]


def test_ids_may_start_higher() -> None:
    assert CountingIds(start=7).new("call") == "call_7"


@pytest.mark.parametrize("autojump", [False, True])
def test_a_clock_is_made_outside_any_event_loop(autojump: bool) -> None:
    clock = FakeClock(autojump=autojump)

    for backend in ("asyncio", "trio"):
        anyio.run(clock.advance, 1.0, backend=backend)

    assert clock.monotonic() == 2.0
