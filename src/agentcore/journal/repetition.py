"""Is the model going in circles? A fold over call outcomes (run semantics 2.12)."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

NUDGE_AT: Final = 3
"""Equal calls in a row after which the model is told."""
STUCK_AT: Final = 5
"""Equal calls in a row that end the run."""
CYCLE_REPEATS: Final = 4
"""Times a cycle of two or three calls must be seen to end the run."""

Key: TypeAlias = tuple[str, str, Any]
"""Tool name, hash of the arguments, and the content of the result."""


class Repetition:
    """Counts equal outcomes in a row and cycles of length two and three.

    A differing result is progress and starts the count anew, so polling a changing
    value is never taken for being stuck.
    """

    __slots__ = ("_last", "_second", "_third", "equal", "triples", "twins")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """New user input: whatever was repeated before no longer counts."""
        self._last: Key | None = None
        self._second: Key | None = None
        self._third: Key | None = None
        self.equal: int = 0
        self.twins: int = 0
        self.triples: int = 0

    def add(self, key: Key) -> None:
        """Take the outcome of the next call."""
        self.equal = self.equal + 1 if self._last == key else 1
        self.twins = self.twins + 1 if self._second == key else 0
        self.triples = self.triples + 1 if self._third == key else 0
        self._third, self._second, self._last = self._second, self._last, key

    @property
    def verdict(self) -> Literal["repeat", "cycle"] | None:
        """Why the run is stuck, or `None`."""
        if self.equal >= STUCK_AT:
            return "repeat"
        if self.equal > 1:
            return None  # equal calls also look like a cycle; they have their own bound
        if self.twins >= 2 * (CYCLE_REPEATS - 1):
            return "cycle"
        return "cycle" if self.triples >= 3 * (CYCLE_REPEATS - 1) else None
