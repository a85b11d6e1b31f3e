"""Judge a whole journal: does it keep every rule, and does it fit what really happened?

assert_journal(records)              rules, prompt digests and pairing at once
assert_journal(records, effects)     and the effects a log outside has counted
check_effects(records, effects)      only those, as a list
journal_lines(records)               a journal in short, for a failure's text
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from agentcore.context.projection import HistoryProjector
from agentcore.journal.digests import check_digests
from agentcore.journal.invariants import Violation, check_journal
from agentcore.journal.pairing import check_pairing
from agentcore.protocols.context import Projector
from agentcore.types import records as r

_AROUND = 3
"""Records shown before the one that breaks a rule."""


def assert_journal(
    records: Iterable[r.StoredRecord],
    effects: Iterable[str] | None = None,
    *,
    projector: Callable[[], Projector] = HistoryProjector,
) -> None:
    """Fail a test unless a journal is one an engine may have written.

    Checked are the invariants (`check_journal`), every prompt digest, the pairing of
    calls and results in every prompt, and, where given, the effects.

    Args:
        records: A whole journal. It may end anywhere, as after a kill.
        effects: The call id of every effect, once for each time it happened.
        projector: What the journal's prompts were made with.

    Raises:
        AssertionError: it breaks a rule; the message shows where in the journal.
    """
    journal = list(records)
    wrong = check_journal(journal)
    if not wrong:  # nobody can make prompts of a journal that breaks the rules
        wrong += check_digests(journal, projector)
        wrong += _check_prompts(journal, projector)
    if effects is not None:
        wrong += check_effects(journal, effects)
    if wrong:
        raise AssertionError("\n".join(_explain(journal, wrong)))


def check_effects(
    records: Iterable[r.StoredRecord], effects: Iterable[str]
) -> list[Violation]:
    """Where a journal says something else of its calls than what really happened.

    W5: an effect without an intent, or of a call that must not be replayed and had it
    twice. 2.6: `done` without an effect, `none` with one. Calls of tools that declare
    `effects="none"` may leave any trace.

    Args:
        records: A whole journal.
        effects: The call id of every effect, once for each time it happened.
    """
    seen = Counter(effects)
    wrong: list[Violation] = []
    intents: dict[str, r.ToolIntent] = {}
    last = 0
    for stored in records:
        last, record = stored.seq, stored.record
        if isinstance(record, r.ToolIntent):
            intents[record.call_id] = record
            if record.replay != "safe" and seen[record.call_id] > 1:
                what = f"{record.call_id} had its effect {seen[record.call_id]} times"
                wrong.append(Violation("W5", stored.seq, what))
        elif isinstance(record, r.ToolOutcome):
            wrong += _judge(stored.seq, record, intents, seen)
    strangers = sorted(seen.keys() - intents.keys())
    wrong += [
        Violation("W5", last, f"{key} ran without an intent") for key in strangers
    ]
    return wrong


def _judge(
    seq: int,
    outcome: r.ToolOutcome,
    intents: dict[str, r.ToolIntent],
    seen: Counter[str],
) -> Iterator[Violation]:
    key = outcome.call_id
    intent = intents.get(key)
    if intent is not None and intent.effects == "none":
        return
    if outcome.effect == "none" and seen[key]:
        yield Violation("2.6", seq, f"{key} says effect none, and had one")
    if outcome.effect == "done" and not seen[key]:
        yield Violation("2.6", seq, f"{key} says effect done, and had none")


def _check_prompts(
    records: Sequence[r.StoredRecord], projector: Callable[[], Projector]
) -> list[Violation]:
    wrong: list[Violation] = []
    fold = projector()
    for stored in records:
        record = stored.record
        if isinstance(record, r.ModelIntent) and record.purpose == "main":
            wrong += [
                Violation("pairing", stored.seq, problem)
                for problem in check_pairing(fold.messages)
            ]
        fold.add(record)
    return wrong


def _explain(
    records: Sequence[r.StoredRecord], wrong: Sequence[Violation]
) -> Iterator[str]:
    lines = journal_lines(records)
    for violation in wrong:
        yield str(violation)
        until = min(violation.seq, len(lines))
        yield from (
            f"    {line}" for line in lines[max(until - 1 - _AROUND, 0) : until]
        )


# --- in short -------------------------------------------------------------------------


def journal_lines(records: Iterable[r.StoredRecord]) -> list[str]:
    """One line a record: `14 tool.outcome call_2 unknown/unknown`."""
    return [
        f"{stored.seq} {stored.record.kind} {_detail(stored.record)}".rstrip()
        for stored in records
    ]


def _detail(record: r.Record) -> str:
    match record:
        case r.ToolOutcome():
            return f"{record.call_id} {record.status}/{record.effect}"
        case r.RunEnded():
            return f"{record.stop.status}/{record.stop.reason}"
        case r.ModelIntent() | r.ModelOutcome():
            status = getattr(record, "status", "")
            return f"{record.req_id} #{record.attempt} {status}"
        case r.ApprovalDecided():
            return f"{record.call_id} {record.decision.kind}"
        case _:
            return " ".join(
                str(getattr(record, name)) for name in _SHOWN if hasattr(record, name)
            )


_SHOWN = ("input_id", "call_id", "cancel_id", "run_id", "tool", "name", "reason")
