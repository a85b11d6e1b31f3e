"""The one way into the journal: stage records, then commit them in one append.

Staging folds a record into the state and the projection at once, so the next decision
sees it; committing makes everything staged durable, and only then is it shown to
anyone. Effects start after `commit`, never after `stage` (write order W1 to W9).
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any, Final

import anyio

from agentcore._base.describe import error_text
from agentcore._engine.cancellation import endure
from agentcore._engine.feed import Feed
from agentcore.errors import InboxChanged, StoreError, StoreFailed
from agentcore.journal.apply import CHANGES
from agentcore.journal.state import SessionState
from agentcore.protocols.context import Projector
from agentcore.protocols.store import Appended, RunStore
from agentcore.types.records import Record
from agentcore.types.runs import Lease


class _Nothing:
    """Awaited, it is done at once."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_NOTHING: Final = _Nothing()


def _append_now_of(store: RunStore) -> Any:
    """The store's `append_now`, unless `append` was changed without it.

    A wrapper that hands on attributes, or a subclass with an `append` of its own, is to
    see every append.
    """
    for cls in type(store).__mro__:
        if "append_now" in vars(cls):
            return getattr(store, "append_now", None)
        if "append" in vars(cls):
            return None
    return None


class Writer:
    """Owns the session's journal while the lease lasts."""

    __slots__ = (
        "_append_now",
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
        self._append_now = _append_now_of(store)
        """Writes at once, or says that it would have to wait; `None`: there is none."""
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
        if self._busy is None:
            if not self.staged:
                return _NOTHING
            # What does not suspend cannot be cut in two: no task, no lock, no shield.
            if self._append_now and self._append_at_once((), None) is not None:
                return _NOTHING
        if self.inline:
            return self._append((), None)
        return self._append_in_turn((), None)

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
        expected = self.inbox_seen
        if self._append_now and self._busy is None:
            done = self._append_at_once(records, expected)
            if done is not None:
                return done
        if self.inline:
            return await self._append(records, expected)
        return await self._append_in_turn(records, expected)

    def _append_at_once(
        self, tail: tuple[Record, ...], expected_inbox: int | None
    ) -> bool | None:
        """As `_append`; `None`: it would have to wait, and nothing was done."""
        records, staged = self._take(tail)
        try:
            done = self._append_now(
                self.lease,
                records,
                expected_seq=self.committed,
                expected_inbox=expected_inbox,
            )
        except Exception as error:  # noqa: BLE001 - see `_refused`
            return self._refused(error, staged)
        if done is None:
            self.staged = staged
            return None
        return self._written(done, records, tail)

    async def _append_in_turn(
        self, tail: tuple[Record, ...], expected_inbox: int | None
    ) -> bool:
        await self.turn()
        if not self.staged and not tail:
            return True
        self._busy = anyio.Event()
        try:
            done = await endure(partial(self._append, tail, expected_inbox))
        finally:
            self._busy.set()
            self._busy = None
        if done.cancelled is not None:
            raise done.cancelled
        return bool(done.value)

    async def _append(
        self, tail: tuple[Record, ...], expected_inbox: int | None
    ) -> bool:
        records, staged = self._take(tail)
        try:
            done = await self.store.append(
                self.lease,
                records,
                expected_seq=self.committed,
                expected_inbox=expected_inbox,
            )
        except Exception as error:  # noqa: BLE001 - see `_refused`
            return self._refused(error, staged)
        return self._written(done, records, tail)

    def _take(self, tail: tuple[Record, ...]) -> tuple[list[Record], list[Record]]:
        """What is to be written, and what of it had been staged."""
        if self.poisoned is not None:
            raise self.poisoned
        staged = self.staged
        self.staged = []
        return ([*staged, *tail] if tail else staged), staged

    def _refused(self, error: Exception, staged: list[Record]) -> bool:
        """Nothing was written, or nobody knows: then nothing more is (poisoned)."""
        if isinstance(error, InboxChanged):
            self.staged = [*staged, *self.staged]
            self.inbox_version += 1  # at least; the next append tells exactly
            return False
        if isinstance(error, StoreError):
            self.poisoned = error
            raise error
        # A store may raise what it likes; after it, nothing is certain any more.
        self.poisoned = StoreFailed(f"the store failed: {error_text(error)}")
        raise self.poisoned from error

    def _written(
        self, done: Appended, records: list[Record], tail: tuple[Record, ...]
    ) -> bool:
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
