"""Racing writers, calls whose end nobody knows, and a crash at every write."""

# ruff: noqa: S101 - these are tests; pytest rewrites their asserts

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest

from agentcore.errors import LeaseLost, SequenceConflict, StoreFailed
from agentcore.protocols.store import Appended, RunStore
from agentcore.testing._fault import Crashed, Torn, crashes, fails
from agentcore.testing.contracts._sample import text_input
from agentcore.testing.contracts._store_base import (
    PATIENCE,
    S,
    StoreFixtures,
    journal,
    texts,
)
from agentcore.testing.faults import FaultyStore
from agentcore.types.records import Record, StateChanged, StoredRecord
from agentcore.types.runs import Lease, SessionHeader

ROUNDS = 8
WHEN = pytest.mark.parametrize("when", ["before", "after"])
CrashStore = Callable[[RunStore], Awaitable[RunStore]]


class FaultTests(StoreFixtures):
    """What still holds when something goes wrong."""

    @pytest.fixture
    def crash_store(self) -> CrashStore | None:
        """What a kill of the process does to a handle, as far as a test can play it.

        An async function: it gets the handle, lets go of everything the system would
        take from a dead process (locks, leases, what was not written yet), without a
        clean close, and returns a new handle on the storage. Without it, the tests of
        crashes are skipped.
        """
        return None

    # --- two writers -------------------------------------------------------------

    async def test_of_two_racing_appends_one_is_written(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """The other gets `SequenceConflict` or `LeaseLost`; nothing is mixed."""
        won: list[Sequence[Record]] = []
        lost: list[Exception] = []

        async def write(handle: RunStore, name: str, seq: int) -> None:
            records = texts(f"{name} 1", f"{name} 2")
            try:
                appended = await handle.append(lease, records, expected_seq=seq)
            except (SequenceConflict, LeaseLost) as error:
                lost.append(error)
            else:
                assert appended == Appended(seq + 2, 0)
                won.append(records)

        for number in range(ROUNDS):
            seq = 1 + 2 * number
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    for handle, name in ((store, "a"), (other_store, "b")):
                        group.start_soon(write, handle, f"{name}{number}", seq)
            assert (len(won), len(lost)) == (number + 1, number + 1)
        # As if the winners alone had written, one after the other.
        stored = await journal(store, 1)
        assert [s.record for s in stored] == [x for records in won for x in records]
        assert [s.seq for s in stored] == list(range(2, 2 * ROUNDS + 2))
        assert {s.epoch for s in stored} == {lease.epoch}

    async def test_what_many_accept_at_once_is_all_there(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """Each has the position its receipt says, and no position is left out."""
        given: dict[int, str] = {}

        async def accept(handle: RunStore, item_id: str) -> None:
            receipt = await handle.accept(S, text_input(item_id))
            assert not receipt.duplicate
            given[receipt.position] = item_id

        async with anyio.create_task_group() as group:
            for n in range(8):
                group.start_soon(accept, (store, other_store)[n % 2], f"i{n}")
        page = await store.inbox(S)
        assert page.version == 8
        assert [(position, item.id) for position, item in page.items] == sorted(  # type: ignore[union-attr]  # all are inputs
            given.items()
        )

    # --- nobody knows ------------------------------------------------------------

    @WHEN
    async def test_an_accept_that_failed_can_be_made_again(
        self, store: RunStore, lease: Lease, when: str
    ) -> None:
        """Whether or not it was durable; the same call again is the same item."""
        faulty = FaultyStore(store, fails(f"{when}:accept"))
        with pytest.raises(StoreFailed):
            await faulty.accept(S, text_input("i"))
        receipt = await faulty.accept(S, text_input("i"))
        assert (receipt.position, receipt.duplicate) == (1, when == "after")
        page = await store.inbox(S)
        assert list(page.items) == [(1, text_input("i"))]

    @WHEN
    async def test_an_append_that_failed_is_there_whole_or_not_at_all(
        self, store: RunStore, lease: Lease, when: str
    ) -> None:
        """And the next one is told so by its `expected_seq`."""
        faulty = FaultyStore(store, fails(f"{when}:append"))
        with pytest.raises(StoreFailed):
            await faulty.append(lease, texts("a", "b"), expected_seq=1)
        written = len(await journal(store))
        assert written == (3 if when == "after" else 1)
        wrong = 1 if when == "after" else 3
        with pytest.raises(SequenceConflict):
            await store.append(lease, texts("c"), expected_seq=wrong)
        appended = await store.append(lease, texts("c"), expected_seq=written)
        assert appended.seq == written + 1

    # --- a crash -----------------------------------------------------------------

    @WHEN
    @pytest.mark.parametrize("number", range(1, 8))
    async def test_a_crash_at_any_write_loses_nothing_that_was_acknowledged(
        self, store: RunStore, crash_store: CrashStore | None, number: int, when: str
    ) -> None:
        """The next owner takes over at once, finds it all in order, and goes on."""
        if crash_store is None:
            pytest.skip("no fixture `crash_store`: what a kill does cannot be played")
        faulty = FaultyStore(store, crashes(f"{when}:write#{number}"))
        told = _Told()
        with pytest.raises(Crashed):
            await told.work(faulty)
        faulty.assert_fired()
        again = await crash_store(store)
        if not told.created and when == "before":
            await again.create(SessionHeader(S))
        lease = await again.acquire(S, "owner-2")
        found = await journal(again)
        _check_prefix(found, told.written)
        page = await again.inbox(S)
        assert [item for _, item in page.items][: len(told.accepted)] == [
            text_input(item_id) for item_id in told.accepted
        ]
        assert lease.epoch > max(stored.epoch for stored in found)
        await again.append(lease, texts("next"), expected_seq=len(found))
        _check_prefix(await journal(again), [s.record for s in found[1:]])

    async def test_an_append_cut_in_two_by_a_crash_is_not_there(
        self, store: RunStore, crash_store: CrashStore | None
    ) -> None:
        """Not for the next owner, and not for the one after it either."""
        if crash_store is None:
            pytest.skip("no fixture `crash_store`: what a kill does cannot be played")
        if not isinstance(store, Torn):
            pytest.skip("this store has no `append_torn`: it cannot be cut in two")
        told = _Told()
        with pytest.raises(Crashed):
            await told.work(FaultyStore(store, crashes("mid:append#2")))
        again = await crash_store(store)
        lease = await again.acquire(S, "owner-2")
        found = await journal(again)
        assert [stored.record for stored in found[1:]] == told.written
        await again.append(lease, texts("next"), expected_seq=len(found))
        again = await crash_store(again)
        records = [stored.record for stored in (await journal(again))[1:]]
        assert records == [*told.written, *texts("next")]

    async def test_a_dead_owner_does_not_come_back(
        self, store: RunStore, crash_store: CrashStore | None, lease: Lease
    ) -> None:
        """Its lease is worth nothing once another owner has taken over."""
        if crash_store is None:
            pytest.skip("no fixture `crash_store`: what a kill does cannot be played")
        again = await crash_store(store)
        second = await again.acquire(S, "owner-2")
        assert second.epoch == lease.epoch + 1
        with pytest.raises(LeaseLost):
            await again.append(lease, texts("stale"), expected_seq=1)
        await again.append(second, texts("mine"), expected_seq=1)
        assert len(await journal(again)) == 2


class _Told:
    """A process's work, and what it was told is durable."""

    def __init__(self) -> None:
        self.created = False
        self.accepted: list[str] = []
        self.written: list[Record] = []

    async def work(self, store: RunStore) -> None:
        await store.create(SessionHeader(S))
        self.created = True
        lease = await store.acquire(S, "owner-1")
        for number in range(3):
            await store.accept(S, text_input(f"i{number}"))
            self.accepted.append(f"i{number}")
            records = texts(f"a{number}", f"b{number}")
            seq = 1 + len(self.written)
            await store.append(lease, records, expected_seq=seq)
            self.written += records


def _check_prefix(found: list[StoredRecord], written: Sequence[Record]) -> None:
    """All that was acknowledged, then at most one whole append more, without a gap."""
    assert [s.seq for s in found] == list(range(1, len(found) + 1))
    records = [s.record for s in found[1:]]
    assert records[: len(written)] == list(written)
    rest = records[len(written) :]
    values = [r.value for r in rest if isinstance(r, StateChanged)]
    whole = not values or values == ["next"] or len(values) == 2
    assert whole, f"half an append is there: {values}"
