"""Takes the measurements: both sides in turn, many short windows, the best of each.

What a step costs is the least any window took: whatever else a machine does can only
make a window longer. Both sides are measured in turns, so that a slow minute slows
both, and their ratio holds where the times do not.
"""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Final, TypeAlias

from tests.benchmarks import floor, fresh, subject
from tests.benchmarks.plan import DONE, PLAN

Work: TypeAlias = Callable[[], Awaitable[object]]
Run: TypeAlias = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    key: str
    work: str
    unit: str
    floor: float | None
    ours: float
    digits: int = 1

    @property
    def ratio(self) -> float | None:
        """How many times the floor."""
        return self.ours / self.floor if self.floor else None


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each thing is measured."""

    imports: int = 10
    windows: int = 150
    long_windows: int = 60
    growth_runs: int = 25
    delta_windows: int = 60
    parallel_windows: int = 40
    flights: int = 6
    in_flight: int = 1000
    fresh_flights: int = 3
    idle: int = 10_000


FULL: Final = Effort()
QUICK: Final = Effort(1, 4, 2, 1, 2, 2, 1, 100, 1, 100)


async def _in_turns(
    windows: int, works: Sequence[Work], clock: Callable[[], float] = process_time
) -> list[float]:
    """The shortest window of each work, in µs of CPU or by another clock."""
    best = [float("inf")] * len(works)
    for _ in range(windows):
        for index, work in enumerate(works):
            start = clock()
            await work()
            best[index] = min(best[index], clock() - start)
    return [seconds * 1e6 for seconds in best]


def _times(number: int, work: Work) -> Work:
    async def several() -> None:
        for _ in range(number):
            await work()

    return several


def _runs() -> list[Work]:
    """One run, of the floor and of agentcore."""
    return [_checked(floor.runner()), _checked(subject.runner())]


def _checked(run: Run) -> Work:
    async def work() -> None:
        assert await run("hi") == DONE

    return work


# --- import and build -------------------------------------------------------------


async def imports(effort: Effort) -> list[Row]:
    """Cold import, each time in a fresh process."""
    sides: list[list[list[float]]] = [[], []]
    for number in range(effort.imports + 1):
        for side, statement in zip(sides, (floor.IMPORT, subject.IMPORT), strict=True):
            found = fresh.imported(statement)
            if number:  # the first writes the bytecode
                side.append(found)
    base, ours = ([min(column) for column in zip(*side, strict=True)] for side in sides)
    return [
        Row("import_cpu", "cold import, CPU", "ms", base[0], ours[0]),
        Row("import_rss", "the same, resident memory", "MB", base[1], ours[1]),
        Row("import_modules", "the same, modules loaded", "", base[2], ours[2], 0),
    ]


async def builds(effort: Effort) -> list[Row]:
    """An agent object with one tool, and what its first run adds."""
    number = 10
    agent = subject.build()
    PLAN.set()

    async def build() -> None:
        for _ in range(number):
            subject.build()

    async def build_and_run() -> None:
        for _ in range(number):
            await subject.build().run("hi")

    async def run() -> None:
        for _ in range(number):
            await agent.run("hi")

    await run()
    windows = max(effort.windows // 3, 2)
    built, both, ran = await _in_turns(windows, [build, build_and_run, run])
    first = max(both - built - ran, 0.0)
    return [
        Row("build", "agent with one tool, schema cached", "µs", None, built / number),
        Row("first_run", "what its first run costs more", "µs", None, first / number),
    ]


# --- one run ----------------------------------------------------------------------


async def short(effort: Effort) -> list[Row]:
    """User, one tool call, answer: two model steps, and the start and end of a run."""
    runs = 12
    works = [_times(runs, work) for work in _runs()]
    PLAN.set(tool_steps=1)
    await _in_turns(3, works)
    base, ours = await _in_turns(effort.windows, works)
    steps = 2 * runs
    return [
        Row(
            "short",
            "model step, run with 1 tool call",
            "µs",
            base / steps,
            ours / steps,
        )
    ]


async def long(effort: Effort) -> list[Row]:
    """A run of 50 tool steps and an answer, divided by its 51 model steps."""
    PLAN.set(tool_steps=50)
    base, ours = await _in_turns(effort.long_windows, _runs())
    return [Row("long", "model step, run of 50", "µs", base / 51, ours / 51)]


_AT: Final = {5: (2, 9), 50: (40, 60), 200: (180, 220), 2000: (1960, 2000)}
"""The steps over which the cost of step 5, 50, … is taken."""


async def growth(effort: Effort) -> list[Row]:
    """What a step costs at different lengths of history.

    The median over neighbouring steps: a collection that falls into one of them is not
    counted here, but in the runs above.
    """
    sides: list[list[dict[int, float]]] = [[], []]
    for _ in range(effort.growth_runs):
        for side, work in zip(sides, _runs(), strict=True):
            gc.collect()
            PLAN.set(tool_steps=2010, probe=perf_counter)
            await work()
            side.append({at: _cost(PLAN.readings, *_AT[at]) for at in _AT})
    rows = []
    for at in _AT:
        base, ours = (min(costs[at] for costs in side) for side in sides)
        rows.append(Row(f"step_{at}", f"step {at:,} of a run", "µs", base, ours))
    for at in (200, 2000):
        base, ours = (median(c[at] / c[5] for c in side) for side in sides)
        label = f"growth: step {at:,} / step 5"
        rows.append(Row(f"growth_{at}", label, "x", base, ours, 2))
    return rows


def _cost(readings: list[float], first: int, last: int) -> float:
    pairs = zip(readings[first:last], readings[first + 1 :], strict=False)
    return median(after - before for before, after in pairs) * 1e6


async def blocks(effort: Effort) -> list[Row]:
    """Memory blocks a step leaves behind, late in a run and early; a pure count."""
    kept: list[dict[int, float]] = []
    for work in _runs():
        await work()
        gc.collect()
        gc.disable()
        PLAN.set(tool_steps=210, probe=sys.getallocatedblocks)
        await work()
        gc.enable()
        found = PLAN.readings
        kept.append({at: (found[at] - found[at - 20]) / 20 for at in (40, 200)})
    base, ours = kept
    return [
        Row("kept", "memory blocks kept per step", "", base[200], ours[200]),
        Row(
            "blocks",
            "the same: step 200 / step 40",
            "x",
            base[200] / base[40],
            ours[200] / ours[40],
            2,
        ),
    ]


async def delta(effort: Effort) -> list[Row]:
    """A piece of streamed text, from the model to whoever reads the events."""
    number = 1000
    agent = subject.build()

    async def ours() -> None:
        assert await subject.stream(agent, "hi") == number

    async def theirs() -> None:
        assert await floor.stream("hi") == number

    PLAN.set(tool_steps=0, deltas=number)
    base, mine = await _in_turns(effort.delta_windows, [theirs, ours])
    return [Row("delta", "streamed delta", "µs", base / number, mine / number, 2)]


async def parallel(effort: Effort) -> list[Row]:
    """100 calls of 10 ms beside each other, in one step."""
    PLAN.set(tool_steps=1, fanout=100, tool_sleep=0.010)
    base, ours = await _in_turns(effort.parallel_windows, _runs(), perf_counter)
    label = "100 tool calls of 10 ms in one step, wall"
    return [Row("parallel", label, "ms", base / 1e3, ours / 1e3)]


# --- many runs --------------------------------------------------------------------


async def flight(effort: Effort) -> list[Row]:
    """Many runs at once: three requests of 50 ms and two calls of 20 ms each."""
    number = effort.in_flight
    cpu: list[list[float]] = [[], []]
    wall: list[list[float]] = [[], []]
    runs: list[Run] = [floor.runner(), subject.runner()]
    for _ in range(effort.flights):
        for index, run in enumerate(runs):
            PLAN.set(tool_steps=2, model_sleep=0.050, tool_sleep=0.020)
            gc.collect()
            cpu_start, start = process_time(), perf_counter()
            await asyncio.gather(*[run(f"hi {i}") for i in range(number)])
            wall[index].append((perf_counter() - start) * 1e3)
            cpu[index].append((process_time() - cpu_start) / number / 3 * 1e6)
    who = f"{number:,} runs in flight"
    return [
        _row("flight_cpu", f"{who}, CPU per model step", "µs", map(min, cpu)),
        _row("flight_wall", f"{who}, wall (ideal 190)", "ms", map(min, wall), 0),
        *_memory_in_flight(effort, who),
    ]


def _memory_in_flight(effort: Effort, who: str) -> list[Row]:
    sides: list[list[dict[str, float]]] = [[], []]
    for _ in range(effort.fresh_flights):
        for side, name in zip(sides, ("floor", "agentcore"), strict=True):
            side.append(fresh.measured("in_flight", name, effort.in_flight))

    def middle(what: str) -> list[float]:
        return [median(found[what] for found in side) for side in sides]

    return [
        _row("flight_peak", f"{who}, peak memory per run", "KiB", middle("peak")),
        _row(
            "flight_objects", f"{who}, tracked objects per run", "", middle("objects")
        ),
        _row("flight_gc", f"{who}, full collections", "", middle("collections"), 0),
    ]


async def idle(effort: Effort) -> list[Row]:
    """Sessions at rest: the floor keeps the bare messages, agentcore its journals."""
    sides = ("floor", "agentcore")
    both = [fresh.measured("idle", side, effort.idle)["kib"] for side in sides]
    return [_row("idle", "idle session of 10 messages", "KiB", both, 2)]


def _row(key: str, work: str, unit: str, both: Iterable[float], digits: int = 1) -> Row:
    base, ours = both
    return Row(key, work, unit, base, ours, digits)


GROUPS: Final[dict[str, Callable[[Effort], Awaitable[list[Row]]]]] = {
    "import": imports,
    "build": builds,
    "short": short,
    "long": long,
    "growth": growth,
    "blocks": blocks,
    "delta": delta,
    "parallel": parallel,
    "flight": flight,
    "idle": idle,
}
