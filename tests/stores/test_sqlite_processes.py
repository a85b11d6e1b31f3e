"""Several processes on one SQLite store, and the sudden end of some of them."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from agentcore.errors import (
    ConfigError,
    LeaseLost,
    SessionBusy,
    SessionNotFound,
)
from agentcore.stores.sqlite import SqliteRunStore
from agentcore.stores.sqlite._leases import TTL
from agentcore.testing import FakeClock
from agentcore.testing.contracts._sample import text_input
from agentcore.types.records import StateChanged
from agentcore.types.runs import SessionHeader, SessionQuery

CHILD = Path(__file__).with_name("sqlite_child.py")
PATIENCE = 30.0
S = "s"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills and forks")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteRunStore]:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        yield store


def start(task: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), task, str(path), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def child(task: str, path: Path, word: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has got as far as its word."""
    process = start(task, path, S)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == word
        yield process
    finally:
        process.kill()
        process.communicate()


def say(task: str, path: Path, *arguments: str) -> list[str]:
    """What a process says that runs to its end."""
    output, _ = start(task, path, *arguments).communicate(timeout=PATIENCE)
    return output.splitlines()


async def records(store: SqliteRunStore, session: str = S) -> list[object]:
    found = [stored.record async for stored in store.read(session)]
    return [r.value for r in found if isinstance(r, StateChanged)]


# --- owners --------------------------------------------------------------------------


@pytest.mark.scenario("run-60", "peers-R3")
async def test_a_second_process_is_told_who_owns_it_and_can_still_submit(
    store: SqliteRunStore, path: Path
) -> None:
    with child("own", path, "owned"):
        with pytest.raises(SessionBusy) as caught:
            await store.acquire(S, "me")
        assert caught.value.owner == "child"
        with pytest.raises(SessionBusy):
            await store.delete(S)
        assert (await store.accept(S, text_input("i"))).position == 1
        assert await records(store) == ["child"]


@pytest.mark.scenario("run-63", "peers-R23")
async def test_a_killed_owner_is_succeeded_at_once(
    store: SqliteRunStore, path: Path
) -> None:
    with child("own", path, "owned") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        lease = await store.acquire(S, "me")
    assert (lease.epoch, lease.took_over) == (2, True)
    await store.append(lease, [StateChanged("k", "me")], expected_seq=2)
    assert await records(store) == ["child", "me"]
    locks = path.with_name("bot.db.locks")
    assert len(list(locks.iterdir())) == 1  # ours; the dead one's is swept up


async def test_a_stopped_owner_is_succeeded_when_its_lease_is_over(
    path: Path,
) -> None:
    clock = FakeClock()
    async with (
        SqliteRunStore(path, clock=clock) as mine,
        SqliteRunStore(path, clock=clock) as yours,
    ):
        await mine.create(SessionHeader(S))
        mine._parts.writer._chores = lambda: None  # stopped, it renews nothing
        lease = await mine.acquire(S, "mine")
        clock.set_wall(clock.now() + TTL - 1)
        with pytest.raises(SessionBusy):
            await yours.acquire(S, "yours")
        clock.set_wall(clock.now() + 2)
        assert (await yours.acquire(S, "yours")).took_over
        with pytest.raises(LeaseLost):
            await mine.append(lease, [StateChanged("k")], expected_seq=1)


async def test_an_append_puts_the_end_of_the_lease_off(path: Path) -> None:
    clock = FakeClock()
    async with (
        SqliteRunStore(path, clock=clock) as mine,
        SqliteRunStore(path, clock=clock) as yours,
    ):
        await mine.create(SessionHeader(S))
        mine._parts.writer._chores = lambda: None  # only the appends renew
        lease = await mine.acquire(S, "mine")
        for seq in (1, 2, 3):
            clock.set_wall(clock.now() + TTL - 1)
            await mine.append(lease, [StateChanged("k")], expected_seq=seq)
            with pytest.raises(SessionBusy):
                await yours.acquire(S, "yours")


async def test_the_store_renews_by_itself_while_something_is_owned(
    path: Path,
) -> None:
    clock = FakeClock()
    async with SqliteRunStore(path, clock=clock) as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "me")
        first = expiry(path)
        clock.set_wall(clock.now() + 15)
        store._parts.writer.kick()
        with anyio.fail_after(PATIENCE):
            while expiry(path) == first:  # noqa: ASYNC110 - a thread does it
                await anyio.sleep(0.01)
        await store.release(lease)


def expiry(path: Path) -> float:
    connection = sqlite3.connect(path)
    found: float = connection.execute("SELECT max(expiry) FROM holders").fetchone()[0]
    connection.close()
    return found


@pytest.mark.scenario("run-61")
async def test_a_second_handle_in_one_process_is_kept_out(
    store: SqliteRunStore, path: Path
) -> None:
    await store.acquire(S, "first")
    async with SqliteRunStore(path) as second:
        with pytest.raises(SessionBusy) as caught:
            await second.acquire(S, "second")
    assert caught.value.owner == "first"


@pytest.mark.scenario("run-64")
async def test_an_owner_whose_lock_file_is_gone_writes_no_more(
    store: SqliteRunStore, path: Path
) -> None:
    lease = await store.acquire(S, "me")
    (lock,) = path.with_name("bot.db.locks").iterdir()
    lock.unlink()
    lock.touch()  # another file of the same name is none of ours
    with pytest.raises(LeaseLost):
        await store.append(lease, [StateChanged("k")], expected_seq=1)
    assert await records(store) == []
    async with SqliteRunStore(path) as other:
        assert (await other.acquire(S, "other")).took_over


@pytest.mark.scenario("run-62")
async def test_a_forked_child_is_refused_and_the_parent_goes_on(
    store: SqliteRunStore, path: Path
) -> None:
    lease = await store.acquire(S, "me")
    locks = set(path.with_name("bot.db.locks").iterdir())
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            store.accept(S, text_input("i")).send(None)
        except ConfigError:
            code = 0
        except BaseException:  # noqa: BLE001 - the child must not go on from here
            code = 2
        finally:
            os._exit(code)
    _, status = await to_thread.run_sync(os.waitpid, pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    await store.append(lease, [StateChanged("k", "on")], expected_seq=1)
    assert await records(store) == ["on"]
    assert set(path.with_name("bot.db.locks").iterdir()) == locks


async def test_a_forked_child_does_not_keep_the_lock_of_its_parent(
    store: SqliteRunStore, path: Path
) -> None:
    await store.acquire(S, "me")
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    try:
        await anyio.sleep(0.05)
        os.close(store._parts.leases._fd or -1)  # as if this process were gone
        store._parts.leases._fd = None
        async with SqliteRunStore(path) as other:
            assert (await other.acquire(S, "other")).took_over
    finally:
        os.kill(pid, signal.SIGKILL)
        await to_thread.run_sync(os.waitpid, pid, 0)


# --- the inbox -----------------------------------------------------------------------


@pytest.mark.scenario("run-20")
async def test_another_process_submits_and_the_listener_here_hears_of_it(
    store: SqliteRunStore, path: Path
) -> None:
    heard: list[int] = []

    async def listener(version: int) -> None:
        heard.append(version)

    with store.on_accept(S, listener), anyio.fail_after(PATIENCE):
        assert await to_thread.run_sync(say, "accept", path, S, "i") == ["1 False"]
        while heard != [1]:  # noqa: ASYNC110 - it is called in another loop
            await anyio.sleep(0.01)
        assert await to_thread.run_sync(say, "accept", path, S, "i") == ["1 True"]
        await store.accept(S, text_input("mine"))
        await anyio.sleep(0.2)
    assert heard == [1, 2]


async def test_who_waits_is_woken_by_another_handles_append_and_delete(
    store: SqliteRunStore, path: Path
) -> None:
    async with SqliteRunStore(path) as other:
        lease = await other.acquire(S, "other")
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(store.wait, S, 1)
                await anyio.sleep(0.1)
                await other.append(lease, [StateChanged("k")], expected_seq=1)
        await other.release(lease)

        async def gone() -> None:
            with pytest.raises(SessionNotFound):
                await store.wait(S, 2)

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(gone)
                await anyio.sleep(0.1)
                await other.delete(S)


# --- the middle of a write -----------------------------------------------------------


@pytest.mark.scenario("run-10", "peers-R11")
async def test_a_kill_between_begin_and_commit_leaves_nothing(
    store: SqliteRunStore, path: Path
) -> None:
    with child("half", path, "written") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert await records(store) == []
        lease = await store.acquire(S, "me")
    assert lease.took_over
    await store.append(lease, [StateChanged("k", "whole")], expected_seq=1)
    assert await records(store) == ["whole"]


@pytest.mark.scenario("peers-R24")
@pytest.mark.parametrize("durability", ["power", "crash"])
async def test_four_processes_and_a_slow_reader_share_a_file_without_a_lock_error(
    store: SqliteRunStore, path: Path, durability: str
) -> None:
    lease = await store.acquire(S, "me")
    for seq in range(1, 200):
        await store.append(lease, [StateChanged("k", "x" * 5000)], expected_seq=seq)
    slow = store.read(S)
    outside = sqlite3.connect(path)  # a foreign reader with a transaction open
    outside.execute("BEGIN")
    outside.execute("SELECT count(*) FROM journal").fetchone()
    names = [f"p{n}" for n in range(4)]
    processes = [start("many", path, name, durability, "200") for name in names]
    seen = 0
    while any(process.poll() is None for process in processes):
        seen += len([await anext(slow)])
        await anyio.sleep(0.02)
    slowest = []
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0
        slowest.append(float(output))
    outside.close()
    seen += len([stored async for stored in slow])
    assert seen == 200
    for name in names:
        assert len(await records(store, name)) == 200
    assert max(slowest) < 10.0
    infos = await store.sessions(SessionQuery(prefix="p"))
    assert [info.records for info in infos] == [201] * 4


async def test_a_disk_that_takes_no_more_poisons_the_lease_and_nothing_else(
    store: SqliteRunStore, path: Path
) -> None:
    said = await to_thread.run_sync(say, "small_disk", path, S)
    name, seq = said[0].split()
    assert name == "StoreFailed"
    assert said[1] == f"StoreFailed {seq}"
    assert said[2] == f"went on {int(seq) + 1}"
    assert (await records(store))[-1] == "on"
    assert len(await records(store)) == int(seq)


async def test_a_folder_that_cannot_be_written_says_so() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's are closed to other users
        folder = Path(name)
        os.chmod(folder, 0o555)
        (said,) = await to_thread.run_sync(say, "nobody", folder / "bot.db", S)
        assert said.startswith("StoreError ")
        assert "Nothing was written" in said
        assert os.listdir(folder) == []
