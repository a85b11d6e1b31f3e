"""Several processes share a JSONL store, and die at the worst moments."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from tests.stores.jsonl_kit import (
    PATIENCE,
    S,
    child,
    end,
    file_of,
    heard,
    journal,
    new_session,
    run_child,
    values,
)

from agentcore.errors import (
    InputConflict,
    LeaseLost,
    SessionBusy,
    SessionNotFound,
)
from agentcore.stores._jsonl_journal import Journal
from agentcore.stores._jsonl_os import Lock
from agentcore.stores._jsonl_watch import POLL_SECONDS
from agentcore.stores.jsonl import JsonlRunStore
from agentcore.testing.contracts._sample import text_input
from agentcore.types.inbox import Cancel
from agentcore.types.runs import SessionHeader, SessionQuery

OWNS = """
store = JsonlRunStore(path)
await store.create(SessionHeader(S))
lease = await store.acquire(S, "the first")
await store.append(lease, [StateChanged("k", "a")], expected_seq=1)
say("owns")
await anyio.sleep(60)
"""


# --- one owner -----------------------------------------------------------------------


@pytest.mark.scenario("run-60", "run-63", "peers-R23")
async def test_a_second_process_is_told_who_owns_it_and_takes_over_when_that_dies(
    tmp_path: Path,
) -> None:
    process = child(tmp_path, OWNS)
    try:
        heard(process, "owns")
        store = JsonlRunStore(tmp_path)
        with pytest.raises(SessionBusy, match=f"process {process.pid}") as caught:
            await store.acquire(S, "the second")
        assert caught.value.owner == "the first"
        assert [info.records for info in await store.sessions(SessionQuery())] == [2]
        await store.accept(S, text_input("i"))  # its input waits for the owner
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        lease = await store.acquire(S, "the second")  # at once
        assert (lease.epoch, lease.took_over) == (2, True)
        assert len(await journal(store)) == 2
        await store.append(lease, values("b"), expected_seq=2, expected_inbox=1)
        await store.close()
    finally:
        end(process)


@pytest.mark.scenario("run-61", "peers-R3")
async def test_of_two_handles_in_one_process_one_owns_the_session(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    other = JsonlRunStore(tmp_path)
    for handle in (store, other):
        with pytest.raises(SessionBusy):
            await handle.acquire(S, "second")
    # Closing files of the session elsewhere frees nothing, as `lockf` would.
    assert len(await journal(other)) == 1
    with pytest.raises(SessionBusy):
        await other.acquire(S, "second")
    await store.append(lease, values("a"), expected_seq=1)
    with pytest.raises(LeaseLost):
        await other.append(lease, values("b"), expected_seq=2)
    await store.close()
    assert [r.record for r in await journal(store, 1)] == values("a")


@pytest.mark.scenario("run-64", "peers-R3")
async def test_an_owner_whose_lock_file_was_deleted_loses_to_the_next(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    await store.append(lease, values("a"), expected_seq=1)
    file_of(tmp_path, "owner.lock").unlink()
    out = run_child(
        tmp_path,
        """
        store = JsonlRunStore(path)
        lease = await store.acquire(S, "second")
        await store.append(lease, [StateChanged("k", "theirs")], expected_seq=2)
        print(lease.epoch, lease.took_over)
        die()
        """.replace("\n        ", "\n"),
        code=-signal.SIGKILL,
    )
    assert out == "2 True"
    before = file_of(tmp_path).read_bytes()
    for _ in range(2):
        with pytest.raises(LeaseLost):
            await store.renew(lease)
        with pytest.raises(LeaseLost):
            await store.append(lease, values("b"), expected_seq=2)
    await store.release(lease)
    assert file_of(tmp_path).read_bytes() == before
    assert [r.epoch for r in await journal(store)] == [0, 1, 2]


async def test_a_journal_somebody_else_wrote_to_is_not_written_behind_them(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    with file_of(tmp_path).open("ab") as file:
        file.write(b"x")
    with pytest.raises(LeaseLost, match="written by somebody else"):
        await store.append(lease, values("a"), expected_seq=1)
    await store.close()


async def test_a_journal_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    store, lease = await new_session(tmp_path)
    file = file_of(tmp_path)
    data = file.read_bytes()
    for gone in (False, True):
        file.unlink()
        if not gone:
            file.write_bytes(data)
        with pytest.raises(LeaseLost):
            await store.append(lease, values("a"), expected_seq=1)
    file.write_bytes(data)
    await store.close()


async def test_nobody_becomes_the_owner_between_a_check_and_its_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lease = await new_session(tmp_path)
    file_of(tmp_path, "owner.lock").unlink()  # so that the next one is not Busy
    other = JsonlRunStore(tmp_path)._get(S)
    next_owner = threading.Thread(target=other.acquire, args=("second", 0.0))
    fence = Journal._fence

    def interrupted(self: Journal) -> None:
        fence(self)
        next_owner.start()
        next_owner.join(0.2)

    with monkeypatch.context() as patch:
        # Past the look at the lock file, which would stop this owner before.
        patch.setattr(Journal, "check", lambda *_: None)
        patch.setattr(Journal, "_fence", interrupted)
        await store.append(lease, values("first"), expected_seq=1)
    next_owner.join(PATIENCE)
    assert other.journal is not None
    assert (other.journal.lease.epoch, other.journal.seq) == (2, 2)
    assert [r.record for r in await journal(store, 1)] == values("first")
    with pytest.raises(LeaseLost):
        await store.append(lease, values("b"), expected_seq=2)
    await store.close()
    other.release(0.0)


async def test_an_owner_who_meets_the_next_one_at_the_journal_has_lost(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    with Lock(file_of(tmp_path)) as opening:
        assert opening.take()
        with pytest.raises(LeaseLost, match="somebody else is opening"):
            await store.append(lease, values("a"), expected_seq=1)
    await store.close()


async def test_an_accept_that_waited_for_a_deletion_finds_no_session(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)
    told = []

    async def accept() -> None:
        with pytest.raises(SessionNotFound):
            await JsonlRunStore(tmp_path).accept(S, text_input("i"))
        told.append(True)

    async with anyio.create_task_group() as group:
        with Lock(file_of(tmp_path, "inbox.lock")) as deleting:
            assert deleting.take()
            group.start_soon(accept)
            await anyio.sleep(0.05)
            file_of(tmp_path).parent.rename(tmp_path / "tmp" / "gone-1")
    assert told == [True]


CROWD = """
import random
store = JsonlRunStore(path, durability="crash")
dice = random.Random(os.getpid())
done = lost = 0
while done < 60:
    try:
        lease = await store.acquire(S, str(os.getpid()))
    except SessionBusy:
        await anyio.sleep(0.0005)
        continue
    try:
        async for last in store.read(S):
            pass
        seq = last.seq
        for _ in range(3):
            if dice.random() < 0.2:
                os.unlink(os.path.join(path, "sessions", S, "owner.lock"))
            page = await store.inbox(S)
            value = f"{os.getpid()}:{done}"
            seq = (await store.append(
                lease, [StateChanged("k", value)] * 2, expected_seq=seq,
                expected_inbox=page.version if dice.random() < 0.5 else None,
            )).seq
            say(value)
            done += 1
            await store.accept(S, Cancel(value))
    except (LeaseLost, InboxChanged, FileNotFoundError) as error:
        lost += 1
    await store.release(lease)
sys.stderr.write(f"lost {lost}")
"""


@pytest.mark.scenario("peers-R3", "run-64")
async def test_a_crowd_that_deletes_lock_files_never_tears_the_journal(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)
    crowd = [child(tmp_path, CROWD) for _ in range(4)]
    said: list[str] = []
    for process in crowd:
        out, err = process.communicate(timeout=4 * PATIENCE)
        assert process.returncode == 0, err
        said += out.split()
    records = [r.record for r in await journal(store, 1)]  # it can be read to its end
    assert sorted(str(getattr(r, "value", "")) for r in records) == sorted(said * 2)
    assert (await store.inbox(S)).version == len(said)
    again = await JsonlRunStore(tmp_path).acquire(S, "after all")
    assert again.epoch > len(crowd)


# --- fork ----------------------------------------------------------------------------


@pytest.mark.scenario("run-62")
async def test_a_forked_child_is_refused_and_the_parent_goes_on(
    tmp_path: Path,
) -> None:
    out = run_child(
        tmp_path,
        """
store = JsonlRunStore(path, durability="crash")
await store.create(SessionHeader(S))
lease = await store.acquire(S, "owner")
pid = os.fork()
if pid == 0:
    refused = 0
    coroutines = (
        store.append(lease, [StateChanged("k")], expected_seq=1),
        store.release(lease), store.renew(lease), store.close(),
        store.accept(S, Cancel("c")), store.inbox(S), store.acquire(S, "child"),
        store.delete(S), store.put_blob(b""),
    )
    for coroutine in coroutines:
        try:
            coroutine.send(None)
        except ConfigError:
            refused += 1
    try:
        store.read(S)
    except ConfigError:
        refused += 1
    os._exit(0 if refused == 10 else 1)
assert os.waitpid(pid, 0)[1] == 0
await store.append(lease, [StateChanged("k", "a")], expected_seq=1)
try:
    await JsonlRunStore(path).acquire(S, "other")
except SessionBusy as error:
    print(error.owner)
await store.close()
""",
    )
    assert out == "owner"
    assert len(await journal(JsonlRunStore(tmp_path))) == 2


async def test_a_forked_child_that_lives_on_does_not_keep_a_dead_owners_lock(
    tmp_path: Path,
) -> None:
    process = child(
        tmp_path,
        """
store = JsonlRunStore(path)
await store.create(SessionHeader(S))
await store.acquire(S, "owner")
pid = os.fork()
if pid == 0:
    say(os.getpid())
    signal.pause()
await anyio.sleep(60)
""",
    )
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    try:
        process.kill()
        process.wait(PATIENCE)
        lease = await JsonlRunStore(tmp_path).acquire(S, "next")
        assert (lease.epoch, lease.took_over) == (2, True)
    finally:
        os.kill(grandchild, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)


async def test_a_tool_that_outlives_its_owner_does_not_keep_the_lock(
    tmp_path: Path,
) -> None:
    process = child(
        tmp_path,
        """
import subprocess
store = JsonlRunStore(path)
await store.create(SessionHeader(S))
await store.acquire(S, "owner")
tool = subprocess.Popen(["sleep", "60"], close_fds=False)
say(tool.pid)
await anyio.sleep(60)
""",
    )
    assert process.stdout is not None
    tool = int(process.stdout.readline())
    try:
        process.kill()
        process.wait(PATIENCE)
        assert (await JsonlRunStore(tmp_path).acquire(S, "next")).took_over
    finally:
        os.kill(tool, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)


# --- death in the middle of a write --------------------------------------------------

TORN = """
store = JsonlRunStore(path, durability="crash")
await store.create(SessionHeader(S))
lease = await store.acquire(S, "owner")
await store.append(lease, [StateChanged("k", "whole")], expected_seq=1)
write = os.write
def half(fd, data):
    write(fd, bytes(data)[: len(data) // 2])
    die()
os.write = half
await store.append(lease, [StateChanged("k", "half")], expected_seq=2)
"""


@pytest.mark.scenario("peers-R11")
async def test_an_owner_killed_in_the_middle_of_a_line_leaves_whole_lines_only(
    tmp_path: Path,
) -> None:
    run_child(tmp_path, TORN, code=-signal.SIGKILL)
    store = JsonlRunStore(tmp_path)
    assert not file_of(tmp_path).read_bytes().endswith(b"\n")
    assert [r.record for r in await journal(store, 1)] == values("whole")
    lease = await store.acquire(S, "next")
    assert lease.took_over
    (aside,) = file_of(tmp_path).parent.glob("torn-at-*")
    assert aside.read_bytes().startswith(b'{"v":1,"session_id":"session-1"')
    await store.append(lease, values("on"), expected_seq=2)
    assert [r.record for r in await journal(store, 1)] == values("whole", "on")
    await store.close()


async def test_writes_that_the_system_cuts_short_are_gone_on_with(
    tmp_path: Path,
) -> None:
    run_child(
        tmp_path,
        """
store = JsonlRunStore(path)
write = os.write
os.write = lambda fd, data: write(fd, bytes(data)[:7])
await store.create(SessionHeader(S))
await store.accept(S, Input("i", (TextPart("hello"),)))
lease = await store.acquire(S, "owner")
await store.append(lease, [StateChanged("k", "a long value")], expected_seq=1)
await store.close()
""",
    )
    store = JsonlRunStore(tmp_path)
    assert [r.record for r in await journal(store, 1)] == values("a long value")
    assert (await store.inbox(S)).version == 1


DIES_AT_A_RENAME = """
store = JsonlRunStore(path, durability={durability!r})
await store.create(SessionHeader(S))
rename = os.rename
def dying(source, target):
    if {after}:
        rename(source, target)
    die()
os.rename = dying
await store.accept(S, Input("i", (TextPart("hello"),)))
"""


@pytest.mark.parametrize("durability", ["power", "crash"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.scenario("run-10", "run-20")
async def test_an_input_killed_around_its_acknowledgement_is_there_once(
    tmp_path: Path, after: bool, durability: str
) -> None:
    body = DIES_AT_A_RENAME.format(durability=durability, after=after)
    run_child(tmp_path, body, code=-signal.SIGKILL)
    store = JsonlRunStore(tmp_path)
    assert (await store.inbox(S)).version == int(after)
    again = await store.accept(S, text_input("other"))
    assert again.position == 1 + after
    if after:
        with pytest.raises(InputConflict):
            await store.accept(S, text_input("i", "something else"))
    else:
        await store.accept(S, text_input("i", "something else"))
    assert (await store.inbox(S)).version == 2


async def test_a_creation_killed_in_the_middle_leaves_no_session(
    tmp_path: Path,
) -> None:
    run_child(
        tmp_path,
        """
store = JsonlRunStore(path)
await store.create(SessionHeader("another"))
os.rename = lambda *_: die()
await store.create(SessionHeader(S))
""",
        code=-signal.SIGKILL,
    )
    store = JsonlRunStore(tmp_path)
    assert len(await store.sessions(SessionQuery())) == 1
    await store.create(SessionHeader(S))
    assert len(await journal(store)) == 1


async def test_a_deletion_killed_in_the_middle_leaves_no_half_session(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    ref = await store.put_blob(b"mine")
    raw = {"hash": ref.hash}
    await store.append(lease, [*values("a"), *values(raw)], expected_seq=1)  # type: ignore[arg-type]  # any JSON will do
    await store.close()
    run_child(
        tmp_path,
        "import shutil\nshutil.rmtree = lambda *_, **__: die()\n"
        "os.unlink = lambda *_: die()\n"
        "await JsonlRunStore(path).delete(S)",
        code=-signal.SIGKILL,
    )
    store = JsonlRunStore(tmp_path)
    assert await store.sessions(SessionQuery()) == []
    await store.create(SessionHeader(S))
    assert len(await journal(store)) == 1
    # An hour later the rest goes too.
    (gone,) = (tmp_path / "tmp").iterdir()
    os.utime(gone, (0, 0))
    await JsonlRunStore(tmp_path).create(SessionHeader("another"))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "blobs").iterdir()) == []


# --- hearing of one another ----------------------------------------------------------


@pytest.mark.scenario("run-20", "run-60")
async def test_an_owner_hears_of_what_another_process_accepts(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    versions = []
    told = anyio.Event()

    async def listener(version: int) -> None:
        versions.append((version, len((await store.inbox(S)).items)))
        told.set()

    with anyio.fail_after(PATIENCE), store.on_accept(S, listener):
        await anyio.to_thread.run_sync(
            run_child,
            tmp_path,
            "await JsonlRunStore(path).accept(S, Cancel('c'))",
        )
        await told.wait()
        await store.accept(S, Cancel("mine"))
        await anyio.sleep(3 * POLL_SECONDS)  # nobody tells it a second time
    assert versions == [(1, 1), (2, 2)]
    await store.close()


async def test_a_wait_ends_when_another_process_appends(tmp_path: Path) -> None:
    process = child(
        tmp_path,
        OWNS.replace("await anyio.sleep(60)", "sys.stdin.readline()")
        + "await store.append(lease, [StateChanged('k', 'b')], expected_seq=2)\n",
    )
    try:
        await anyio.to_thread.run_sync(heard, process, "owns")
        store = JsonlRunStore(tmp_path)
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(store.wait, S, 2)
                await anyio.wait_all_tasks_blocked()
                assert process.stdin is not None
                process.stdin.write("go on\n")
                process.stdin.flush()
        assert len(await journal(store)) == 3
    finally:
        end(process)


def test_where_there_is_no_flock_the_store_says_so() -> None:
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "from agentcore import JsonlRunStore\n"
        "from agentcore.errors import ConfigError\n"
        "try: JsonlRunStore('x')\n"
        "except ConfigError as error: print(error)\n"
    )
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "needs flock" in out
