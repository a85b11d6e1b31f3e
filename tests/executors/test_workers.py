"""The worker pool is bounded, never blocks the loop, and counts abandoned threads."""

import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from agentcore.errors import ConfigError, Unavailable
from agentcore.executors._workers import WorkerPool

WHO = contextvars.ContextVar("WHO", default="nobody")


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - threads set no anyio.Event
            await anyio.sleep(0.002)


async def abandon(pool: WorkerPool, release: threading.Event) -> None:
    """Leave one call of the pool running until `release`."""
    started = threading.Event()

    def hang() -> None:
        started.set()
        release.wait(10)

    async with anyio.create_task_group() as group:
        group.start_soon(pool.run, hang)
        await until(started.is_set)
        group.cancel_scope.cancel()


async def test_it_returns_what_the_function_returns_from_another_thread() -> None:
    pool = WorkerPool()

    assert await pool.run(lambda: 7) == 7
    thread = await pool.run(threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.daemon


async def test_no_thread_is_started_before_the_first_use() -> None:
    before = threading.active_count()
    pool = WorkerPool()

    assert (threading.active_count(), pool.busy) == (before, 0)


async def test_calls_one_after_the_other_share_a_thread() -> None:
    pool = WorkerPool()

    threads = {await pool.run(threading.get_ident) for _ in range(50)}
    assert len(threads) == 1
    assert (pool.busy, pool.held, pool.waiting) == (0, 0, 0)


async def test_an_idle_thread_goes_and_the_next_call_gets_a_new_one() -> None:
    pool = WorkerPool(idle=0.02)

    thread = await pool.run(threading.current_thread)
    await until(lambda: not thread.is_alive())
    assert await pool.run(lambda: "again") == "again"


@pytest.mark.parametrize("error", [ValueError("bad"), StopIteration(), SystemExit(3)])
async def test_what_the_function_raises_is_raised_to_the_caller(
    error: BaseException,
) -> None:
    pool = WorkerPool()

    def fails() -> None:
        raise error

    with pytest.raises((type(error), RuntimeError)) as caught:
        await pool.run(fails)

    assert error in (caught.value, caught.value.__cause__)
    assert pool.busy == 0


async def test_the_function_sees_the_callers_context_and_cannot_change_it() -> None:
    WHO.set("caller")

    def look() -> str:
        seen = WHO.get()
        WHO.set("thread")
        return seen

    assert await WorkerPool().run(look) == "caller"
    assert WHO.get() == "caller"


async def test_the_function_may_run_an_event_loop_of_its_own() -> None:
    async def inside() -> str:
        await anyio.lowlevel.checkpoint()
        return "inner"

    assert await WorkerPool().run(lambda: anyio.run(inside)) == "inner"


async def test_no_more_than_size_functions_run_at_once() -> None:
    pool, running, peak = WorkerPool(3), 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(pool.run, work)

    assert peak == 3


async def test_an_abandoned_thread_holds_its_slot_until_the_function_returns() -> None:
    pool, release = WorkerPool(1), threading.Event()

    await abandon(pool, release)
    assert (pool.held, pool.busy) == (1, 1)

    with anyio.move_on_after(0.05) as scope:
        await pool.run(lambda: None)
    assert scope.cancelled_caught
    assert (pool.held, pool.waiting) == (1, 0)

    release.set()
    await until(lambda: pool.held == 0)
    assert await pool.run(lambda: "free") == "free"


async def test_a_caller_cancelled_while_waiting_never_starts_its_function() -> None:
    pool, release, ran = WorkerPool(1), threading.Event(), threading.Event()
    await abandon(pool, release)

    async with anyio.create_task_group() as group:
        group.start_soon(pool.run, ran.set)
        await until(lambda: pool.waiting == 1)
        group.cancel_scope.cancel()
    release.set()

    await pool.run(lambda: None)
    assert not ran.is_set()


async def test_a_caller_that_is_cancelled_already_starts_nothing() -> None:
    ran = threading.Event()

    with anyio.CancelScope() as scope:
        scope.cancel()
        await WorkerPool().run(ran.set)

    assert scope.cancelled_caught
    assert not ran.is_set()


async def test_waiting_callers_are_served_in_order() -> None:
    pool, release = WorkerPool(1), threading.Event()
    await abandon(pool, release)
    order: list[int] = []

    def waits(callers: int) -> bool:
        return pool.waiting == callers

    async with anyio.create_task_group() as group:
        for i in range(5):
            group.start_soon(pool.run, partial(order.append, i))
            await until(partial(waits, i + 1))
        release.set()

    assert order == [0, 1, 2, 3, 4]


async def test_a_blocking_function_never_delays_a_ticker() -> None:
    delays: list[float] = []

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.01)
            delays.append(time.perf_counter() - before - 0.01)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await WorkerPool().run(lambda: time.sleep(0.5))
        group.cancel_scope.cancel()

    assert len(delays) >= 8
    assert max(delays) < 0.05


def test_one_pool_serves_many_loops_one_after_the_other_and_at_once() -> None:
    pool = WorkerPool(4)
    results: list[int] = []

    async def calls() -> None:
        results.extend([await pool.run(partial(int, i)) for i in range(20)])

    def loop(backend: str) -> None:
        anyio.run(calls, backend=backend)

    loop("asyncio")
    loop("trio")
    threads = [
        threading.Thread(target=loop, args=[b]) for b in ("asyncio", "trio", "asyncio")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert sorted(results) == sorted(list(range(20)) * 5)
    assert pool.busy == 0


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_ended_is_no_trouble_for_an_abandoned_thread(backend: str) -> None:
    pool, release = WorkerPool(1), threading.Event()
    anyio.run(abandon, pool, release, backend=backend)
    assert pool.held == 1

    release.set()

    async def again() -> str:
        return await pool.run(lambda: "again")

    assert anyio.run(again, backend=backend) == "again"
    assert pool.held == 0


async def test_a_finished_call_leaves_nothing_behind() -> None:
    class Thing:
        pass

    pool, thing = WorkerPool(), Thing()
    gone = weakref.ref(thing)
    await pool.run(partial(id, thing))
    del thing
    await until(lambda: gc.collect() >= 0 and gone() is None)


async def test_a_raised_error_leaves_no_cycle() -> None:
    class FailureError(Exception):
        pass

    def fails() -> None:
        raise FailureError

    pool, gone = WorkerPool(), None
    gc.collect()
    gc.disable()
    try:
        try:
            await pool.run(fails)
        except FailureError as error:
            gone = weakref.ref(error)
        await until(lambda: gone is not None and gone() is None)
    finally:
        gc.enable()


async def test_without_a_thread_the_function_surely_never_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool, ran = WorkerPool(), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(Unavailable, match="can't start new thread"):
            await pool.run(ran.set)

    assert not ran.is_set()
    assert (pool.busy, pool.waiting) == (0, 0)
    assert await pool.run(lambda: 1) == 1


async def test_where_other_threads_work_a_refused_one_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool, release = WorkerPool(2), threading.Event()
    await abandon(pool, release)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    async with anyio.create_task_group() as group:
        group.start_soon(pool.run, lambda: None)
        await until(lambda: pool.waiting == 1)
        release.set()
    assert pool.busy == 0


async def test_idle_threads_end_when_told_however_lately_they_worked() -> None:
    pool = WorkerPool(4, idle=60)
    threads: list[threading.Thread] = []
    for turn in range(1, 51):
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(
                    pool.run, lambda: threads.append(threading.current_thread())
                )
        pool.end_idle()
        assert len(threads) == 4 * turn
        assert not any(thread.is_alive() for thread in threads)
        assert pool.busy == 0


async def test_ending_idle_threads_spares_what_runs_and_what_waits() -> None:
    pool = WorkerPool(1, idle=60)
    began, release = threading.Event(), threading.Event()
    done: list[str] = []

    def first() -> None:
        began.set()
        release.wait(10)
        done.append("first")

    async with anyio.create_task_group() as group:
        group.start_soon(pool.run, first)
        await until(began.is_set)
        group.start_soon(pool.run, lambda: done.append("second"))
        await until(lambda: pool.waiting == 1)
        pool.end_idle()
        release.set()
    assert done == ["first", "second"]


def test_threads_may_be_ended_while_other_loops_use_the_pool() -> None:
    pool = WorkerPool(3, idle=60)
    results: list[int] = []

    async def ask() -> None:
        results.extend([await pool.run(partial(abs, n)) for n in range(200)])

    loops = [threading.Thread(target=anyio.run, args=(ask,)) for _ in range(3)]
    for loop in loops:
        loop.start()
    while any(loop.is_alive() for loop in loops):
        pool.end_idle()
    assert sorted(results) == sorted([*range(200)] * 3)
    pool.end_idle()
    assert pool.busy == 0


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "8"])
def test_a_pool_without_threads_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match="use at least 1"):
        WorkerPool(size)


def in_a_new_process(code: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return run.stdout.strip()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_interpreter_exits_while_an_abandoned_thread_hangs(backend: str) -> None:
    started = time.monotonic()
    code = f"""
        import anyio, time
        from agentcore.executors._workers import WorkerPool

        async def main():
            with anyio.move_on_after(0.1):
                await WorkerPool().run(lambda: time.sleep(15))

        anyio.run(main, backend={backend!r})
        print("left")
    """
    assert in_a_new_process(code) == "left"
    assert time.monotonic() - started < 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_with_threads_of_its_own() -> None:
    code = """
        import anyio, os, warnings
        from agentcore.executors._workers import WorkerPool

        warnings.simplefilter("ignore")
        pool = WorkerPool(1)

        async def main():
            return await pool.run(lambda: "ran")

        anyio.run(main)
        pid = os.fork()
        if pid == 0:
            print(anyio.run(main), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """
    assert in_a_new_process(code) == "ran"
