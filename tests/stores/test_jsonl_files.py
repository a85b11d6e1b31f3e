"""The JSONL store's folder: what it touches and leaves, what the system refuses."""

import gc
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stores.jsonl_kit import (
    S,
    below,
    file_of,
    journal,
    new_session,
    open_files,
    run_child,
    values,
)

from agentcore.errors import (
    ConfigError,
    CorruptRecord,
    LeaseLost,
    NotAStore,
    SchemaTooNew,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StoreError,
    StoreFailed,
)
from agentcore.stores._jsonl_os import Lock
from agentcore.stores._jsonl_root import folder_name, session_id_of
from agentcore.stores.jsonl import JsonlRunStore
from agentcore.testing.contracts._sample import text_input
from agentcore.types.content import BlobRef, ImagePart
from agentcore.types.inbox import Input
from agentcore.types.records import Record, StateChanged, ToolOutcome
from agentcore.types.runs import SessionHeader, SessionQuery

# --- what it touches -----------------------------------------------------------------


async def test_constructing_and_looking_make_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "store"
    store = JsonlRunStore(path)
    assert await store.sessions(SessionQuery()) == []
    with pytest.raises(SessionNotFound):
        await journal(store)
    with pytest.raises(StoreError):
        await store.get_blob(BlobRef("0" * 32, 1))
    assert below(tmp_path) == []
    await store.create(SessionHeader(S))
    assert json.loads((path / "agentcore-store.json").read_bytes()) == {
        "kind": "agentcore.jsonl",
        "version": 1,
    }


def test_a_durability_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'power' or 'crash'"):
        JsonlRunStore(tmp_path, durability="none")  # type: ignore[arg-type]  # the test


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("store", "a file"),
        ("store/thesis.txt", "mine"),
        ("store/agentcore-store.json", '{"kind":"other","version":1}'),
        ("store/agentcore-store.json", "[1]"),
        ("store/agentcore-store.json", "{"),
    ],
)
async def test_what_is_no_store_is_not_touched(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    before = below(tmp_path, "**/*")
    store = JsonlRunStore(tmp_path / "store")
    for refused in (
        store.create(SessionHeader(S)),
        store.put_blob(b"x"),
        store.sessions(SessionQuery()),
        store.acquire(S, "o"),
    ):
        with pytest.raises(NotAStore):
            await refused
    assert below(tmp_path, "**/*") == before


async def test_a_store_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    await new_session(tmp_path)
    (tmp_path / "agentcore-store.json").write_text(
        '{"kind":"agentcore.jsonl","version":2}'
    )
    with pytest.raises(SchemaTooNew, match="format 2"):
        JsonlRunStore(tmp_path).read(S)


async def test_closing_releases_and_leaves_no_file_open(tmp_path: Path) -> None:
    async with JsonlRunStore(tmp_path) as store:
        async with store:
            await store.create(SessionHeader(S))
            lease = await store.acquire(S, "owner")
            await store.accept(S, text_input("i"))
            await store.append(lease, values("a"), expected_seq=1, expected_inbox=1)
            assert len(await journal(store)) == 2
        await store.append(lease, values("b"), expected_seq=2)  # the outer one lasts
        assert len(open_files(tmp_path)) == 2
    assert open_files(tmp_path) == set()
    with pytest.raises(LeaseLost):
        await store.append(lease, values("c"), expected_seq=3)
    again = await store.acquire(S, "owner")  # and it can be used again
    assert (again.epoch, again.took_over) == (2, False)
    await store.close()
    assert open_files(tmp_path) == set()


async def test_a_store_that_is_let_go_of_leaves_no_file_open(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    assert len(open_files(tmp_path)) == 2
    del store
    await anyio.to_thread.run_sync(gc.collect)  # in the thread that served it last
    assert open_files(tmp_path) == set()


async def test_an_acquire_that_fails_leaves_no_file_open(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    await store.close()
    file = file_of(tmp_path)
    file.write_bytes(b"x\n" + file.read_bytes())
    with pytest.raises(CorruptRecord):
        await store.acquire(S, "owner")
    assert open_files(tmp_path) == set()


async def test_an_acquire_whose_caller_is_gone_is_given_back(tmp_path: Path) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)
    session = store._get(S)
    attempt = session.attempt("owner", time.time)
    attempt.run()
    attempt.abandon()
    late = session.attempt("owner", time.time)
    late.abandon()
    late.run()
    assert session.journal is None
    assert open_files(tmp_path) == set()


# --- names ---------------------------------------------------------------------------


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_two_ids_are_two_safe_names_wherever_case_does_not_count(
    ids: list[str],
) -> None:
    names = [folder_name(session_id) for session_id in ids]
    assert names[0].casefold() != names[1].casefold()
    for session_id, name in zip(ids, names, strict=True):
        assert 0 < len(name) <= 150
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_%~")
        assert session_id_of(name) in {session_id, None}


AWKWARD = ["..", "../../x", "a/b", "A", "a", "", ".", "con\x00", "é" * 90, "x" * 5_000]


async def test_awkward_ids_are_sessions_like_any_other(tmp_path: Path) -> None:
    store = JsonlRunStore(tmp_path / "store", durability="crash")
    for session_id in AWKWARD:
        await store.create(SessionHeader(session_id))
        lease = await store.acquire(session_id, "o")
        await store.append(lease, values(session_id), expected_seq=1)
        await store.release(lease)
    for session_id in AWKWARD:
        records = [r.record async for r in store.read(session_id, 1)]
        assert records == values(session_id)
    listed = [info.session_id for info in await store.sessions(SessionQuery())]
    assert sorted(listed) == sorted(AWKWARD)
    assert {p.name for p in below(tmp_path)} == {"store"}
    for session_id in AWKWARD:
        await store.delete(session_id)
    assert below(tmp_path / "store" / "sessions") == []


async def test_an_id_that_is_no_text_is_refused_and_not_found(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    with pytest.raises(ConfigError):
        await store.create(SessionHeader("\ud800"))
    with pytest.raises(SessionNotFound):
        await store.accept("\ud800", text_input("i"))
    await store.close()


async def test_a_blob_hash_is_no_way_out_of_the_folder(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path / "store")
    (tmp_path / "secret").write_text("mine")
    with pytest.raises(StoreError, match="no blob"):
        await store.get_blob(BlobRef("../../secret", 4))
    await store.close()


# --- listing, deleting, blobs, snapshots ---------------------------------------------


async def test_a_session_whose_first_line_is_damaged_is_still_listed(
    tmp_path: Path,
) -> None:
    store, _ = await new_session(tmp_path)
    await store.close()
    long = "L" * 200
    await store.create(SessionHeader(long))
    for file in below(tmp_path, "sessions/*/journal.jsonl"):
        file.write_bytes(b"x" + file.read_bytes())
    (tmp_path / "sessions" / "stray").mkdir()
    (tmp_path / "sessions" / "stray.txt").touch()
    infos = await JsonlRunStore(tmp_path).sessions(SessionQuery())
    assert [info.session_id for info in infos] == [S]  # only the file knew the other


async def test_a_session_made_again_elsewhere_is_not_taken_for_the_old_one(
    tmp_path: Path,
) -> None:
    clock = SimpleNamespace(now=lambda: 1.0)
    store = JsonlRunStore(tmp_path, clock=clock)
    await store.create(SessionHeader(S))
    await store.accept(S, text_input("i"))
    await store.accept(S, text_input("j"))
    assert (await store.inbox(S)).version == 2
    assert [i.created_at for i in await store.sessions(SessionQuery())] == [1.0]
    clock.now = lambda: 2.0
    other = JsonlRunStore(tmp_path, clock=clock)
    await other.delete(S)
    await other.create(SessionHeader(S))
    assert (await store.inbox(S)).version == 0
    for item_id in ("p", "q"):  # a list of ids as long as the old one
        await other.accept(S, text_input(item_id))
    receipt = await store.accept(S, text_input("j", "something else"))
    assert (receipt.position, receipt.duplicate) == (3, False)
    assert [i.created_at for i in await store.sessions(SessionQuery())] == [2.0]
    with pytest.raises(SessionExists):
        await store.create(SessionHeader(S))


async def test_paging_on_from_a_session_that_is_gone_is_an_error(
    tmp_path: Path,
) -> None:
    with pytest.raises(SessionNotFound):
        await JsonlRunStore(tmp_path).sessions(SessionQuery(before="gone"))


async def test_a_blob_that_another_session_names_in_its_inbox_stays(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    ours, mine = [await store.put_blob(data) for data in (b"ours", b"mine")]
    image = ImagePart("image/png", blob=ours)
    # Behind more than one block of text, and across the edge of one.
    records: list[Record] = [
        StateChanged("k", "x" * (1024 * 1024 - 150)),
        ToolOutcome("c", "ok", content=(image,), full=mine),
    ]
    await store.append(lease, records, expected_seq=1)
    await store.release(lease)
    await store.create(SessionHeader("other"))
    await store.accept("other", Input("i", (image,)))
    await store.delete(S)
    assert await store.get_blob(ours) == b"ours"
    with pytest.raises(StoreError, match="no blob"):
        await store.get_blob(mine)
    await store.delete("other")
    assert below(tmp_path / "blobs") == []


async def test_a_damaged_blob_is_not_handed_out_and_can_be_put_again(
    tmp_path: Path,
) -> None:
    store = JsonlRunStore(tmp_path)
    ref = await store.put_blob(b"data")
    (tmp_path / "blobs" / ref.hash).write_bytes(b"dat")
    with pytest.raises(CorruptRecord, match="is damaged"):
        await store.get_blob(ref)
    assert await store.put_blob(b"data") == ref
    assert await store.get_blob(ref) == b"data"


async def test_a_snapshot_is_replaced_and_a_damaged_one_is_none(
    tmp_path: Path,
) -> None:
    store, _ = await new_session(tmp_path)
    assert await store.load_snapshot(S) is None
    for seq in (1, 2):
        await store.save_snapshot(S, seq, {"n": [seq, None]})
    other = JsonlRunStore(tmp_path)
    assert await other.load_snapshot(S) == (2, {"n": [2, None]})
    with pytest.raises(ConfigError):
        await store.save_snapshot(S, 3, {"n": {1, object()}})
    file = file_of(tmp_path, "snapshot.json")
    file.write_bytes(file.read_bytes()[:-9])
    assert await other.load_snapshot(S) is None
    await store.close()


async def test_a_handle_forgets_idle_sessions_and_finds_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcore.stores.jsonl.KEEP", 2)
    store, lease = await new_session(tmp_path, durability="crash")
    for n in range(5):
        await store.create(SessionHeader(f"s{n}"))
        await store.accept(f"s{n}", text_input("i"))
    assert len(store._sessions) == 2
    assert S in store._sessions  # an owned one stays
    assert (await store.accept("s0", text_input("i"))).duplicate
    await store.append(lease, values("a"), expected_seq=1)
    await store.close()


# --- what the system refuses ---------------------------------------------------------


async def test_a_full_disk_stops_the_writer_and_a_reopened_one_goes_on(
    tmp_path: Path,
) -> None:
    out = run_child(
        tmp_path,
        """
import resource
store = JsonlRunStore(path, durability="crash")
await store.create(SessionHeader(S))
lease = await store.acquire(S, "owner")
size = os.path.getsize(os.path.join(path, "sessions", S, "journal.jsonl"))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 400, size + 400))
await store.append(lease, [StateChanged("k", "fits")], expected_seq=1)
for text in ("x" * 600, "small"):
    try:
        await store.append(lease, [StateChanged("k", text)], expected_seq=2)
    except StoreFailed as error:
        say(error)
try:
    await store.accept(S, Input("i", (TextPart("y" * 4000),)))
except StoreFailed as error:
    say(error)
say(len([r async for r in store.read(S)]))
with open(os.path.join(path, "sessions", S, "journal.jsonl"), "rb") as file:
    say(file.read()[-1:])
await store.release(lease)
lease = await store.acquire(S, "owner")
say(lease)
await store.close()
""",
    )
    first, second, third, count, end, lease = out.splitlines()
    assert "File too large" in first
    assert "acquire the session again" in first
    assert second == first  # nothing is written behind what may be there
    assert "the same call again is safe" in third
    assert (count, end) == ("2", r"b'\n'")  # no half line is left
    assert "epoch=2, took_over=True" in lease
    store = JsonlRunStore(tmp_path)
    assert [r.record for r in await journal(store, 1)] == values("fits")
    assert (await store.inbox(S)).version == 0
    assert below(tmp_path / "tmp") == []


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
async def test_a_failed_flush_is_no_acknowledgement(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lease = await new_session(tmp_path)

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, broken)
        with pytest.raises(StoreFailed, match="the same call again is safe"):
            await store.accept(S, text_input("i"))
        if call == "fdatasync":
            with pytest.raises(StoreFailed, match="acquire the session again"):
                await store.append(lease, values("a"), expected_seq=1)
    receipt = await store.accept(S, text_input("i"))
    assert receipt.duplicate == (call == "fsync")  # the file itself was there by then
    if call == "fdatasync":
        with pytest.raises(StoreFailed):
            await store.append(lease, values("b"), expected_seq=1)
        assert len(await journal(store)) == 1  # not shown as long as it is not known
    await store.release(lease)
    again = await store.acquire(S, "owner")
    assert again.took_over == (call == "fdatasync")
    await store.close()


async def test_a_write_that_writes_nothing_is_an_error_not_a_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lease = await new_session(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: 0)
        with pytest.raises(StoreFailed, match="acquire the session again"):
            await store.append(lease, values("a"), expected_seq=1)
    with pytest.raises(StoreFailed):
        await store.renew(lease)
    await store.close()


async def test_a_release_that_cannot_be_written_still_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, lease = await new_session(tmp_path)

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        await store.release(lease)
    assert "was not released on record" in caplog.text
    assert (await store.acquire(S, "next")).took_over
    await store.close()


async def test_a_lock_that_the_file_system_does_not_have_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)

    def refused(fd: int, how: int) -> None:
        raise OSError(37, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", refused)
        with pytest.raises(StoreFailed, match="No locks available"):
            await store.acquire(S, "owner")
        with pytest.raises(StoreFailed, match="No locks available"):
            await store.accept(S, text_input("i"))
    assert open_files(tmp_path) == set()


async def test_who_has_locked_a_session_and_not_signed_yet_has_no_name(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)
    with Lock(file_of(tmp_path, "owner.lock")) as unsigned:
        assert unsigned.take()
        with pytest.raises(SessionBusy) as caught:
            await store.acquire(S, "owner")
    assert caught.value.owner is None


async def test_a_session_deleted_while_it_is_read_is_not_found(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)
    gone, another = store.read(S), store.read(S)
    kept = os.open(file_of(tmp_path), os.O_RDONLY)  # so its number is not used again
    try:
        await store.delete(S)
        with pytest.raises(SessionNotFound):
            await anext(gone)
        await store.create(SessionHeader(S))
        with pytest.raises(SessionNotFound):
            await anext(another)
    finally:
        os.close(kept)


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Nothing below may be written; root, who always may, becomes somebody else."""
    folders = [path, *(p for p in path.rglob("*") if p.is_dir())]
    files = [p for p in path.rglob("*") if p.is_file()]
    for entry in (*folders, *files):
        entry.chmod(0o555 if entry in folders else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for entry in (*folders, *files):
            entry.chmod(0o755)


async def test_a_store_that_may_not_be_written_can_be_read() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own are closed to others
    try:
        os.chmod(folder, 0o755)
        path = folder / "store"
        store, lease = await new_session(path)
        ref = await store.put_blob(b"data")
        await store.append(lease, values("a"), expected_seq=1)
        await store.accept(S, text_input("i"))
        await store.close()
        calls: list[tuple[Any, str]] = [
            (lambda s: s.create(SessionHeader("new")), "create it again"),
            (lambda s: s.accept(S, text_input("j")), "same call again is safe"),
            (lambda s: s.acquire(S, "owner"), "reading still works"),
            (lambda s: s.delete(S), "reading still works"),
            (lambda s: s.put_blob(b"new"), "putting it again is safe"),
            (lambda s: s.save_snapshot(S, 1, {}), "nothing was written"),
        ]
        with read_only(path):
            store = JsonlRunStore(path)
            for call, safe in calls:
                with pytest.raises(StoreFailed, match=f"Permission denied; .*{safe}"):
                    await call(store)
            assert len(await journal(store)) == 2
            assert await store.get_blob(ref) == b"data"
            assert (await store.inbox(S)).version == 1
            assert len(await store.sessions(SessionQuery())) == 1
            await store.wait(S, 1)
        with read_only(folder), pytest.raises(StoreFailed, match="nothing was written"):
            await JsonlRunStore(folder / "new").create(SessionHeader(S))
    finally:
        shutil.rmtree(folder)


async def test_a_lock_that_nobody_lets_go_of_is_an_error_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcore.stores._jsonl_os.PATIENCE", 0.05)
    store, _ = await new_session(tmp_path)
    with store._get(S).inbox.locked(), pytest.raises(StoreFailed, match="locked for"):
        await JsonlRunStore(tmp_path).accept(S, text_input("i"))
    await store.close()


async def test_who_waits_for_a_deleted_session_is_told(tmp_path: Path) -> None:
    store, lease = await new_session(tmp_path)
    await store.release(lease)
    told = []

    async def wait(handle: JsonlRunStore) -> None:
        with pytest.raises(SessionNotFound):
            await handle.wait(S, 1)
        told.append(True)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, store)
            group.start_soon(wait, JsonlRunStore(tmp_path))
            await anyio.wait_all_tasks_blocked()
            await store.delete(S)
    assert told == [True, True]
