"""The memory store's own promises: its bound, its packing, its threads."""

import logging
import threading
from collections.abc import Callable

import anyio
import pytest
from typing_extensions import override

from agentcore.errors import ConfigError, InboxFull, SessionNotFound
from agentcore.stores._common import MAX_WAITING, MAX_WAITING_BYTES
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing.contracts._sample import FROM_THE_FUTURE, RUN, text_input
from agentcore.types.content import BlobRef
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
from agentcore.types.runs import Lease, SessionHeader, SessionQuery

S = "s"
PATIENCE = 10.0


@pytest.fixture
def store() -> MemoryRunStore:
    return MemoryRunStore(keep=2)


@pytest.fixture
async def lease(store: MemoryRunStore) -> Lease:
    await store.create(SessionHeader(S))
    return await store.acquire(S, "owner")


# --- the bound of the inbox ----------------------------------------------------------


async def fill(store: MemoryRunStore) -> None:
    for n in range(MAX_WAITING):
        await store.accept(S, text_input(f"i{n}"))


async def test_a_full_inbox_refuses_the_next_input_and_drops_none(
    store: MemoryRunStore, lease: Lease
) -> None:
    await fill(store)
    with pytest.raises(InboxFull, match="64 unplaced inputs"):
        await store.accept(S, text_input("one too many"))
    assert (await store.inbox(S)).version == MAX_WAITING
    # What is no input still comes through, and so does a repetition.
    await store.accept(S, Cancel("stop"))
    assert (await store.accept(S, text_input("i0"))).duplicate


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
async def test_an_input_that_leaves_the_queue_makes_room(
    store: MemoryRunStore, lease: Lease, record: Record, room: int
) -> None:
    await fill(store)
    await store.append(lease, [record], expected_seq=1)
    for n in range(room):
        await store.accept(S, text_input(f"new{n}"))
    with pytest.raises(InboxFull):
        await store.accept(S, text_input("one too many"))


async def test_a_released_input_takes_its_room_again(
    store: MemoryRunStore, lease: Lease
) -> None:
    await fill(store)
    parked = [InputParked(f"i{n}", "c") for n in range(MAX_WAITING)]
    await store.append(lease, parked, expected_seq=1)
    back = [InputReleased(f"i{n}", "r") for n in range(MAX_WAITING)]
    await store.append(lease, back, expected_seq=1 + MAX_WAITING)
    with pytest.raises(InboxFull):
        await store.accept(S, text_input("one too many"))


async def test_the_bytes_that_wait_are_bounded_but_not_a_single_input(
    store: MemoryRunStore, lease: Lease
) -> None:
    await store.accept(S, text_input("large", "x" * (MAX_WAITING_BYTES + 1)))
    with pytest.raises(InboxFull):
        await store.accept(S, text_input("small"))
    await store.append(lease, [InputPlaced("large", "r")], expected_seq=1)
    await store.accept(S, text_input("small"))


async def test_an_item_json_cannot_hold_is_refused(
    store: MemoryRunStore, lease: Lease
) -> None:
    with pytest.raises(ConfigError, match=r"Input\.settings\.x"):
        await store.accept(S, Input("i", (), settings={"x": {1}}))
    assert (await store.inbox(S)).version == 0


async def test_an_item_of_an_unknown_kind_is_idempotent_by_its_id(
    store: MemoryRunStore, lease: Lease
) -> None:
    item = Unknown("future", {"kind": "future", "id": "i"})
    assert not (await store.accept(S, item)).duplicate
    assert (await store.accept(S, item)).duplicate


# --- packing -------------------------------------------------------------------------


async def test_idle_sessions_beyond_the_last_used_are_packed_and_come_back_equal(
    store: MemoryRunStore,
) -> None:
    before = {}
    for n in range(5):
        name = f"s{n}"
        await store.create(SessionHeader(name))
        await store.accept(name, text_input("i"))
        lease = await store.acquire(name, "owner")
        await store.append(lease, RUN, expected_seq=1)
        await store.append(lease, FROM_THE_FUTURE, expected_seq=1 + len(RUN))
        before[name] = [r async for r in store.read(name)]
        await store.release(lease)
    unpacked = [n for n, s in store._sessions.items() if s.batches is not None]
    assert unpacked == ["s3", "s4"]

    store._sessions["s0"].pack(blobs=True)  # a second time does nothing

    infos = await store.sessions(SessionQuery())
    assert [info.records for info in infos] == [14] * 5
    assert store._sessions["s0"].batches is None  # a listing unpacks nothing
    assert (await store.inbox("s0", 1)).items == ()
    assert store._sessions["s0"].batches is None  # nor does an empty inbox page

    for name, records in before.items():
        assert [r async for r in store.read(name)] == records
        assert (await store.accept(name, text_input("i"))).duplicate


async def test_an_owned_session_is_never_packed(
    store: MemoryRunStore, lease: Lease
) -> None:
    for n in range(5):
        await store.create(SessionHeader(f"s{n}"))
    assert store._sessions[S].batches is not None
    assert S not in store._idle


async def test_a_session_read_only_is_not_packed_anew(store: MemoryRunStore) -> None:
    for n in range(3):
        await store.create(SessionHeader(f"s{n}"))
    packed = store._sessions["s0"].packed
    assert packed is not None
    assert [r.seq async for r in store.read("s0")] == [1]
    for n in (1, 2):
        assert [r.seq async for r in store.read(f"s{n}")] == [1]
    assert store._sessions["s0"].batches is None
    assert store._sessions["s0"].packed is packed
    await store.accept("s0", text_input("i"))
    for n in (1, 2):
        assert [r.seq async for r in store.read(f"s{n}")] == [1]
    assert store._sessions["s0"].packed is not packed
    assert (await store.inbox("s0")).version == 1


async def test_what_cannot_be_packed_stays_as_it_is(
    store: MemoryRunStore, lease: Lease
) -> None:
    odd = StateChanged("k", {1, 2})
    await store.append(lease, [odd], expected_seq=1)
    await store.release(lease)
    for n in range(5):
        await store.create(SessionHeader(f"s{n}"))
    assert [r.record async for r in store.read(S, 1)] == [odd]


async def test_a_read_under_way_outlives_the_packing(store: MemoryRunStore) -> None:
    await store.create(SessionHeader(S))
    reading = store.read(S)
    for n in range(5):
        await store.create(SessionHeader(f"s{n}"))
    assert store._sessions[S].batches is None
    assert [r.seq async for r in reading] == [1]


async def test_a_packed_session_keeps_the_blobs_it_names(store: MemoryRunStore) -> None:
    ref = await store.put_blob(b"x")
    raw = {"kind": "future", "deep": [{"kind": "newblob", "hash": ref.hash}]}
    for name in ("s0", "s1", "s2", "s3"):
        await store.create(SessionHeader(name))
        lease = await store.acquire(name, "owner")
        await store.append(lease, [Unknown("future", raw)], expected_seq=1)
        await store.release(lease)
    for name in ("s0", "s3", "s1"):  # packed and not
        await store.delete(name)
        assert await store.get_blob(BlobRef(ref.hash, 1)) == b"x"
    await store.delete("s2")
    assert store._blobs == {}


# --- listing, waiting, listening -----------------------------------------------------


async def test_paging_on_from_a_session_that_is_gone_is_an_error(
    store: MemoryRunStore,
) -> None:
    with pytest.raises(SessionNotFound):
        await store.sessions(SessionQuery(before="gone"))


async def test_who_waits_for_a_deleted_session_is_told(store: MemoryRunStore) -> None:
    await store.create(SessionHeader(S))
    told = []

    async def wait() -> None:
        with pytest.raises(SessionNotFound):
            await store.wait(S, 1)
        told.append(True)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await store.delete(S)
    assert told == [True]


async def test_a_cancelled_wait_leaves_nothing_behind(
    store: MemoryRunStore, lease: Lease
) -> None:
    with anyio.move_on_after(0.01):
        await store.wait(S, 1)
    assert store._sessions[S].waiters == ()


async def test_a_failing_listener_is_logged_and_the_receipt_goes_out(
    store: MemoryRunStore, lease: Lease, caplog: pytest.LogCaptureFixture
) -> None:
    async def listener(version: int) -> None:
        raise RuntimeError("deaf")

    with caplog.at_level(logging.ERROR), store.on_accept(S, listener):
        receipt = await store.accept(S, text_input("i"))
    assert receipt.position == 1
    assert "listener of accept failed" in caplog.text


async def test_a_repetition_tells_the_listener_too(
    store: MemoryRunStore, lease: Lease
) -> None:
    heard = []

    async def listener(version: int) -> None:
        heard.append(version)

    await store.accept(S, text_input("i"))
    with store.on_accept(S, listener):
        await store.accept(S, text_input("i"))
    assert heard == [1]


# --- threads -------------------------------------------------------------------------


async def test_a_wait_is_ended_by_an_append_in_another_threads_loop(
    store: MemoryRunStore, lease: Lease, anyio_backend_name: str
) -> None:
    async def append() -> None:
        await store.append(lease, [StateChanged("k")], expected_seq=1)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(store.wait, S, 1)
            await anyio.wait_all_tasks_blocked()
            await anyio.to_thread.run_sync(anyio.run, append)


def test_waking_a_loop_that_has_ended_is_harmless() -> None:
    store = MemoryRunStore()
    wakers: list[Callable[[], None]] = []

    async def leave_a_waker_behind() -> None:
        await store.create(SessionHeader(S))
        with anyio.move_on_after(0.01):
            async with anyio.create_task_group() as group:
                group.start_soon(store.wait, S, 1)
                await anyio.wait_all_tasks_blocked()
                wakers.extend(store._sessions[S].waiters)

    for backend in ("asyncio", "trio"):
        thread = threading.Thread(
            target=anyio.run, args=(leave_a_waker_behind,), kwargs={"backend": backend}
        )
        thread.start()
        thread.join()
        store = MemoryRunStore()
    assert len(wakers) == 2
    for wake in wakers:
        wake()


def test_many_threads_share_one_store() -> None:
    class Loud(threading.Thread):
        error: BaseException | None = None

        @override
        def run(self) -> None:
            try:
                anyio.run(work, self.name)
            except BaseException as error:  # noqa: BLE001 - shown by the main thread
                self.error = error

    store = MemoryRunStore(keep=1)

    async def work(name: str) -> None:
        await store.create(SessionHeader(name))
        for n in range(30):
            await store.accept(name, Cancel(f"c{n}"))
            lease = await store.acquire(name, name)
            await store.append(lease, [StateChanged("k", n)], expected_seq=n + 1)
            await store.release(lease)
        values = [r.record async for r in store.read(name, 1)]
        assert values == [StateChanged("k", n) for n in range(30)]

    threads = [Loud(name=f"t{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [t.error for t in threads] == [None] * 4
    assert len(store._sessions) == 4
