"""What the tests of the SQLite store start as a process of its own."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio

from agentcore.stores.sqlite import SqliteRunStore
from agentcore.stores.sqlite import _journal as journal
from agentcore.testing.contracts._sample import text_input
from agentcore.types.records import StateChanged
from agentcore.types.runs import SessionHeader


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


async def own(path: Path, session: str, *_: str) -> None:
    """Own the session, append once, and wait for the kill."""
    store = SqliteRunStore(path)
    lease = await store.acquire(session, "child")
    await store.append(lease, [StateChanged("k", "child")], expected_seq=1)
    say("owned")
    await anyio.sleep_forever()


async def half(path: Path, session: str, *_: str) -> None:
    """Stop between BEGIN and COMMIT, after the row was written."""
    store = SqliteRunStore(path, durability="crash")
    lease = await store.acquire(session, "child")

    write = journal.write

    def write_and_stop(*arguments: Any) -> None:
        write(*arguments)
        say("written")
        time.sleep(3600)

    journal.write = write_and_stop  # type: ignore[assignment]  # it never returns
    await store.append(lease, [StateChanged("k", "lost")], expected_seq=1)


async def many(path: Path, session: str, durability: str, count: str) -> None:
    """A session of its own, appended to `count` times; says how long each took."""
    slowest = 0.0
    chosen: Any = durability
    async with SqliteRunStore(path, durability=chosen) as store:
        await store.create(SessionHeader(session))
        lease = await store.acquire(session, "child")
        for n in range(int(count)):
            start = time.perf_counter()
            record = StateChanged("k", f"{n} " + "x" * 200)
            await store.append(lease, [record], expected_seq=n + 1)
            slowest = max(slowest, time.perf_counter() - start)
        await store.release(lease)
    say(f"{slowest:.3f}")


async def accept(path: Path, session: str, item: str, *_: str) -> None:
    """Put an input into the inbox, without owning anything."""
    async with SqliteRunStore(path) as store:
        receipt = await store.accept(session, text_input(item))
    say(f"{receipt.position} {receipt.duplicate}")


async def small_disk(path: Path, session: str, *rest: str) -> None:
    """Append until the disk takes no more; say what was raised, twice."""
    store = SqliteRunStore(path, durability="crash")
    lease = await store.acquire(session, "child")
    size = 200_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    seq = 1
    for _ in range(2):
        try:
            while True:
                record = StateChanged("k", "x" * 10_000)
                seq = (await store.append(lease, [record], expected_seq=seq)).seq
        except Exception as error:  # noqa: BLE001 - its name is the answer
            say(f"{type(error).__name__} {seq}")
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    await store.release(lease)
    again = await store.acquire(session, "child")
    seq = (await store.append(again, [StateChanged("k", "on")], expected_seq=seq)).seq
    say(f"went on {seq}")
    await store.close()


async def nobody(path: Path, session: str, *_: str) -> None:
    """Open it as a user without the right to write there."""
    if os.getuid() == 0:
        os.setuid(65534)
    try:
        await SqliteRunStore(path).create(SessionHeader(session))
    except Exception as error:  # noqa: BLE001 - its name is the answer
        say(f"{type(error).__name__} {error}")


TASKS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    task.__name__: task for task in (own, half, many, accept, small_disk, nobody)
}

if __name__ == "__main__":
    anyio.run(TASKS[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
