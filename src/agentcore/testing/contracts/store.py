"""What every `RunStore` must keep to, as tests.

Beside `store`, a host may override `clock` (hand it to the store), `other_store`, a
second handle on the same storage, which the tests of two writers use, and
`crash_store`, which plays the kill of a process. What a store does not have or cannot
show (`Watch`, a crash) is skipped, and says so.
"""

# ruff: noqa: S101 - these are tests; pytest rewrites their asserts

from __future__ import annotations

import anyio
import pytest

from agentcore.errors import (
    InputConflict,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StoreError,
)
from agentcore.protocols.store import RunStore, Watch
from agentcore.testing.contracts._sample import RUN, text_input
from agentcore.testing.contracts._store_base import PATIENCE, START, S, journal, texts
from agentcore.testing.contracts._store_faults import FaultTests
from agentcore.testing.contracts._store_journal import JournalTests
from agentcore.testing.runtime import FakeClock
from agentcore.types.content import BlobRef, ImagePart, TextPart
from agentcore.types.inbox import Cancel, Input
from agentcore.types.records import SessionCreated, ToolOutcome
from agentcore.types.runs import Lease, Receipt, SessionHeader, SessionQuery


class RunStoreContract(FaultTests, JournalTests):
    """Subclass it as `Test…` with a fixture `store`; see the module."""

    # --- create ------------------------------------------------------------------

    async def test_creating_writes_the_header_as_record_one(
        self, store: RunStore
    ) -> None:
        """Epoch 0, and every field of the header."""
        await store.create(SessionHeader(S, "root", "parent", "call", extra={"x": 1}))
        (stored,) = await journal(store)
        assert (stored.seq, stored.epoch) == (1, 0)
        created = stored.record
        assert isinstance(created, SessionCreated)
        assert (created.session_id, created.root_session_id) == (S, "root")
        assert (created.parent_session_id, created.parent_call_id) == ("parent", "call")
        assert created.extra == {"x": 1}

    async def test_of_many_creators_one_succeeds(
        self, store: RunStore, other_store: RunStore
    ) -> None:
        """The others get `SessionExists` and can read."""
        outcomes = []

        async def create(handle: RunStore) -> None:
            try:
                await handle.create(SessionHeader(S))
                outcomes.append("created")
            except SessionExists:
                outcomes.append("exists")

        async with anyio.create_task_group() as group:
            for handle in (store, other_store) * 4:
                group.start_soon(create, handle)
        assert sorted(outcomes) == ["created"] + ["exists"] * 7
        assert len(await journal(store)) == 1

    async def test_an_unknown_session_is_not_found(self, store: RunStore) -> None:
        """By whatever door."""
        with pytest.raises(SessionNotFound):
            await store.accept(S, text_input("i"))
        with pytest.raises(SessionNotFound):
            await store.acquire(S, "owner")
        with pytest.raises(SessionNotFound):
            await store.delete(S)
        with pytest.raises(SessionNotFound):
            await journal(store)

    # --- accept and inbox --------------------------------------------------------

    async def test_items_stand_in_the_inbox_in_order(
        self, store: RunStore, lease: Lease
    ) -> None:
        """Positions count from 1, and a page starts after any of them."""
        items: list[Input | Cancel] = [text_input("a"), Cancel("b"), text_input("c")]
        receipts = [await store.accept(S, item) for item in items]
        assert receipts == [
            Receipt(item.id, i) for i, item in enumerate(items, start=1)
        ]
        page = await store.inbox(S)
        assert page.version == 3
        assert list(page.items) == list(enumerate(items, start=1))
        page = await store.inbox(S, 2)
        assert (page.version, list(page.items)) == (3, [(3, items[2])])
        page = await store.inbox(S, 3)
        assert (page.version, list(page.items)) == (3, [])

    async def test_a_repeated_item_gives_its_first_receipt(
        self, store: RunStore, lease: Lease
    ) -> None:
        """Also from eight callers at once, also with another trace."""
        receipts: list[Receipt] = []

        async def accept(n: int) -> None:
            item = Input("i", (TextPart("hi"),), traceparent=f"trace-{n}")
            receipts.append(await store.accept(S, item))

        async with anyio.create_task_group() as group:
            for n in range(8):
                group.start_soon(accept, n)
        assert {(r.item_id, r.position) for r in receipts} == {("i", 1)}
        assert sorted(r.duplicate for r in receipts) == [False] + [True] * 7
        assert (await store.inbox(S)).version == 1

    async def test_an_id_used_with_other_content_conflicts(
        self, store: RunStore, lease: Lease
    ) -> None:
        """The first item stays; another kind of item is other content too."""
        await store.accept(S, text_input("i", "one"))
        with pytest.raises(InputConflict):
            await store.accept(S, text_input("i", "two"))
        with pytest.raises(InputConflict):
            await store.accept(S, Cancel("i"))
        page = await store.inbox(S)
        assert list(page.items) == [(1, text_input("i", "one"))]

    async def test_an_item_stays_idempotent_after_its_owner_is_gone(
        self, store: RunStore, lease: Lease
    ) -> None:
        """Ids are for ever."""
        first = await store.accept(S, text_input("i"))
        await store.append(lease, RUN, expected_seq=1, expected_inbox=1)
        await store.release(lease)
        again = await store.accept(S, text_input("i"))
        assert (again.position, again.duplicate) == (first.position, True)

    # --- blobs -------------------------------------------------------------------

    async def test_equal_bytes_are_one_blob(self, store: RunStore) -> None:
        """Named by content; the media type belongs to the reference."""
        first = await store.put_blob(b"\x00data", media_type="image/png")
        second = await store.put_blob(b"\x00data", media_type="image/png")
        assert first == second
        assert (first.size, first.media_type) == (5, "image/png")
        other = await store.put_blob(b"other")
        assert other.hash != first.hash
        assert await store.get_blob(first) == b"\x00data"
        assert await store.get_blob(other) == b"other"

    async def test_a_blob_nobody_put_is_an_error(self, store: RunStore) -> None:
        """Not empty bytes."""
        with pytest.raises(StoreError):
            await store.get_blob(BlobRef("0" * 32, 1))

    # --- sessions and delete -----------------------------------------------------

    async def test_sessions_are_listed_newest_first_in_pages(
        self, store: RunStore, clock: FakeClock
    ) -> None:
        """Paging shows every session once."""
        for n in range(5):
            clock.set_wall(START + n)
            await store.create(SessionHeader(f"s{n}"))
        seen: list[str] = []
        while page := await store.sessions(
            SessionQuery(limit=2, before=seen[-1] if seen else None)
        ):
            assert len(page) <= 2
            seen += [info.session_id for info in page]
        assert seen == ["s4", "s3", "s2", "s1", "s0"]

    async def test_a_query_narrows_the_listing(self, store: RunStore) -> None:
        """By prefix, by parent, to roots."""
        await store.create(SessionHeader("a1"))
        await store.create(SessionHeader("a2", "a1", "a1", "call"))
        await store.create(SessionHeader("b1"))

        async def ids(query: SessionQuery) -> set[str]:
            return {info.session_id for info in await store.sessions(query)}

        assert await ids(SessionQuery(prefix="a")) == {"a1", "a2"}
        assert await ids(SessionQuery(parent_session_id="a1")) == {"a2"}
        assert await ids(SessionQuery(roots_only=True)) == {"a1", "b1"}
        assert await ids(SessionQuery(prefix="zz")) == set()

    async def test_a_line_of_the_listing_tells_what_is_there(
        self, store: RunStore, clock: FakeClock, lease: Lease
    ) -> None:
        """Number of records, and when it was created and written last."""
        clock.set_wall(START + 7)
        await store.append(lease, texts("a", "b"), expected_seq=1)
        (info,) = await store.sessions(SessionQuery())
        assert (info.session_id, info.records) == (S, 3)
        assert (info.created_at, info.updated_at) == (START, START + 7)

    async def test_an_owned_session_is_not_deleted(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """Released, it is, and its id is free again."""
        with pytest.raises(SessionBusy):
            await other_store.delete(S)
        await store.release(lease)
        await other_store.delete(S)
        assert not await store.sessions(SessionQuery())
        with pytest.raises(SessionNotFound):
            await store.acquire(S, "owner")
        await store.create(SessionHeader(S))
        assert len(await journal(store)) == 1

    async def test_deleting_frees_the_blobs_nothing_else_names(
        self, store: RunStore, lease: Lease
    ) -> None:
        """A blob another session names stays."""
        mine = await store.put_blob(b"mine")
        ours = await store.put_blob(b"ours")
        asked = await store.put_blob(b"asked")
        image = ImagePart("image/png", blob=ours)
        both = ToolOutcome("call-1", "ok", content=(image,), full=mine)
        await store.append(lease, [both], expected_seq=1)
        await store.accept(S, Input("i", (ImagePart("image/png", blob=asked),)))
        await store.release(lease)
        await store.create(SessionHeader("session-2"))
        second = await store.acquire("session-2", "owner")
        one = ToolOutcome("call-1", "ok", content=(image,))
        await store.append(second, [one], expected_seq=1)

        await store.delete(S)

        assert await store.get_blob(ours) == b"ours"
        for gone in (mine, asked):
            with pytest.raises(StoreError):
                await store.get_blob(gone)

    # --- watching ----------------------------------------------------------------

    async def test_a_wait_ends_with_the_record_it_waits_for(
        self, store: RunStore, other_store: RunStore, lease: Lease
    ) -> None:
        """At once where it is there already; otherwise when it is written."""
        if not isinstance(other_store, Watch):
            pytest.skip("this store is polled")
        with anyio.fail_after(PATIENCE):
            await other_store.wait(S, 0)
            async with anyio.create_task_group() as group:
                group.start_soon(other_store.wait, S, 2)
                for seq in (1, 2):
                    await anyio.wait_all_tasks_blocked()
                    assert group.cancel_scope.cancel_called is False
                    await store.append(lease, texts("a"), expected_seq=seq)
        assert len(await journal(store)) == 3

    async def test_a_listener_is_awaited_in_every_accept_of_its_session(
        self, store: RunStore, lease: Lease
    ) -> None:
        """After the item is durable, and no longer once the listener left."""
        if not isinstance(store, Watch):
            pytest.skip("this store is polled")
        await store.create(SessionHeader("session-2"))
        heard = []

        async def listener(version: int) -> None:
            heard.append((version, (await store.inbox(S)).version))

        with store.on_accept(S, listener):
            await store.accept(S, text_input("a"))
            await store.accept("session-2", text_input("b"))
            await store.accept(S, text_input("c"))
        await store.accept(S, text_input("d"))
        assert heard == [(1, 1), (2, 2)]
