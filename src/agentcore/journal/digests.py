"""Can every prompt be made again? Replays a journal and compares (invariant I4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentcore.journal.invariants import Violation
from agentcore.journal.prompt import prompt_digest
from agentcore.protocols.context import Projector
from agentcore.types.records import ModelIntent, StoredRecord


def check_digests(
    records: Iterable[StoredRecord], projector: Callable[[], Projector]
) -> list[Violation]:
    """Every `model.intent` whose digest its prefix of the journal does not give.

    Args:
        records: A whole journal.
        projector: Makes the projector the journal was written with.
    """
    violations: list[Violation] = []
    fold = projector()
    digests = {0: fold.digest}
    for stored in records:
        record = stored.record
        if type(record) is ModelIntent:
            history = digests.get(record.head_seq)
            if history is None:
                what = f"head_seq {record.head_seq} is no record before the intent"
                violations.append(Violation("I4", stored.seq, what))
            elif record.prompt_digest != prompt_digest(
                history, record.tools_digest, record.prepared
            ):
                what = f"the records up to {record.head_seq} give another prompt digest"
                violations.append(Violation("I4", stored.seq, what))
        fold.add(record)
        digests[stored.seq] = fold.digest
    return violations
