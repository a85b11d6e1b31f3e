"""The half of a `FaultyStore` that is a process: it lives, is stopped, and dies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio

from agentcore.testing._fault import Crashed, Fault, strike
from agentcore.testing._places import Counts, When
from agentcore.types.records import Record
from agentcore.types.runs import Lease

T = TypeVar("T")

Pause = Callable[[str], Awaitable[object]]
Abandon = Callable[[Lease], object]


class Process:
    """What every call of a `FaultyStore` goes through; see there."""

    def __init__(
        self, faults: Sequence[Fault], pause: Pause | None, abandon: Abandon | None
    ) -> None:
        self.crashed: bool = False
        """The process is dead: every call raises `Crashed`."""
        self._left = list(faults)
        self._pause = pause
        self._abandon = abandon
        self._counts = Counts()
        self._leases: dict[str, Lease] = {}
        self._scopes: list[anyio.CancelScope] = []

    def _may_wait(self) -> bool:
        return self._pause is not None or bool(self._left)

    # --- the process ---------------------------------------------------------------

    def crash(self) -> None:
        """Die now: end every `process()` block, give up the leases, refuse all calls.

        Tasks of the process outside of such a block go on until they use the store.
        """
        if self.crashed:
            return
        self.crashed = True
        leases, self._leases = self._leases, {}
        if self._abandon is not None:
            for lease in leases.values():
                self._abandon(lease)
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def process(self) -> Iterator[None]:
        """What runs in here is the process of this handle: a crash ends the block.

        The block ends quietly; `crashed` tells. What it should have done is undone no
        more than by a real crash.
        """
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                yield
            except Crashed:
                self.crash()
            except BaseExceptionGroup as errors:
                crash, rest = errors.split(Crashed)
                if crash is not None:
                    self.crash()
                if rest is not None:  # errors of others, or mere cancellations by us
                    raise rest from None
            finally:
                self._scopes.remove(scope)

    def assert_fired(self) -> None:
        """Fail if a fault never struck.

        Raises:
            AssertionError: the message lists them.
        """
        if self._left:
            names = ", ".join(map(str, self._left))
            raise AssertionError(f"these faults never struck: {names}")

    def _alive(self) -> None:
        if self.crashed:
            raise Crashed("this process has crashed: it does nothing more")

    # --- what every call goes through ------------------------------------------------

    async def _call(
        self,
        method: str,
        call: Callable[[], Awaitable[T]],
        records: Sequence[Record] = (),
        torn: Callable[[], Awaitable[object]] | None = None,
    ) -> T:
        self._alive()
        try:
            await self._wait(f"before:{method}")
            await self._strike(self._due("before", method, records))
            middle = self._due("mid", method, records)
            if middle and torn is not None:
                await torn()
            await self._strike(middle)
            done = await call()
            after = self._due("after", method, records)
            self._counts.add(method, records)
            self._note(method, done)
            # Whatever it gave, a process that died meanwhile never learns of it.
            self._alive()
            await self._strike(after)
            await self._wait(f"after:{method}")
        except Crashed:
            self.crash()
            raise
        return done

    async def _wait(self, at: str) -> None:
        if self._pause is not None:
            await self._pause(at)
            self._alive()

    def _due(self, when: When, method: str, records: Sequence[Record]) -> list[Fault]:
        return [
            fault
            for fault in self._left
            if fault.place.when == when
            and self._counts.holds(fault.place, method, records)
        ]

    async def _strike(self, due: list[Fault]) -> None:
        for fault in due:
            self._left.remove(fault)
            await strike(fault)
            self._alive()

    def _note(self, method: str, done: Any) -> None:
        if method == "acquire":
            self._leases[done.session_id] = done
            if self.crashed and self._abandon is not None:
                self._abandon(done)
