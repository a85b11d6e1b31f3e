"""The SQLite store's own promises: its file, its errors, its threads, its size."""

# ruff: noqa: ASYNC240 - small files, and a test has its loop to itself

import gc
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from typing_extensions import override

from agentcore._base.canonical import digest
from agentcore.errors import (
    ConfigError,
    CorruptRecord,
    InboxFull,
    LeaseLost,
    NotAStore,
    SchemaTooNew,
    SessionNotFound,
    StoreError,
    StoreFailed,
)
from agentcore.stores._common import MAX_WAITING
from agentcore.stores.sqlite import SqliteRunStore
from agentcore.stores.sqlite import _schema as schema
from agentcore.stores.sqlite._file import StoreFile
from agentcore.testing.contracts._sample import FROM_THE_FUTURE, RUN, text_input
from agentcore.types.content import BlobRef
from agentcore.types.inbox import Cancel
from agentcore.types.json import Unknown
from agentcore.types.records import (
    InputParked,
    InputPlaced,
    InputReleased,
    InputWithdrawn,
    Record,
    StateChanged,
)
from agentcore.types.runs import Lease, SessionHeader, SessionQuery

S = "s"
PATIENCE = 10.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.db"


@pytest.fixture(params=["power", "crash"])
async def store(
    path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[SqliteRunStore]:
    async with SqliteRunStore(path, durability=request.param) as store:
        yield store


@pytest.fixture
async def lease(store: SqliteRunStore) -> Lease:
    await store.create(SessionHeader(S))
    return await store.acquire(S, "owner")


def texts(count: int, size: int = 10) -> list[Record]:
    return [StateChanged("k", f"{n} " + "x" * size) for n in range(count)]


async def read(store: SqliteRunStore, after: int = 0, session: str = S) -> list[int]:
    return [stored.seq async for stored in store.read(session, after)]


def open_files(path: Path) -> list[str]:
    links = [Path(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    targets = [str(link.readlink()) for link in links if link.is_symlink()]
    return [target for target in targets if target.startswith(str(path))]


# --- the file ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"hello", b"SQLite format 3\x00" + bytes(84), b"x" * 5000]
)
async def test_a_file_of_somebody_else_is_not_touched(
    path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    with pytest.raises(NotAStore, match="not touched"):
        await SqliteRunStore(path).create(SessionHeader(S))
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


async def test_another_programs_database_is_not_touched(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs(x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="another program"):
        await SqliteRunStore(path).create(SessionHeader(S))
    assert path.read_bytes() == before


async def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="folder"):
        await SqliteRunStore(tmp_path).create(SessionHeader(S))


async def test_a_missing_folder_is_named_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "bot.db"
    with pytest.raises(StoreError, match="its folder must exist"):
        await SqliteRunStore(path).create(SessionHeader(S))
    assert not path.parent.exists()


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        assert await read(store) == [1]


async def test_what_a_newer_version_wrote_is_refused(path: Path) -> None:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(SchemaTooNew, match=r"layout 99.*update agentcore"):
        await SqliteRunStore(path).create(SessionHeader("t"))


async def test_an_older_file_climbs_the_ladder_and_keeps_what_it_holds(
    path: Path,
) -> None:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))

    def second(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN label TEXT")

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN other TEXT")
        raise sqlite3.OperationalError("no such luck")

    with pytest.raises(StoreError, match="no such luck"):
        StoreFile(path, "power", [*schema.LADDER, second, broken]).connect()
    newer = StoreFile(path, "power", [*schema.LADDER, second])
    connection = newer.connect()
    assert schema.version_of(connection) == 2
    row = connection.execute("SELECT id, label FROM sessions").fetchone()
    assert row == (S, None)
    with pytest.raises(sqlite3.OperationalError):  # all of a climb, or nothing
        connection.execute("SELECT other FROM sessions")
    connection.close()
    with pytest.raises(SchemaTooNew):
        await SqliteRunStore(path).create(SessionHeader("t"))


async def test_an_empty_file_of_ours_starts_at_the_bottom_of_the_ladder(
    path: Path,
) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute("VACUUM")
    connection.close()
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        assert await read(store) == [1]


def test_making_a_store_opens_nothing(path: Path) -> None:
    SqliteRunStore(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("wrong", [":memory:", ""])
def test_a_store_in_memory_is_another_class(wrong: str) -> None:
    with pytest.raises(ConfigError, match="MemoryRunStore"):
        SqliteRunStore(wrong)


def test_an_unknown_durability_is_refused(path: Path) -> None:
    durability: str = "maybe"
    with pytest.raises(ConfigError, match="'power' or 'crash'"):
        SqliteRunStore(path, durability=durability)  # type: ignore[arg-type]  # wrong


# --- the end -------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")
async def test_closing_leaves_no_file_open_no_thread_and_one_file(path: Path) -> None:
    threads = set(threading.enumerate())
    store = SqliteRunStore(path)
    await store.create(SessionHeader(S))
    lease = await store.acquire(S, "owner")
    with anyio.move_on_after(0.05):
        await store.wait(S, 1)
    await store.append(lease, texts(3), expected_seq=1)
    await store.close()
    assert open_files(path.parent) == []
    ours = {t for t in threading.enumerate() if t.name.startswith("agentcore")}
    assert ours - threads == set()
    assert list(path.parent.iterdir()) == [path]
    # It opens again, and nobody needs to wait for the lease that was given up.
    assert not (await store.acquire(S, "owner")).took_over
    await store.close()


async def test_the_last_one_to_leave_closes(path: Path) -> None:
    store = SqliteRunStore(path)
    async with store:
        async with store:
            await store.create(SessionHeader(S))
        assert path.with_name("bot.db-wal").exists()
    assert not path.with_name("bot.db-wal").exists()


async def test_the_last_one_to_leave_gives_up_what_is_owned(path: Path) -> None:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(LeaseLost):
        await store.append(lease, texts(1), expected_seq=1)
    await store.close()


async def test_a_store_nobody_closed_closes_with_its_last_reference(
    path: Path,
) -> None:
    store = SqliteRunStore(path)
    await store.create(SessionHeader(S))
    await store.acquire(S, "owner")
    del store
    gc.collect()
    assert list(path.parent.iterdir()) == [path]


# --- damage --------------------------------------------------------------------------


async def damaged(path: Path, statement: str) -> SqliteRunStore:
    """Three appends of two records, and something wrong in the middle."""
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
        for seq in (1, 3, 5):
            await store.append(lease, texts(2), expected_seq=seq)
    connection = sqlite3.connect(path)
    key = schema.first_key(1)
    assert connection.execute(statement, (key + 5,)).rowcount == 1
    connection.commit()
    connection.close()
    return SqliteRunStore(path)


async def read_up_to_damage(store: SqliteRunStore) -> list[int]:
    seen = []
    try:
        async for stored in store.read(S):
            seen.append(stored.seq)  # noqa: PERF401 - it does not come to its end
    except CorruptRecord as error:
        assert f"after record {seen[-1]}" in str(error)  # noqa: PT017 - after the rest
        return seen
    raise AssertionError("no damage was found")


@pytest.mark.scenario("run-52")
async def test_a_flipped_byte_ends_the_reading_and_bars_the_writing(
    path: Path,
) -> None:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
        for number in range(3):
            values = [StateChanged("k", f"mark-{number}"), StateChanged("k", "b")]
            await store.append(lease, values, expected_seq=1 + 2 * number)
    content = bytearray(path.read_bytes())
    at = content.index(b"mark-1")
    content[at] ^= 1
    path.write_bytes(content)
    async with SqliteRunStore(path) as store:
        assert await read_up_to_damage(store) == [1, 2, 3]
        with pytest.raises(CorruptRecord):
            await store.acquire(S, "owner")
        with pytest.raises(CorruptRecord):
            await store.verify(S)
        await store.accept(S, text_input("i"))  # what is not damaged still works


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM journal WHERE key = ?",
        "UPDATE journal SET key = key - 1 WHERE key = ?",
        "UPDATE journal SET epoch = 0 WHERE key = ?",
        "UPDATE journal SET at = at + 1 WHERE key = ?",
        "UPDATE journal SET count = 1 WHERE key = ?",
        "UPDATE journal SET crc = crc + 1 WHERE key = ?",
    ],
)
async def test_a_row_that_is_missing_or_changed_is_found(
    path: Path, statement: str
) -> None:
    async with await damaged(path, statement) as store:
        assert await read_up_to_damage(store) == [1, 2, 3]
        with pytest.raises(CorruptRecord):
            await store.acquire(S, "owner")


async def test_a_damaged_item_blob_or_snapshot_is_found(path: Path) -> None:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        await store.accept(S, Cancel("a"))
        ref = await store.put_blob(b"data")
        await store.save_snapshot(S, 1, {"a": 1})
        connection = sqlite3.connect(path)
        connection.execute("UPDATE inbox SET crc = crc + 1")
        connection.execute("UPDATE blobs SET data = x'00'")
        connection.execute("UPDATE snapshots SET seq = seq + 1")
        connection.commit()
        connection.close()
        with pytest.raises(CorruptRecord, match="item 1"):
            await store.inbox(S)
        with pytest.raises(CorruptRecord, match="blob"):
            await store.get_blob(ref)
        assert await store.load_snapshot(S) is None


# --- failing writes ------------------------------------------------------------------


async def test_a_full_disk_fails_the_lease_and_a_new_one_goes_on(
    store: SqliteRunStore, lease: Lease
) -> None:
    await store.append(lease, texts(1), expected_seq=1)
    connection = store._parts.writer._connection
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # the disk, as it were
    with pytest.raises(StoreFailed, match="the disk is full"):
        await store.append(lease, texts(1, 5000), expected_seq=2)
    # Nothing is in the way any more, and still this owner must not go on.
    for call in (
        store.append(lease, texts(1), expected_seq=2),
        store.renew(lease),
    ):
        with pytest.raises(StoreFailed, match="acquire the session anew"):
            await call
    await store.release(lease)
    again = await store.acquire(S, "owner")
    await store.append(again, texts(1), expected_seq=2)
    assert await read(store) == [1, 2, 3]


async def test_a_full_disk_fails_an_append_on_the_spot_and_its_lease(
    path: Path,
) -> None:
    async with SqliteRunStore(path, durability="crash") as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
        for seq in (1, 2):
            assert store.append_now(lease, texts(1), expected_seq=seq)
        connection = store._parts.writer._connection
        assert connection is not None
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreFailed, match="the disk is full"):
            store.append_now(lease, texts(1, 5000), expected_seq=3)
        with pytest.raises(StoreFailed, match="acquire the session anew"):
            await store.append(lease, texts(1), expected_seq=3)
        await store.release(lease)
        again = await store.acquire(S, "owner")
        await store.append(again, texts(1), expected_seq=3)
        assert await read(store) == [1, 2, 3, 4]


async def test_it_appends_on_the_spot_only_if_that_need_not_wait(path: Path) -> None:
    async with SqliteRunStore(path) as power:
        await power.create(SessionHeader(S))
        lease = await power.acquire(S, "owner")
        assert power.append_now(lease, texts(1), expected_seq=1) is None
        await power.release(lease)
    async with SqliteRunStore(path, durability="crash") as store:
        lease = await store.acquire(S, "owner")
        for seq in (1, 2):
            assert store.append_now(lease, texts(1), expected_seq=seq) == (seq + 1, 0)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert store.append_now(lease, texts(1), expected_seq=3) is None
        assert store.append_now(lease, texts(1), expected_seq=9) is None
        other.execute("COMMIT")
        other.close()
        with store._parts.writer._gate:  # another thread of this process is at it
            assert store.append_now(lease, texts(1), expected_seq=3) is None
        assert store.append_now(lease, texts(1), expected_seq=3) == (4, 0)
        assert await read(store) == [1, 2, 3, 4]


async def test_an_owner_that_was_replaced_appends_nothing_on_the_spot(
    path: Path,
) -> None:
    async with SqliteRunStore(path, durability="crash") as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
        for seq in (1, 2):
            assert store.append_now(lease, texts(1), expected_seq=seq)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("UPDATE sessions SET epoch = 2, holder = 'somebody'")
        other.close()
        with pytest.raises(LeaseLost):
            store.append_now(lease, texts(1), expected_seq=3)
        assert await read(store) == [1, 2, 3]


async def test_one_failing_write_does_not_fail_those_beside_it(path: Path) -> None:
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        writer = store._parts.writer
        before, failed = writer._commits, []

        async def fail() -> None:
            try:
                await writer.soon(lambda _: 1 / 0)
            except ZeroDivisionError:
                failed.append(True)

        async with anyio.create_task_group() as group:
            with writer._gate:  # so that they come into one transaction
                group.start_soon(store.put_blob, b"a")
                group.start_soon(fail)
                group.start_soon(store.put_blob, b"b")
                await anyio.sleep(0.1)
        assert failed == [True]
        for data in (b"a", b"b"):
            assert await store.get_blob(BlobRef(digest(data), 1)) == data
        assert writer._commits > before


async def test_a_lock_that_is_held_makes_a_writer_wait_and_not_fail(
    store: SqliteRunStore, lease: Lease, path: Path
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ticks = 0
    async with anyio.create_task_group() as group:

        async def append() -> None:
            await store.append(lease, texts(1), expected_seq=1)
            group.cancel_scope.cancel()

        group.start_soon(append)
        for _ in range(20):  # the event loop goes on meanwhile
            await anyio.sleep(0.01)
            ticks += 1
        other.execute("COMMIT")
        await anyio.sleep(PATIENCE)
    other.close()
    assert ticks == 20
    assert await read(store) == [1, 2]


async def test_a_lock_held_for_too_long_is_an_error_that_wrote_nothing(
    store: SqliteRunStore,
    lease: Lease,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentcore.stores.sqlite._file.PATIENCE", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="may be made again"):
        await store.append(lease, texts(1), expected_seq=1)
    other.execute("COMMIT")
    other.close()
    await store.append(lease, texts(1), expected_seq=1)
    assert await read(store) == [1, 2]


async def test_a_cancelled_acquire_leaves_the_session_free(
    store: SqliteRunStore, path: Path
) -> None:
    await store.create(SessionHeader(S))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with anyio.move_on_after(0.05):
        await store.acquire(S, "gone")
    other.execute("COMMIT")
    other.close()
    with anyio.fail_after(PATIENCE):
        async with SqliteRunStore(path) as second:
            while True:
                try:
                    await second.acquire(S, "next")
                except StoreError:
                    await anyio.sleep(0.02)
                else:
                    break


# --- what it costs -------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="nothing counts writes")
@pytest.mark.scenario("peers-R4")
async def test_a_step_writes_little_and_the_file_stays_small(path: Path) -> None:
    start = 0
    async with SqliteRunStore(path) as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
        seq = 1
        for n in range(205):
            if n == 5:
                start = written()
            for records in (texts(4, 120), texts(3, 120)):  # two appends a step
                done = await store.append(lease, records, expected_seq=seq)
                seq = done.seq
    per_step = (written() - start) / 200  # with the end of the log, at the close
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT sum(length(records)) FROM journal")
    payload = found.fetchone()[0]
    connection.close()
    assert per_step <= 9_000
    assert path.stat().st_size <= 2.2 * payload


def written() -> int:
    lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    return int(next(x for x in lines if x.startswith("wchar")).split()[1])


async def test_the_log_is_cut_while_the_store_is_in_use(
    store: SqliteRunStore, lease: Lease, path: Path
) -> None:
    for n in range(300):
        await store.append(lease, texts(1, 50_000), expected_seq=n + 1)
    log = path.with_name("bot.db-wal")
    with anyio.fail_after(PATIENCE):
        while log.stat().st_size > 12_000_000:  # noqa: ASYNC110 - a thread does it
            await anyio.sleep(0.01)


@pytest.mark.scenario("peers-R4")
async def test_the_tail_of_a_long_session_is_read_without_the_rest(
    path: Path,
) -> None:
    async with SqliteRunStore(path, durability="crash") as store:
        await store.create(SessionHeader(S))
        lease = await store.acquire(S, "owner")
        for n in range(100):
            await store.append(lease, texts(500), expected_seq=1 + 500 * n)
        await store.release(lease)
        touched = []

        def count() -> int:
            touched.append(1)
            return 0

        reader = store._parts.readers._free[-1]
        reader.set_progress_handler(count, 1)  # called at each step of the engine
        assert await read(store, 49_990) == list(range(49_991, 50_002))
        few = len(touched)
        reader.set_progress_handler(None, 1)
    assert 0 < few < 200


async def test_a_reader_that_is_slow_holds_nothing_and_sees_nothing_new(
    store: SqliteRunStore, lease: Lease, path: Path
) -> None:
    for n in range(200):
        await store.append(lease, texts(1), expected_seq=n + 1)
    reading = store.read(S)
    await store.append(lease, texts(1), expected_seq=201)
    assert (await anext(reading)).seq == 1
    connection = sqlite3.connect(path)
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.close()
    assert busy == 0
    assert [stored.seq async for stored in reading] == list(range(2, 202))


async def test_a_session_deleted_under_a_reader_is_gone_and_not_damaged(
    store: SqliteRunStore, lease: Lease
) -> None:
    for n in range(200):
        await store.append(lease, texts(1), expected_seq=n + 1)
    await store.release(lease)
    reading = store.read(S)
    await anext(reading)
    await store.delete(S)
    with pytest.raises(SessionNotFound):
        async for _ in reading:
            pass


# --- the bound of the inbox ----------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "room"),
    [
        ([InputPlaced("i0", "r")], True),
        ([InputWithdrawn("i0", "w")], True),
        ([InputParked("i0", "c")], True),
        ([InputParked("i0", "c"), InputReleased("i0", "r")], False),
        ([InputPlaced("somebody else's", "r")], False),
        ([StateChanged("k")], False),
    ],
)
async def test_the_bound_of_the_inbox_is_kept_in_the_file(
    store: SqliteRunStore, lease: Lease, path: Path, records: list[Record], room: bool
) -> None:
    for n in range(MAX_WAITING):
        await store.accept(S, text_input(f"i{n}"))
    await store.append(lease, records, expected_seq=1)
    async with SqliteRunStore(path) as other:
        if room:
            await other.accept(S, text_input("new"))
        with pytest.raises(InboxFull, match="64 unplaced inputs"):
            await other.accept(S, text_input("one too many"))
        await other.accept(S, Cancel("stop"))
        assert (await other.accept(S, text_input("i0"))).duplicate


async def test_an_id_with_half_a_character_is_refused(store: SqliteRunStore) -> None:
    with pytest.raises(ConfigError, match="session_id"):
        await store.create(SessionHeader("a\ud800"))
    await store.create(SessionHeader("a"))
    with pytest.raises(ConfigError, match="half a character"):
        await store.inbox("a\ud800")
    with pytest.raises(ConfigError, match="half a character"):
        await store.accept("a\ud800", text_input("i"))


async def test_odd_ids_are_kept_as_they_are(store: SqliteRunStore) -> None:
    names = ["ä", "a'b", "%", "a*", "", "😀", "x" * 3000]
    for name in names:
        await store.create(SessionHeader(name))
    found = [info.session_id for info in await store.sessions(SessionQuery())]
    assert found == names[::-1]
    (info,) = await store.sessions(SessionQuery(prefix="%"))
    assert info.session_id == "%"


# --- blobs and snapshots -------------------------------------------------------------


async def test_blobs_that_records_of_a_newer_version_name_are_kept(
    store: SqliteRunStore,
) -> None:
    ref = await store.put_blob(b"x")
    raw = {"kind": "future", "deep": [{"kind": "newblob", "hash": ref.hash}]}
    for name in ("a", "b"):
        await store.create(SessionHeader(name))
        lease = await store.acquire(name, "owner")
        await store.append(lease, [Unknown("future", raw)], expected_seq=1)
        await store.release(lease)
    await store.delete("a")
    assert await store.get_blob(BlobRef(ref.hash, 1)) == b"x"
    await store.delete("b")
    with pytest.raises(StoreError):
        await store.get_blob(BlobRef(ref.hash, 1))


async def test_a_text_that_looks_like_a_reference_names_no_blob(
    store: SqliteRunStore, lease: Lease
) -> None:
    ref = await store.put_blob(b"x")
    text = f'{{"hash":"{ref.hash}"}}'
    await store.append(lease, [StateChanged("k", text)], expected_seq=1)
    await store.release(lease)
    await store.delete(S)
    assert await store.get_blob(ref) == b"x"


async def test_a_large_blob_comes_back_whole(store: SqliteRunStore) -> None:
    data = os.urandom(3_000_000)
    ref = await store.put_blob(data)
    assert await store.get_blob(ref) == data


async def test_the_newest_snapshot_takes_the_place_of_the_one_before(
    store: SqliteRunStore, lease: Lease
) -> None:
    assert await store.load_snapshot(S) is None
    for seq in (1, 5):
        await store.save_snapshot(S, seq, {"seq": seq, "text": "ä"})
    assert await store.load_snapshot(S) == (5, {"seq": 5, "text": "ä"})
    with pytest.raises(SessionNotFound):
        await store.save_snapshot("nobody", 1, {})
    await store.release(lease)
    await store.delete(S)
    await store.create(SessionHeader(S))
    assert await store.load_snapshot(S) is None


# --- threads -------------------------------------------------------------------------


async def test_a_hundred_sessions_share_the_syncs(path: Path) -> None:
    async with SqliteRunStore(path) as store:

        async def work(name: str) -> None:
            await store.create(SessionHeader(name))
            lease = await store.acquire(name, name)
            for n in range(5):
                await store.append(lease, RUN[:1], expected_seq=n + 1)
            await store.append(lease, FROM_THE_FUTURE, expected_seq=6)
            await store.release(lease)

        async with anyio.create_task_group() as group:
            for n in range(100):
                group.start_soon(work, f"s{n}")
        commits = store._parts.writer._commits
        infos = await store.sessions(SessionQuery(limit=1000))
        assert [info.records for info in infos] == [9] * 100
    assert commits < 250  # for nine hundred writes


def test_many_threads_and_loops_share_one_store(path: Path) -> None:
    class Loud(threading.Thread):
        error: BaseException | None = None

        @override
        def run(self) -> None:
            try:
                anyio.run(work, self.name, backend=self.name.partition("-")[0])
            except BaseException as error:  # noqa: BLE001 - shown by the main thread
                self.error = error

    async def work(name: str) -> None:
        await store.create(SessionHeader(name))
        for n in range(30):
            await store.accept(name, Cancel(f"c{n}"))
            lease = await store.acquire(name, name)
            await store.append(lease, [StateChanged("k", n)], expected_seq=n + 1)
            await store.release(lease)
        values = [r.record async for r in store.read(name, 1)]
        assert values == [StateChanged("k", n) for n in range(30)]

    store = SqliteRunStore(path, durability="crash")
    threads = []
    for name in ("asyncio-1", "trio-1", "asyncio-2", "trio-2"):
        thread = Loud(name=name)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    assert [t.error for t in threads] == [None] * 4
    anyio.run(store.close)
