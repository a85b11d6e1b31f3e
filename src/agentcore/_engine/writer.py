"""The one way into the journal: stage records, then commit them in one append.

Staging folds a record into the state and the projection at once, so the next decision
sees it; committing makes everything staged durable, and only then is it shown to
anyone. Effects start after `commit`, never after `stage` (write order W1 to W9).
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from functools import partial
from typing import Final

import anyio

from agentcore._base.describe import error_text
from agentcore._engine.cancellation import endure
from agentcore._engine.feed import Feed
from agentcore.errors import InboxChanged, StoreError, StoreFailed
from agentcore.journal.apply import CHANGES
from agentcore.journal.state import SessionState
from agentcore.protocols.context import Projector
from agentcore.protocols.store import RunStore
from agentcore.types.records import Record
from agentcore.types.runs import Lease


class _Nothing:
    """Awaited, it is done at once."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_NOTHING: Final = _Nothing()


class Writer:
    """Owns the session's journal while the lease lasts."""

    __slots__ = (
        "_busy",
        "_takes",
        "closed",
        "committed",
        "feed",
        "inbox_seen",
        "inbox_version",
        "inline",
        "kept",
        "lease",
        "poisoned",
        "projector",
        "staged",
        "state",
        "store",
    )

    def __init__(
        self,
        store: RunStore,
        lease: Lease,
        state: SessionState,
        projector: Projector,
        feed: Feed,
    ) -> None:
        self.store = store
        self.lease = lease
        self.state = state
        self.projector = projector
        self._takes = projector.takes
        self.feed = feed
        self.closed = False
        """The owner lets go: nobody else may stage any more."""
        self.staged: list[Record] = []
        self.committed = state.seq
        self.inbox_seen = state.inbox_seen
        """Position up to which the inbox has been folded in."""
        self.inbox_version = state.inbox_seen
        """Position up to which it is known to reach."""
        self.poisoned: BaseException | None = None
        # A store that never suspends needs neither a shield nor a lock.
        self.inline: bool = bool(getattr(store, "commits_inline", False))
        self.kept: bool = not getattr(store, "keeps_nothing", False)
        """Somebody can read the journal again."""
        self._busy: anyio.Event | None = None

    def stage(self, record: Record) -> None:
        """Fold a record in; it is committed with the next append."""
        self.staged.append(record)
        # `apply` written out: this runs seven times a step.
        kind = type(record)
        state = self.state
        state.seq += 1
        change = CHANGES.get(kind)
        if change is not None:
            change(state, record)
        if kind in self._takes:
            self.projector.add(record)

    def commit(self) -> Awaitable[object]:
        """Append what is staged: await it.

        Hands on an awaitable instead of wrapping it in one more; it runs twice a step.

        Raises:
            StoreError: nothing more may be written or started by this owner.
        """
        if not self.staged and self._busy is None:
            return _NOTHING
        if self.inline:
            return self._append_now((), None)
        return self._append((), None)

    @property
    def has_mail(self) -> bool:
        """Something arrived in the inbox that has not been folded in."""
        return self.inbox_version > self.inbox_seen

    async def turn(self) -> None:
        """Wait until no append is under way, so that a second task may stage."""
        while self._busy is not None:
            await self._busy.wait()

    async def finish(self, records: tuple[Record, ...]) -> bool:
        """Append what is staged and `records`, unless the inbox moved meanwhile.

        `records` are folded in only if they were written, which is what the return
        value tells (the conditional finish of the run semantics).
        """
        if self.inline:
            return await self._append_now(records, self.inbox_seen)
        return await self._append(records, self.inbox_seen)

    async def _append(
        self, tail: tuple[Record, ...], expected_inbox: int | None
    ) -> bool:
        await self.turn()
        if not self.staged and not tail:
            return True
        self._busy = anyio.Event()
        try:
            done = await endure(partial(self._append_now, tail, expected_inbox))
        finally:
            self._busy.set()
            self._busy = None
        if done.cancelled is not None:
            raise done.cancelled
        return bool(done.value)

    async def _append_now(
        self, tail: tuple[Record, ...], expected_inbox: int | None
    ) -> bool:
        if self.poisoned is not None:
            raise self.poisoned
        staged = self.staged
        self.staged = []
        records = [*staged, *tail] if tail else staged
        try:
            done = await self.store.append(
                self.lease,
                records,
                expected_seq=self.committed,
                expected_inbox=expected_inbox,
            )
        except InboxChanged:
            self.staged = [*staged, *self.staged]
            self.inbox_version += 1  # at least; the next append tells exactly
            return False
        except StoreError as error:
            self.poisoned = error
            raise
        except Exception as error:
            # A store may raise what it likes; after it, nothing is certain any more.
            self.poisoned = StoreFailed(f"the store failed: {error_text(error)}")
            raise self.poisoned from error
        first = self.committed + 1
        self.committed = done.seq
        # An accept during the append may have told of more than the append saw.
        self.inbox_version = max(self.inbox_version, done.inbox_version)
        if tail:
            for record in tail:
                self.stage(record)
            self.staged = []
        if self.feed.readers:
            self.feed.commit(first, records)
        return True
