"""The JSONL store's inbox: its bound, its ids, the list that may lag behind."""

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.stores.jsonl_kit import S, file_of, new_session, run_child, until, values

from agentcore.errors import ConfigError, CorruptRecord, InboxFull, InputConflict
from agentcore.stores._common import MAX_WAITING, MAX_WAITING_BYTES
from agentcore.stores._jsonl_inbox import Inbox
from agentcore.stores.jsonl import JsonlRunStore
from agentcore.testing.contracts._sample import text_input
from agentcore.types.inbox import Cancel, Input
from agentcore.types.json import Unknown
from agentcore.types.records import (
    InputParked,
    InputPlaced,
    InputReleased,
    InputWithdrawn,
    Record,
    StateChanged,
)
from agentcore.types.runs import Lease, Receipt, SessionHeader

# --- one file per item ---------------------------------------------------------------


async def test_an_item_is_a_file_a_person_can_read(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    await store.accept(S, text_input("i", "hällo"))
    text = file_of(tmp_path, "inbox/0000000001.json").read_text(encoding="utf-8")
    assert text.startswith('{"v":1,"item":{"kind":"input","id":"i"')
    assert "hällo" in text
    await store.close()


@pytest.mark.scenario("run-12")
async def test_many_handles_that_submit_one_id_at_once_get_one_receipt(
    tmp_path: Path,
) -> None:
    store, _ = await new_session(tmp_path)
    receipts: list[Receipt] = []

    async def submit(handle: JsonlRunStore) -> None:
        receipts.append(await handle.accept(S, text_input("i")))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(submit, JsonlRunStore(tmp_path))
    assert {(r.item_id, r.position) for r in receipts} == {("i", 1)}
    assert sorted(r.duplicate for r in receipts) == [False] + [True] * 7
    assert (await store.inbox(S)).version == 1
    await store.close()


@pytest.mark.scenario("run-13")
async def test_another_process_knows_the_ids_of_all_that_came_before(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    await store.accept(S, text_input("i", "one"))
    await store.append(lease, [InputPlaced("i", "run")], expected_seq=1)
    await store.release(lease)
    out = run_child(
        tmp_path,
        """
store = JsonlRunStore(path)
try:
    await store.accept(S, Input("i", (TextPart("two"),)))
except InputConflict as error:
    print(error)
""",
    )
    assert "'i' was used in session 'session-1' with other content" in out
    assert (await store.inbox(S)).version == 1


async def test_the_order_is_the_order_of_the_receipts(tmp_path: Path) -> None:
    handles = [(await new_session(tmp_path))[0], JsonlRunStore(tmp_path)]
    positions: dict[str, int] = {}

    async def submit(n: int) -> None:
        receipt = await handles[n % 2].accept(S, Cancel(f"c{n}"))
        positions[receipt.item_id] = receipt.position

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(submit, n)
    page = await handles[1].inbox(S)
    assert {item.id: n for n, item in page.items if isinstance(item, Cancel)} == (
        positions
    )
    await handles[0].close()


async def test_what_is_no_json_is_refused_and_an_unknown_kind_is_kept(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path)
    with pytest.raises(ConfigError, match=r"Input\.settings\.x"):
        await store.accept(S, Input("i", (), settings={"x": {1}}))
    with pytest.raises(ConfigError):
        await store.append(lease, [StateChanged("k", {1})], expected_seq=1)
    item = Unknown("future", {"kind": "future", "id": "i"})
    assert not (await store.accept(S, item)).duplicate
    assert (await store.accept(S, item)).duplicate
    assert (await store.inbox(S)).items == ((1, item),)
    await store.append(lease, values("a"), expected_seq=1)  # nothing was poisoned
    await store.close()


async def test_a_damaged_item_is_an_error_and_not_another_item(
    tmp_path: Path,
) -> None:
    store, _ = await new_session(tmp_path)
    await store.accept(S, text_input("i"))
    file = file_of(tmp_path, "inbox/0000000001.json")
    file.write_bytes(file.read_bytes().replace(b"hello", b"hullo"))
    with pytest.raises(CorruptRecord, match=r"0000000001\.json is damaged"):
        await store.inbox(S)
    await store.close()


# --- the bound -----------------------------------------------------------------------


async def fill(store: JsonlRunStore) -> None:
    for n in range(MAX_WAITING):
        await store.accept(S, text_input(f"i{n}"))


async def test_a_full_inbox_refuses_the_next_input_in_every_process(
    tmp_path: Path,
) -> None:
    store, _ = await new_session(tmp_path, durability="crash")
    await fill(store)
    for handle in (store, JsonlRunStore(tmp_path)):
        with pytest.raises(InboxFull, match="64 unplaced inputs"):
            await handle.accept(S, text_input("one too many"))
    assert (await store.inbox(S)).version == MAX_WAITING
    # What is no input still comes through, and so does a repetition.
    await store.accept(S, Cancel("stop"))
    assert (await store.accept(S, text_input("i0"))).duplicate
    await store.close()


@pytest.mark.parametrize(
    ("record", "room"),
    [
        (InputPlaced("i0", "r"), 1),
        (InputWithdrawn("i0", "w"), 1),
        (InputParked("i0", "c"), 1),
        (InputPlaced("somebody else's", "r"), 0),
        (StateChanged("k"), 0),
    ],
)
async def test_an_input_that_leaves_the_queue_makes_room_in_every_process(
    tmp_path: Path, record: Record, room: int
) -> None:
    store, lease = await new_session(tmp_path, durability="crash")
    await fill(store)
    other = JsonlRunStore(tmp_path, durability="crash")
    for handle in (store, other):
        with pytest.raises(InboxFull):
            await handle.accept(S, text_input("one too many"))
    await store.append(lease, [record], expected_seq=1)
    for n in range(room):
        await other.accept(S, text_input(f"new{n}"))
    for handle in (store, other, JsonlRunStore(tmp_path)):
        with pytest.raises(InboxFull):
            await handle.accept(S, text_input("one too many"))
    await store.close()


async def test_a_released_input_takes_its_room_again(tmp_path: Path) -> None:
    store, lease = await new_session(tmp_path, durability="crash")
    await fill(store)
    ids = [f"i{n}" for n in range(MAX_WAITING)]
    await store.append(lease, [InputParked(i, "c") for i in ids], expected_seq=1)
    back = [InputReleased(i, "r") for i in ids]
    await store.append(lease, back, expected_seq=1 + MAX_WAITING)
    with pytest.raises(InboxFull):
        await store.accept(S, text_input("one too many"))
    await store.close()


async def test_the_bytes_that_wait_are_bounded_but_not_a_single_input(
    tmp_path: Path,
) -> None:
    store, lease = await new_session(tmp_path, durability="crash")
    await store.accept(S, text_input("large", "x" * (MAX_WAITING_BYTES + 1)))
    with pytest.raises(InboxFull):
        await store.accept(S, text_input("small"))
    await store.append(lease, [InputPlaced("large", "r")], expected_seq=1)
    await store.accept(S, text_input("small"))
    await store.close()


async def test_an_input_that_could_not_be_written_takes_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lease = await new_session(tmp_path, durability="crash")
    await fill(store)
    await store.append(lease, [InputPlaced("i0", "r")], expected_seq=1)

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr("agentcore.stores._jsonl_inbox.put_file", broken)
        with pytest.raises(RuntimeError):
            await store.accept(S, text_input("lost"))
    await store.accept(S, text_input("new"))
    await store.close()


# --- the list of ids -----------------------------------------------------------------


async def with_items(path: Path, count: int) -> tuple[JsonlRunStore, Lease, Path]:
    store, lease = await new_session(path, durability="crash")
    for n in range(count):
        await store.accept(S, text_input(f"i{n}"))
    return store, lease, file_of(path, "ids.jsonl")


@pytest.mark.parametrize("damage", ["gone", "short", "torn", "flipped", "too long"])
async def test_the_list_of_ids_is_made_again_where_it_does_not_fit(
    tmp_path: Path, damage: str
) -> None:
    store, _, listed = await with_items(tmp_path, 4)
    good = listed.read_bytes()
    if damage == "gone":
        listed.unlink()
    elif damage == "short":
        listed.write_bytes(good[: good.index(b"\n") + 1])
    elif damage == "torn":
        listed.write_bytes(good[:-5])
    elif damage == "flipped":
        listed.write_bytes(good.replace(b'"i1"', b'"x1"'))
    else:  # a power loss took the last item, which nobody had a receipt for
        file_of(tmp_path, "inbox/0000000004.json").unlink()
    other = JsonlRunStore(tmp_path)
    for n in range(4):
        receipt = await other.accept(S, text_input(f"i{n}"))
        lost = damage == "too long" and n == 3
        assert (receipt.position, receipt.duplicate) == (n + 1, not lost)
    for handle in (other, store):  # also the one that had read it before
        with pytest.raises(InputConflict):
            await handle.accept(S, text_input("i1", "something else"))
    assert listed.read_bytes() == good
    assert (await store.accept(S, Cancel("c"))).position == 5
    assert (await other.accept(S, Cancel("d"))).position == 6
    assert listed.read_bytes().count(b"\n") == 6
    await store.close()


async def test_a_handle_whose_list_of_ids_vanished_makes_it_again(
    tmp_path: Path,
) -> None:
    store, _, listed = await with_items(tmp_path, 3)
    good = listed.read_bytes()
    listed.unlink()
    assert (await store.accept(S, text_input("i2"))).duplicate
    assert listed.read_bytes() == good
    await store.close()


async def test_an_accept_is_acknowledged_although_the_list_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, listed = await with_items(tmp_path, 1)

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("agentcore.stores._jsonl_inbox.write_all", broken)
        assert (await store.accept(S, text_input("i1"))).position == 2
    assert (await store.accept(S, text_input("i1"))).duplicate
    assert (await store.accept(S, text_input("i2"))).position == 3
    assert listed.read_bytes().count(b"\n") == 3
    await store.close()


async def test_an_accept_costs_the_same_however_much_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lease, _ = await with_items(tmp_path, 60)
    for n in range(60):
        await store.append(lease, [InputPlaced(f"i{n}", "r")], expected_seq=n + 1)
    loaded: list[int] = []
    load = Inbox._load

    def counting(self: Inbox, position: int) -> Any:
        loaded.append(position)
        return load(self, position)

    monkeypatch.setattr(Inbox, "_load", counting)
    for handle in (store, JsonlRunStore(tmp_path), store):
        for n in range(8):
            await handle.accept(S, text_input(f"new{n}"))
    assert loaded == [*range(61, 69)] * 2  # those that were repeated, and no others
    assert (await store.inbox(S, 68)).version == 68
    await store.close()


async def test_items_of_other_sessions_do_not_mix(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    await store.create(SessionHeader("other"))
    await store.accept(S, text_input("i"))
    assert (await store.accept("other", text_input("i"))).position == 1
    assert (await store.inbox(S, 5)).version == 1  # also past the end
    await store.close()


# --- listening -----------------------------------------------------------------------


async def test_a_failing_listener_is_logged_and_the_receipt_goes_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, _ = await new_session(tmp_path)

    async def listener(version: int) -> None:
        raise RuntimeError("deaf")

    with caplog.at_level(logging.ERROR), store.on_accept(S, listener):
        receipt = await store.accept(S, text_input("i"))
    assert receipt.position == 1
    assert "listener of accept failed" in caplog.text
    await store.close()


async def test_two_listeners_hear_and_one_that_left_does_not(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    heard: list[str] = []

    async def first(version: int) -> None:
        heard.append(f"first {version}")

    async def second(version: int) -> None:
        heard.append(f"second {version}")

    with store.on_accept(S, first):
        with store.on_accept(S, second):
            await store.accept(S, text_input("a"))
        await store.accept(S, text_input("b"))
        await store.accept(S, text_input("b"))  # a repetition tells them too
    assert heard == ["first 1", "second 1", "first 2", "first 2"]
    await store.close()


async def test_a_listener_whose_event_loop_ended_is_dropped(tmp_path: Path) -> None:
    store, _ = await new_session(tmp_path)
    kept: list[Any] = []

    async def listener(version: int) -> None:
        raise AssertionError(version)

    async def leave_one_behind() -> None:
        listening = store.on_accept(S, listener)
        listening.__enter__()
        kept.append(listening)

    await anyio.to_thread.run_sync(anyio.run, leave_one_behind)
    ears = store._get(S).ears
    assert ears.listeners == (listener,)
    await JsonlRunStore(tmp_path).accept(S, text_input("i"))
    await until(lambda: not ears.listeners)
    kept[0].__exit__(None, None, None)
    await store.close()


async def test_the_lookout_ends_with_the_last_listener_and_starts_again(
    tmp_path: Path,
) -> None:
    store, _ = await new_session(tmp_path)
    told = anyio.Event()

    async def listener(version: int) -> None:
        told.set()

    for n in range(2):
        told = anyio.Event()
        with store.on_accept(S, listener):
            await JsonlRunStore(tmp_path).accept(S, text_input(f"i{n}"))
            with anyio.fail_after(10):
                await told.wait()
        await until(lambda: not store._lookout._running)
    await store.close()
