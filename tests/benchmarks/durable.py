"""Runs whose journal is in a SQLite file, against bare commits of as many bytes."""

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from tests.benchmarks import floor, subject
from tests.benchmarks.measure import Effort, Row
from tests.benchmarks.plan import DONE, PLAN
from typing_extensions import override

from agentcore import SqliteRunStore, ToolLoopAgent

STEPS = 50
SESSIONS = 100


class CountedStore(SqliteRunStore):
    """Counts its appends."""

    appends = 0

    @override
    async def append(self, *given: Any, **expected: Any) -> Any:
        """See `RunStore.append`."""
        self.appends += 1
        return await super().append(*given, **expected)

    @override
    def append_now(self, *given: Any, **expected: Any) -> Any:
        """See `AppendsNow.append_now`."""
        done = super().append_now(*given, **expected)
        self.appends += done is not None
        return done


def written() -> int:
    """Bytes this process has handed to `write` so far; 0 where nobody counts."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        return 0
    lines = counters.read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def bare(folder: Path, size: int) -> Callable[[], None]:
    """One commit of so many bytes, with the store's page size and weaker sync."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("CREATE TABLE journal(key INTEGER PRIMARY KEY, records BLOB)")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    data = os.urandom(size)

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO journal VALUES (NULL, ?)", (data,))
        connection.execute("COMMIT")

    return commit


async def steps(effort: Effort, folder: Path) -> list[Row]:
    """Long runs of one session each, with the weaker durability.

    Their floor is the loop of `floor.py`, and one bare commit of what a step wrote.
    """
    PLAN.set(tool_steps=STEPS)
    path = folder / "steps.db"
    base = loop = ours = float("inf")
    async with CountedStore(path, durability="crash") as store:
        agent = ToolLoopAgent(subject.MODEL, tools=subject.TOOLS, store=store)
        await agent.run("hi", session="first")
        reader = sqlite3.connect(path)
        total = "SELECT sum(length(records)) FROM journal"
        payload = reader.execute(total).fetchone()[0] / (STEPS + 1)
        commit = bare(folder, round(payload))
        store.appends, some = 0, 0
        windows = max(effort.long_windows // 2, 2)
        for number in range(windows):
            before, start = written(), process_time()
            result = await agent.run("hi", session=f"s{number}")
            ours = min(ours, process_time() - start)
            assert result.output == DONE
            some += written() - before
            start = process_time()
            assert await floor.run("hi") == DONE
            loop = min(loop, process_time() - start)
            start = process_time()
            for _ in range(STEPS + 1):
                commit()
            base = min(base, process_time() - start)
        payload = reader.execute(total).fetchone()[0]
        reader.close()
        appends = store.appends
    per_step = 1 / (STEPS + 1)
    every = per_step / windows
    size = path.stat().st_size / payload
    bottom = loop + base
    who = "step in SQLite (crash)"
    return [
        Row("sqlite_step", who, "µs", bottom * per_step * 1e6, ours * per_step * 1e6),
        Row("sqlite_appends", f"{who}, appends", "", None, appends * every, 2),
        Row("sqlite_bytes", f"{who}, bytes written", "B", None, some * every, 0),
        Row("sqlite_size", "the file at rest / its records", "x", None, size, 2),
    ]


async def crowd(effort: Effort, folder: Path) -> list[Row]:
    """Many sessions at once, each append durable before its run goes on."""
    PLAN.set(tool_steps=5, model_sleep=0.010)
    path = folder / "crowd.db"
    wall, commits = float("inf"), 0
    async with CountedStore(path) as store:
        agent = ToolLoopAgent(subject.MODEL, tools=subject.TOOLS, store=store)
        await agent.run("hi", session="first")
        writer = store._parts.writer
        for number in range(max(effort.flights // 2, 1)):
            store.appends, commits = 0, writer._commits
            start = perf_counter()
            names = [f"s{number}-{n}" for n in range(SESSIONS)]
            await asyncio.gather(*[agent.run("hi", session=name) for name in names])
            wall = min(wall, perf_counter() - start)
            commits = writer._commits - commits
    who = f"{SESSIONS} sessions at once in SQLite (power), 6 steps"
    shared = commits / (SESSIONS * 6)
    return [
        Row("sqlite_crowd", f"{who}, wall (ideal 60)", "ms", None, wall * 1e3, 0),
        Row("sqlite_syncs", f"{who}, syncs per step", "", None, shared, 2),
    ]


async def durable(effort: Effort) -> list[Row]:
    """Both, each in a file of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*await steps(effort, folder), *await crowd(effort, folder)]
