"""What must hold in every journal, checked record by record (run semantics 2.3).

A checker of its own: it shares nothing with `apply`, so that a mistake there cannot
hide itself. It judges one journal from its beginning; what only several journals, a
clock or the budget's limits could show is not judged. A journal may end anywhere: what
is open at its end is no violation.

    seq, epoch      gapless numbers; I5: the epoch of the last owner
    I1, W4, W5      calls: planned, intent, exactly one outcome, in this order
    I2, 2.8         runs: one at a time; what `completed` and `cancelled` require
    I3, Q5, Q6      inputs: exactly one of pending, placed, parked, withdrawn
    I6              the totals of a run are the sum of what its records say
    W3              requests: reserved, intent, outcome, recorded, in this order
    W7              nothing starts after a cancel, or while the run is paused
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentcore.journal._book import Violation
from agentcore.journal._checks import Checker
from agentcore.types.records import StoredRecord


def check_journal(records: Sequence[StoredRecord]) -> list[Violation]:
    """Every violation of the rules above, in the order of the records."""
    checker = Checker()
    for stored in records:
        checker.take(stored)
    return checker.violations


def assert_valid(records: Iterable[StoredRecord]) -> None:
    """Fail a test if the journal breaks a rule.

    Raises:
        AssertionError: it does; the message lists all violations.
    """
    violations = check_journal(list(records))
    if violations:
        raise AssertionError("\n".join(map(str, violations)))


__all__ = ["Violation", "assert_valid", "check_journal"]
