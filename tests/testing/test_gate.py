"""A gate belongs to no event loop and opens from anywhere."""

import threading

import anyio
import anyio.to_thread

from agentcore.testing import Gate

MADE_OUTSIDE_ANY_LOOP = Gate()


async def test_a_gate_that_is_open_lets_everybody_through() -> None:
    MADE_OUTSIDE_ANY_LOOP.open()

    await MADE_OUTSIDE_ANY_LOOP.wait()
    await MADE_OUTSIDE_ANY_LOOP.reached()

    assert MADE_OUTSIDE_ANY_LOOP.is_open


async def test_a_test_learns_that_somebody_waits() -> None:
    gate, order = Gate(), list[str]()

    async def visitor() -> None:
        await gate.wait()
        order.append("through")

    async with anyio.create_task_group() as group:
        group.start_soon(visitor)
        await gate.reached()
        order.append("reached")
        assert not gate.is_open
        gate.open()

    assert order == ["reached", "through"]


async def test_all_who_wait_are_let_through() -> None:
    gate = Gate()

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(gate.wait)
        await gate.reached()
        gate.open()


async def test_another_thread_may_open_it() -> None:
    gate = Gate()

    async with anyio.create_task_group() as group:
        group.start_soon(gate.wait)
        await gate.reached()
        await anyio.to_thread.run_sync(gate.open)


async def test_a_visitor_who_gives_up_does_not_hinder_the_others() -> None:
    gate = Gate()

    with anyio.move_on_after(0.01) as scope:
        await gate.wait()
    async with anyio.create_task_group() as group:
        group.start_soon(gate.wait)
        await anyio.wait_all_tasks_blocked()
        gate.open()

    assert scope.cancelled_caught


def test_a_gate_connects_two_event_loops_in_two_threads() -> None:
    gate = Gate()
    visitor = threading.Thread(target=anyio.run, args=(gate.wait,))
    visitor.start()

    async def open_for_the_visitor() -> None:
        await gate.reached()
        gate.open()

    anyio.run(open_for_the_visitor, backend="trio")
    visitor.join(5)

    assert not visitor.is_alive()


def test_opening_a_gate_whose_loop_has_ended_is_no_error() -> None:
    gate = Gate()

    async def leave_somebody_behind() -> None:
        waiting = gate.wait().__await__()
        next(waiting)  # parked, and never finished: what a killed loop leaves
        left.append(waiting)

    left: list[object] = []
    anyio.run(leave_somebody_behind)
    gate.open()

    assert gate.is_open
