"""One measurement in a process of its own: memory, full collections, tracked objects.

    python -m tests.benchmarks.child WHAT SIDE NUMBER

Only the measured side is imported, and the process has done nothing else before.
"""

import asyncio
import gc
import importlib
import json
import sys
from typing import Any

from tests.benchmarks import process
from tests.benchmarks.plan import PLAN

MODULES = {"floor": "tests.benchmarks.floor", "agentcore": "tests.benchmarks.subject"}


async def in_flight(side: Any, number: int) -> dict[str, float]:
    """What runs need that are in flight at once."""
    run = side.runner()

    async def fly(runs: int) -> None:
        await asyncio.gather(*[run(f"hi {i}") for i in range(runs)])

    PLAN.set(tool_steps=2, model_sleep=0.001, tool_sleep=0.001)
    await fly(20)
    PLAN.set(tool_steps=2, model_sleep=0.050, tool_sleep=0.020)
    process.settle()
    before, collected = process.rss_kib(), process.full_collections()
    process.reset_peak()
    await fly(number)
    return {
        "peak": (process.peak_kib() - before) / number,
        "collections": process.full_collections() - collected,
        "objects": await _tracked(run, min(number, 100)),
    }


async def _tracked(run: Any, runs: int) -> float:
    """Objects the collector walks for one run that waits for its last answer."""
    await asyncio.sleep(0)  # now the last gathering is let go of
    process.settle()
    before = len(gc.get_objects())
    all_answered_twice = asyncio.Event()

    def count() -> float:
        if len(PLAN.readings) + 1 == 2 * runs:
            all_answered_twice.set()
        return 0.0

    PLAN.set(tool_steps=2, model_sleep=0.1, probe=count)
    flying = [asyncio.ensure_future(run(f"hi {i}")) for i in range(runs)]
    await all_answered_twice.wait()
    await asyncio.sleep(0.02)  # the tool of the last one is through, too
    held = (len(gc.get_objects()) - before) / runs
    await asyncio.gather(*flying)
    return held


async def idle(side: Any, number: int) -> dict[str, float]:
    """What a session of ten messages needs at rest."""
    sessions = side.IdleSessions()
    keep = [await sessions.add(i) for i in range(5)]
    process.settle()
    before = process.rss_kib()
    keep += [await sessions.add(i) for i in range(5, number + 5)]
    process.settle()
    return {"kib": (process.rss_kib() - before) / number}


def main(what: str, side: str, number: str) -> None:
    """Measure, and print what was found as JSON."""
    measure = {"in_flight": in_flight, "idle": idle}[what]
    module = importlib.import_module(MODULES[side])
    found = asyncio.run(measure(module, int(number)))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
