"""Who may write, and that what was written is what is read."""

# ruff: noqa: S101 - these are tests; pytest rewrites their asserts

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio
import pytest

from agentcore.errors import InboxChanged, LeaseLost, SequenceConflict, SessionBusy
from agentcore.protocols.store import Appended, AppendsNow, RunStore
from agentcore.testing.contracts._sample import FROM_THE_FUTURE, RUN, text_input
from agentcore.testing.contracts._store_base import S, StoreFixtures, journal, texts
from agentcore.testing.runtime import FakeClock
from agentcore.types.records import Record
from agentcore.types.runs import Lease, SessionHeader


async def append_at_once(
    store: RunStore, lease: Lease, records: Sequence[Record], **expected: Any
) -> Appended:
    """As the engine appends; whoever has to wait must not have written."""
    if not isinstance(store, AppendsNow):
        pytest.skip("the store has no `append_now` (AppendsNow)")
    before = await journal(store)
    done = store.append_now(lease, records, **expected)
    if done is None:
        assert await journal(store) == before
        done = await store.append(lease, records, **expected)
    return done


class JournalTests(StoreFixtures):
    """Ownership, append and read."""

    # --- ownership ---------------------------------------------------------------

    async def test_a_second_owner_is_refused(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """With the name of the first; the same name is no exception."""
        for owner in ("owner-2", "owner-1"):
            with pytest.raises(SessionBusy) as caught:
                await other_store.acquire(S, owner)
            assert caught.value.owner == "owner-1"

    async def test_every_acquisition_raises_the_epoch(
        self, store: RunStore, lease: Lease
    ) -> None:
        """By one; a clean release is no takeover."""
        assert (lease.epoch, lease.took_over) == (1, False)
        await store.release(lease)
        second = await store.acquire(S, "owner-2")
        assert (second.epoch, second.owner, second.took_over) == (2, "owner-2", False)

    async def test_a_stale_lease_writes_nothing(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """It cannot append, renew, or release what another owner holds."""
        await store.release(lease)
        with pytest.raises(LeaseLost):
            await store.append(lease, texts("released"), expected_seq=1)
        second = await other_store.acquire(S, "owner-2")
        with pytest.raises(LeaseLost):
            await store.append(lease, texts("stale"), expected_seq=1)
        with pytest.raises(LeaseLost):
            await store.renew(lease)
        await store.release(lease)
        await other_store.renew(second)
        await other_store.append(second, texts("mine"), expected_seq=1)
        assert [r.epoch for r in await journal(store)] == [0, 2]

    async def test_of_many_acquirers_one_succeeds(
        self, store: RunStore, other_store: RunStore
    ) -> None:
        """Ownership is decided once."""
        await store.create(SessionHeader(S))
        won: list[Lease] = []

        async def acquire(handle: RunStore, owner: str) -> None:
            with suppress(SessionBusy):
                won.append(await handle.acquire(S, owner))

        async with anyio.create_task_group() as group:
            for n in range(8):
                group.start_soon(acquire, (store, other_store)[n % 2], f"o{n}")
        assert [lease.epoch for lease in won] == [1]

    # --- append and read ---------------------------------------------------------

    async def test_what_was_appended_is_read(
        self, store: RunStore, clock: FakeClock, lease: Lease
    ) -> None:
        """Equal records, gapless numbers, the owner's epoch, the clock's time."""
        appended = await store.append(lease, RUN, expected_seq=1)
        assert appended == (1 + len(RUN), 0)
        stored = (await journal(store))[1:]
        assert [s.record for s in stored] == list(RUN)
        assert [s.seq for s in stored] == list(range(2, len(RUN) + 2))
        assert {(s.epoch, s.at) for s in stored} == {(1, clock.now())}

    async def test_reading_twice_from_anywhere_gives_the_same(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """Any suffix, also across several appends and past the end."""
        seq = 1
        for size in (1, 3, 2):
            records = texts(*map(str, range(size)))
            seq = (await store.append(lease, records, expected_seq=seq)).seq
        whole = await journal(store)
        assert len(whole) == seq == 7
        for after in range(9):
            assert await journal(store, after) == whole[after:]
            assert await journal(other_store, after) == whole[after:]

    async def test_an_append_at_the_wrong_place_writes_nothing(
        self, store: RunStore, lease: Lease
    ) -> None:
        """Neither before nor after the end of the journal."""
        await store.append(lease, texts("a"), expected_seq=1)
        for wrong in (0, 1, 3):
            with pytest.raises(SequenceConflict):
                await store.append(lease, texts("b", "c"), expected_seq=wrong)
        assert [r.seq for r in await journal(store)] == [1, 2]

    async def test_an_input_since_the_owner_looked_stops_the_append(
        self, store: RunStore, lease: Lease
    ) -> None:
        """Nothing is written; looking again lets it through."""
        await store.append(lease, texts("a"), expected_seq=1, expected_inbox=0)
        await store.accept(S, text_input("i"))
        with pytest.raises(InboxChanged):
            await store.append(lease, texts("b"), expected_seq=2, expected_inbox=0)
        assert len(await journal(store)) == 2
        version = (await store.inbox(S)).version
        appended = await store.append(
            lease, texts("b"), expected_seq=2, expected_inbox=version
        )
        assert appended == (3, 1)

    async def test_an_append_on_the_spot_writes_what_any_append_does(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """In turn with other appends, and seen by every handle."""
        done = await append_at_once(store, lease, texts("a"), expected_seq=1)
        assert done == (2, 0)
        await append_at_once(store, lease, texts("b", "c"), expected_seq=2)
        await store.append(lease, texts("d"), expected_seq=4)
        done = await append_at_once(store, lease, RUN, expected_seq=5, expected_inbox=0)
        assert done == (5 + len(RUN), 0)
        done = await append_at_once(store, lease, [], expected_seq=5 + len(RUN))
        assert done == (5 + len(RUN), 0)
        stored = (await journal(other_store))[1:]
        assert [s.record for s in stored] == [*texts("a", "b", "c", "d"), *RUN]
        assert [s.seq for s in stored] == list(range(2, 6 + len(RUN)))

    async def test_an_append_on_the_spot_is_refused_as_any_append_is(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """A wrong place, an input nobody looked at, a lease that is over."""
        for seq in (1, 2):  # the second time, the store knows the session
            await append_at_once(store, lease, texts("a"), expected_seq=seq)
        for wrong in (1, 2, 4):
            with pytest.raises(SequenceConflict):
                await append_at_once(store, lease, texts("b", "c"), expected_seq=wrong)
        await other_store.accept(S, text_input("i"))
        with pytest.raises(InboxChanged):
            await append_at_once(
                store, lease, texts("b"), expected_seq=3, expected_inbox=0
            )
        done = await append_at_once(store, lease, texts("b"), expected_seq=3)
        assert done == (4, 1)
        await store.release(lease)
        await other_store.acquire(S, "owner-2")
        with pytest.raises(LeaseLost):
            await append_at_once(store, lease, texts("c"), expected_seq=4)
        assert len(await journal(store)) == 4

    async def test_an_append_of_nothing_changes_nothing(
        self, store: RunStore, lease: Lease
    ) -> None:
        """It says where things stand."""
        assert await store.append(lease, [], expected_seq=1) == (1, 0)
        assert len(await journal(store)) == 1

    async def test_what_a_newer_version_wrote_survives(
        self, store: RunStore, lease: Lease
    ) -> None:
        """Unknown kinds, unknown fields, unknown parts inside known records."""
        await store.append(lease, FROM_THE_FUTURE, expected_seq=1)
        assert [s.record for s in await journal(store, 1)] == list(FROM_THE_FUTURE)

    async def test_a_clock_going_backwards_harms_nothing(
        self, store: RunStore, clock: FakeClock, lease: Lease
    ) -> None:
        """Order is by number; the lease stays; the time is what the clock said."""
        clock.set_wall(2_000.0)
        await store.append(lease, texts("a"), expected_seq=1)
        clock.set_wall(500.0)
        await store.renew(lease)
        await store.append(lease, texts("b"), expected_seq=2)
        stored = await journal(store)
        assert [s.seq for s in stored] == [1, 2, 3]
        assert [s.at for s in stored[1:]] == [2_000.0, 500.0]
