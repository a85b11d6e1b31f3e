"""How an append is written: by the event loop's thread if that need not wait.

Most are one statement, which is a transaction by itself and cheaper than four. It can
say yes or no and nothing else, so it is tried only where this handle knows how the
session stood; a no goes to the transaction that says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentcore.protocols.store import Appended
from agentcore.stores.sqlite import _journal as journal
from agentcore.stores.sqlite._leases import Held
from agentcore.stores.sqlite._parts import Parts
from agentcore.stores.sqlite._writer import BUSY, Operation
from agentcore.types.records import Record
from agentcore.types.runs import Lease


async def append(
    parts: Parts,
    lease: Lease,
    records: Sequence[Record],
    at: float,
    expected: tuple[int, int | None],
) -> Appended:
    """Append, waiting where needed; raises what `journal.append` does."""
    held = parts.leases.of(lease)
    batch = journal.batch_of(records, at)
    operation = _operation(parts, held, batch, expected)
    done: Appended = await parts.write_held(lease, operation)
    parts.watching.wake(lease.session_id)
    return done


def append_now(
    parts: Parts,
    lease: Lease,
    records: Sequence[Record],
    at: float,
    expected: tuple[int, int | None],
) -> Appended | None:
    """Append on this thread, or `None`: that means to wait; nothing was written."""
    if not parts.can_write_now():
        return None
    held = parts.leases.of(lease)
    batch = journal.batch_of(records, at)
    done: Any = False
    if batch.is_plain:
        done = parts.write_held_now(
            lease,
            held,
            lambda connection: journal.append_row(
                connection, parts.leases, held, batch, expected
            ),
            single=True,
        )
    if done is False:
        operation = _operation(parts, held, batch, expected)
        done = parts.write_held_now(lease, held, operation)
    if done is BUSY:
        return None
    parts.watching.wake(lease.session_id)
    appended: Appended = done
    return appended


def _operation(
    parts: Parts, held: Held, batch: journal.Batch, expected: tuple[int, int | None]
) -> Operation:
    leases = parts.leases
    return lambda connection: journal.append(connection, leases, held, batch, expected)
