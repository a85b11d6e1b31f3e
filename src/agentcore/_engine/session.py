"""Opens a session for one owner: lease, fold, projection, the owner's own record."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from agentcore._engine.attachments import stow
from agentcore._engine.cancellation import endure
from agentcore._engine.deps import Setup
from agentcore._engine.feed import Feed
from agentcore._engine.writer import Writer
from agentcore.errors import InputConflict, SessionExists, SessionNotFound
from agentcore.journal.apply import apply, fold
from agentcore.journal.state import SessionState
from agentcore.protocols.store import RunStore
from agentcore.types import inbox as i
from agentcore.types import records as r
from agentcore.types.runs import Lease, Receipt, SessionHeader


async def accept_input(
    store: RunStore, session_id: str, item: i.Input, *, fresh: bool = False
) -> Receipt:
    """Take an input in durably; the first input of a session creates it.

    `fresh`: the id was minted just now, so the session cannot be there yet.
    """
    item = await stow(store, item)
    if not fresh:
        with suppress(SessionNotFound):
            return await store.accept(session_id, item)
    with suppress(SessionExists):  # created in between by somebody: just as good
        await store.create(SessionHeader(session_id))
    return await store.accept(session_id, item)


async def cancel_open_run(store: RunStore, session_id: str, item: i.Cancel) -> Receipt:
    """Ask for the open run to be stopped, unless it has been asked for, or has ended.

    Raises:
        SessionNotFound: there is no such session.
    """
    state, mail = await _look(store, session_id)
    run = state.open_run
    earlier = run.cancel if run is not None else None
    if earlier is not None:
        return Receipt(earlier.cancel_id, earlier.position, duplicate=True)
    if run is None and not state.pending and not mail:
        return Receipt(item.id, 0, note="already_ended")
    return await store.accept(session_id, item)


async def withdraw_input(store: RunStore, session_id: str, item: i.Withdraw) -> Receipt:
    """Take back an input that has not been placed.

    Raises:
        SessionNotFound: there is no such session.
        InputConflict: it does not wait.
    """
    state, mail = await _look(store, session_id)
    input_id = item.input_id
    waits = input_id in state.pending or input_id in state.parked
    if not waits and not any(type(m) is i.Input and m.id == input_id for m in mail):
        raise InputConflict(
            f"input {input_id!r} does not wait in session {session_id!r}: "
            "it was placed, or withdrawn, or never accepted"
        )
    return await store.accept(session_id, item)


async def _look(
    store: RunStore, session_id: str
) -> tuple[SessionState, list[i.InboxItem]]:
    """A session as it stands, without owning it, and what is still to be folded in."""
    state = fold(session_id, [stored async for stored in store.read(session_id)])
    page = await store.inbox(session_id, state.inbox_seen)
    return state, [item for _, item in page.items]


async def open_session(
    setup: Setup, store: RunStore, session_id: str, feed: Feed, *, fresh: bool = False
) -> Writer:
    """Become the owner and fold the journal.

    `fresh`: it holds nothing but its creation, so there is nothing to read.

    Raises:
        SessionBusy: another owner holds the session.
        CorruptRecord: the journal is damaged; nothing was written.
    """
    lease = await _acquire(store, session_id, setup.owner)
    try:
        state = SessionState(session_id)
        projector = setup.projector()
        if fresh:
            state.seq = 1
        else:
            async for stored in store.read(session_id):
                apply(state, stored.record)
                projector.add(stored.record)
    except BaseException:
        await endure(partial(store.release, lease))
        raise
    state.epoch = lease.epoch
    writer = Writer(store, lease, state, projector, feed)
    taken_over = state.owned or lease.took_over
    writer.stage(r.OwnerAcquired(setup.owner, "takeover" if taken_over else "fresh"))
    return writer


async def _acquire(store: RunStore, session_id: str, owner: str) -> Lease:
    """Take the lease; a caller who is cancelled meanwhile gives it back."""
    if getattr(store, "commits_inline", False):
        return await store.acquire(session_id, owner)
    done = await endure(partial(store.acquire, session_id, owner))
    lease: Lease = done.value
    if done.cancelled is not None:
        await endure(partial(store.release, lease))
        raise done.cancelled
    return lease
