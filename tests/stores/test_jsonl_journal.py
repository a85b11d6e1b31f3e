"""The JSONL journal on disk: its lines, its torn end, its damage."""

import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stores.jsonl_kit import S, file_of, journal, new_session, values

from agentcore.errors import CorruptRecord, SchemaTooNew
from agentcore.stores._jsonl_lines import Line, Lines, opens_with_a_line, seal
from agentcore.stores.jsonl import JsonlRunStore
from agentcore.types.records import StoredRecord
from agentcore.types.runs import SessionHeader

TEXTS = ("one", "two\nlines", "Ünïcode " * 9)


async def build(path: Path) -> list[StoredRecord]:
    """A journal of a creation, three appends and the marks of one owner."""
    store, lease = await new_session(path, durability="crash")
    for seq, text in enumerate(TEXTS, 1):
        await store.append(lease, values(text), expected_seq=seq)
    records = await journal(store)
    # As an owner that dies leaves it: without its last mark.
    data = file_of(path).read_bytes()
    await store.close()
    file_of(path).write_bytes(data)
    return records


@pytest.fixture(scope="module")
def written() -> Iterator[tuple[Path, list[StoredRecord]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        yield path, anyio.run(build, path)


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(path, Path(folder) / "store"))


async def valid_prefix(path: Path) -> tuple[list[StoredRecord], CorruptRecord | None]:
    found: list[StoredRecord] = []
    try:
        async for stored in JsonlRunStore(path).read(S):
            found.append(stored)  # noqa: PERF401 - what came before the error counts
    except CorruptRecord as error:
        return found, error
    return found, None


# --- what a line looks like ----------------------------------------------------------


async def test_a_person_reads_the_journal_line_by_line(tmp_path: Path) -> None:
    await build(tmp_path)
    lines = file_of(tmp_path).read_bytes().splitlines()
    creation, mark, first = (json.loads(line) for line in lines[:3])
    assert creation["records"][0]["kind"] == "session.created"
    assert (creation["v"], creation["session_id"], creation["epoch"]) == (1, S, 0)
    assert (mark["mark"], mark["owner"], mark["records"]) == ("acquired", "owner-1", [])
    assert (first["epoch"], first["seq_first"], first["count"]) == (1, 2, 1)
    assert first["records"] == [{"kind": "state.changed", "key": "k", "value": "one"}]
    body = lines[2][: lines[2].rindex(b',"crc":')]
    assert first["crc"] == f"{crc32(body):08x}"


async def test_the_owners_come_and_go_on_record(tmp_path: Path) -> None:
    store, lease = await new_session(tmp_path)
    await store.append(lease, values("a"), expected_seq=1)
    await store.release(lease)
    lines = [json.loads(line) for line in file_of(tmp_path).read_bytes().splitlines()]
    assert [line.get("mark") for line in lines] == [
        None,
        "acquired",
        None,
        "released",
    ]
    assert len(await journal(store)) == 2


# --- a torn end ----------------------------------------------------------------------


@pytest.mark.scenario("peers-R11")
@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_journal_cut_anywhere_in_its_last_line_opens_and_goes_on(
    written: tuple[Path, list[StoredRecord]], share: float
) -> None:
    source, records = written

    async def story(path: Path) -> None:
        file = file_of(path)
        data = file.read_bytes()
        start = data[:-1].rindex(b"\n") + 1
        cut = start + int(share * (len(data) - start))
        file.write_bytes(data[:cut])
        assert await valid_prefix(path) == (records[:-1], None)

        store = JsonlRunStore(path, durability="crash")
        lease = await store.acquire(S, "next")
        assert (lease.epoch, lease.took_over) == (2, True)
        aside = list(file.parent.glob("torn-at-*"))
        assert [f.read_bytes() for f in aside] == [data[start:cut]] * (cut > start)
        await store.append(lease, values("goes on"), expected_seq=3)
        await store.close()
        again, error = await valid_prefix(path)
        assert ([r.record for r in again[3:]], error) == (values("goes on"), None)

    with copied(source) as path:
        anyio.run(story, path)


async def test_cutting_off_a_torn_line_is_logged_with_the_file_that_keeps_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await build(tmp_path)
    file = file_of(tmp_path)
    size = file.stat().st_size
    for number in ("", "-2"):
        with file.open("ab") as out:
            out.write(b'{"v":1,"half')
        store = JsonlRunStore(tmp_path)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            await store.acquire(S, "next")
        aside = file.parent / f"torn-at-{size}{number}.bin"
        assert str(aside) in caplog.text
        assert aside.read_bytes() == b'{"v":1,"half'
        await store.close()
        with file.open("r+b") as out:
            out.truncate(size)


async def test_a_last_line_with_a_wrong_checksum_is_torn_too(tmp_path: Path) -> None:
    records = await build(tmp_path)
    file = file_of(tmp_path)
    data = bytearray(file.read_bytes())
    data[-30] ^= 1
    file.write_bytes(data)
    assert await valid_prefix(tmp_path) == (records[:-1], None)
    store = JsonlRunStore(tmp_path)
    await store.acquire(S, "next")
    assert len(await journal(store)) == 3
    await store.close()


# --- damage before the end -----------------------------------------------------------


@pytest.mark.scenario("run-52", "peers-R11")
@settings(max_examples=100, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_any_changed_byte_before_the_last_line_stops_the_writer_not_the_reader(
    written: tuple[Path, list[StoredRecord]], share: float, change: int
) -> None:
    source, records = written

    async def story(path: Path) -> None:
        file = file_of(path)
        data = bytearray(file.read_bytes())
        at = int(share * (data[:-1].rindex(b"\n") + 1))
        intact = data[:at].count(b"\n")  # lines: creation, mark, three appends
        data[at] ^= change
        file.write_bytes(data)

        found, error = await valid_prefix(path)
        assert found == records[: max(intact - 1, min(intact, 1))]
        assert error is not None
        assert "damaged" in str(error)
        with pytest.raises(CorruptRecord):
            await JsonlRunStore(path).acquire(S, "next")
        assert file.read_bytes() == data

    with copied(source) as path:
        anyio.run(story, path)


@pytest.mark.parametrize("line", [1, 2, 3, 4])
@pytest.mark.parametrize("byte", [b"\x0b", b"x", b""])
@pytest.mark.scenario("run-52")
async def test_two_lines_that_became_one_are_damage_and_no_torn_end(
    tmp_path: Path, line: int, byte: bytes
) -> None:
    records = await build(tmp_path)
    file = file_of(tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1][:-1] + byte
    file.write_bytes(b"".join(lines))
    found, error = await valid_prefix(tmp_path)
    assert error is not None
    assert found == records[: max(line - 2, min(line - 1, 1))]
    with pytest.raises(CorruptRecord):
        await JsonlRunStore(tmp_path).acquire(S, "next")


def test_bytes_that_only_look_like_the_end_of_a_line_are_no_line() -> None:
    whole = Lines(S).append(1, 1, 0.0, 0, b"[]")
    fake = b',"crc":"00000000"}'
    assert not opens_with_a_line(b"{" + fake + b"more")
    assert opens_with_a_line(whole[:-1] + b"more")
    assert not opens_with_a_line(whole[:-1] + b"\x00")


async def test_a_journal_of_which_nothing_is_whole_reads_as_empty(
    tmp_path: Path,
) -> None:
    await build(tmp_path)
    file = file_of(tmp_path)
    file.write_bytes(b"x" * 50_000 + b"\n")
    store = JsonlRunStore(tmp_path)
    assert await journal(store) == []
    assert store._get(S).last_seq() == 0


async def rewritten(path: Path, *lines: bytes) -> None:
    """Replace the last line."""
    file = file_of(path)
    data = file.read_bytes()
    start = data[:-1].rindex(b"\n") + 1
    file.write_bytes(data[:start] + b"".join(lines))


@pytest.mark.parametrize(
    ("epoch", "seq", "why"),
    [(1, 5, "record 5 follows 3"), (1, 3, "record 3 follows 3"), (0, 4, "epoch 0")],
)
@pytest.mark.scenario("peers-R11")
async def test_a_gap_a_repeat_and_an_epoch_going_down_are_damage(
    tmp_path: Path, epoch: int, seq: int, why: str
) -> None:
    await build(tmp_path)
    records = b'[{"kind":"state.changed","key":"k"}]'
    await rewritten(tmp_path, Lines(S).append(epoch, seq, 0.0, 1, records))
    found, error = await valid_prefix(tmp_path)
    assert len(found) == 3
    assert why in str(error)
    with pytest.raises(CorruptRecord, match=why):
        await JsonlRunStore(tmp_path).acquire(S, "next")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (Lines("other").append(1, 4, 0.0, 1, b"[{}]"), "belongs to session 'other'"),
        (seal(b'{"v":1,"session_id":"%s"' % S.encode()), "it has no 'epoch'"),
        (
            Lines(S).append(1, 4, 0.0, 2, b'[{"kind":"state.changed","key":"k"}]'),
            "holds 1 records, not 2",
        ),
        (Lines(S).append(1, 4, 0.0, 1, b'[{"kind":"state.changed"}]'), "journal.jsonl"),
    ],
)
async def test_a_whole_line_that_makes_no_sense_is_damage(
    tmp_path: Path, line: bytes, why: str
) -> None:
    await build(tmp_path)
    await rewritten(tmp_path, line)
    found, error = await valid_prefix(tmp_path)
    assert len(found) == 3
    assert why in str(error)


async def test_a_line_of_a_newer_format_is_refused_and_what_is_older_can_be_read(
    tmp_path: Path,
) -> None:
    await build(tmp_path)
    await rewritten(tmp_path, seal(b'{"v":2,"session_id":"%s","new":[]' % S.encode()))
    store = JsonlRunStore(tmp_path)
    with pytest.raises(SchemaTooNew, match="format 2"):
        await store.acquire(S, "next")
    reading = store.read(S)
    assert [(await anext(reading)).seq for _ in range(3)] == [1, 2, 3]
    with pytest.raises(SchemaTooNew):
        await anext(reading)


async def test_records_of_a_newer_schema_are_not_written_to(tmp_path: Path) -> None:
    created = b'[{"kind":"session.created","session_id":"%s","schema_version":99}]'
    await build(tmp_path)
    line = Lines(S).append(0, 1, 0.0, 1, created % S.encode())
    file_of(tmp_path).write_bytes(line)
    with pytest.raises(SchemaTooNew, match="schema 99"):
        await JsonlRunStore(tmp_path).acquire(S, "next")


async def test_a_line_with_more_fields_than_we_know_is_read(tmp_path: Path) -> None:
    await build(tmp_path)
    records = '[{"kind":"state.changed","key":"k","value":"new"}]'
    body = (
        f'{{"v":1,"session_id":"{S}","epoch":1,"seq_first":4,"count":1,"at":7.0,'
        f'"later":true,"records":{records}'
    )
    await rewritten(tmp_path, seal(body.encode()))
    (last,) = await journal(JsonlRunStore(tmp_path), 3)
    assert (last.at, last.record) == (7.0, values("new")[0])


# --- a long journal ------------------------------------------------------------------


async def long_journal(path: Path, lines: int) -> JsonlRunStore:
    store, lease = await new_session(path, durability="crash")
    seq = 1
    for n in range(lines):
        records = values(*(f"{n}:{i} " + "x" * 80 for i in range(50)))
        seq = (await store.append(lease, records, expected_seq=seq)).seq
    await store.close()
    return JsonlRunStore(path)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    """Every line that is looked at."""
    found: list[Line] = []
    parse = Lines.parse

    def counting(self: Lines, raw: bytes) -> Line:
        found.append(parse(self, raw))
        return found[-1]

    monkeypatch.setattr(Lines, "parse", counting)
    return found


async def test_the_tail_of_50_000_records_looks_at_a_few_lines(
    tmp_path: Path, parsed: list[Line]
) -> None:
    store = await long_journal(tmp_path, 1_000)
    for after in (50_000, 49_999, 49_000, 30_000, 7):
        parsed.clear()
        reading = store.read(S, after)
        first = [await anext(reading)]
        assert [r.seq for r in first] == [after + 1]
        assert len(parsed) < 90, after
    parsed.clear()
    assert [r.seq async for r in store.read(S, 50_001)] == []
    assert len(parsed) < 40


async def test_waiting_at_the_end_of_a_long_journal_looks_at_its_last_line(
    tmp_path: Path, parsed: list[Line]
) -> None:
    store = await long_journal(tmp_path, 100)
    parsed.clear()
    await store.wait(S, 5_000)
    assert len(parsed) == 1


async def test_damage_met_on_the_way_to_a_tail_is_not_stepped_over(
    tmp_path: Path,
) -> None:
    await long_journal(tmp_path, 100)
    file = file_of(tmp_path)
    data = bytearray(file.read_bytes())
    middle = data.index(b"\n", len(data) // 2) + 20
    data[middle] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptRecord):
        await journal(JsonlRunStore(tmp_path), 2_000)


async def test_lines_longer_than_a_block_are_read_from_anywhere(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path, durability="crash")
    for seq in range(1, 6):
        await store.append(lease, values("x" * 600_000), expected_seq=seq)
    await store.close()
    for after in range(7):
        seqs = [r.seq async for r in JsonlRunStore(tmp_path).read(S, after)]
        assert seqs == list(range(after + 1, 7))


def files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


@pytest.mark.scenario("peers-R4")
async def test_a_thousand_rounds_cost_what_they_hold_and_no_more_at_the_end(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path, durability="crash")
    payload = "x" * 2_000
    for seq in range(1, 1_001):
        await store.append(lease, values(payload), expected_seq=seq)
    stored = sum(f.stat().st_size for f in files(tmp_path))
    assert stored <= 1.2 * 1_000 * len(payload)

    # Turn by turn with a new session, so that what else the machine does hits both.
    await store.create(SessionHeader("short"))
    short = await store.acquire("short", "owner")
    times: dict[str, list[float]] = {S: [], "short": []}
    for n in range(1, 101):
        for owned, seq in ((lease, 1_000 + n), (short, n)):
            start = anyio.current_time()
            await store.append(owned, values(payload), expected_seq=seq)
            times[owned.session_id].append(anyio.current_time() - start)
    await store.close()
    assert sorted(times[S])[50] <= 1.5 * sorted(times["short"])[50]
