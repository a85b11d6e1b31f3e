"""Where a fault strikes: `before:append#3`, `after:tool.intent`, `mid:append#2`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from typing_extensions import override

from agentcore.errors import ConfigError

When = Literal["before", "mid", "after"]

WRITES: Final = frozenset(
    {
        "create",
        "accept",
        "acquire",
        "renew",
        "append",
        "release",
        "put_blob",
        "delete",
        "save_snapshot",
    }
)
READS: Final = frozenset({"inbox", "read", "get_blob", "sessions", "load_snapshot"})
ANY_WRITE: Final = "write"

_PLACE: Final = re.compile(r"(before|mid|after):([a-z_.]+)(?:#([1-9][0-9]*))?")


class Place(NamedTuple):
    """One moment in the life of a store's handle."""

    when: When
    what: str
    """A method of the store, `write` for any that writes, or a kind of record."""
    number: int

    @override
    def __str__(self) -> str:
        return f"{self.when}:{self.what}#{self.number}"


def place_of(text: str) -> Place:
    """Read a place.

    Raises:
        ConfigError: it is none; the message says what one looks like.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"{text!r} is no place for a fault: write 'before:append#3', "
            "'after:tool.intent#1', 'before:write#7' …"
        )
    when, what, number = found.groups()
    known = what in WRITES or what in READS or what == ANY_WRITE or "." in what
    if not known:
        names = ", ".join(sorted(WRITES | READS))
        raise ConfigError(
            f"{text!r}: {what!r} is neither 'write', nor a kind of record such as "
            f"'tool.intent', nor one of {names}"
        )
    if when == "mid" and "." not in what and what != "append":
        raise ConfigError(f"{text!r}: only an append can be torn")
    return Place(cast("When", when), what, int(number or 1))


class Counts:
    """What a handle has written so far; a call that was refused does not count."""

    def __init__(self) -> None:
        self._done: Counter[str] = Counter()

    def holds(self, place: Place, method: str, records: Sequence[Any]) -> bool:
        """Whether a call that is not counted yet is, or holds, the one of `place`."""
        done = self._done[place.what]
        return done < place.number <= done + _hits(place.what, method, records)

    def add(self, method: str, records: Sequence[Any]) -> None:
        """Count a call that was made."""
        self._done[method] += 1
        if method in WRITES:
            self._done[ANY_WRITE] += 1
        self._done.update(record.kind for record in records)


def _hits(what: str, method: str, records: Sequence[Any]) -> int:
    if "." in what:
        return sum(record.kind == what for record in records)
    return int(what == method or (what == ANY_WRITE and method in WRITES))
