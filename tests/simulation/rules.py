"""What an owner owes, as a journal shows it, beyond what `check_journal` judges.

Most of it is what the next owner has to do with what a dead one left open (run
semantics 2.7, R6 to R9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agentcore.types import records as r

Journal = Sequence[r.StoredRecord]


def replays_what_is_safe(journal: Journal) -> list[str]:
    """R6: a call that may be replayed is run again, unless somebody stopped the run."""
    return [
        f"record {stored.seq}: {outcome.call_id} could have been replayed, and is "
        f"{outcome.status}/{outcome.effect}"
        for stored, outcome, intent, cancelled in _recovered(journal)
        if intent.replay == "safe" and not cancelled and outcome.cause != "host"
        if outcome.status in ("unknown", "cancelled", "not_started")
    ]


def asks_about_what_is_unknown(journal: Journal) -> list[str]:
    """R9: after an unknown external effect the run pauses until somebody has looked."""
    wrong = []
    for stored, outcome, intent, cancelled in _recovered(journal):
        unknown = outcome.effect == "unknown" and intent.effects == "external"
        if not unknown or cancelled or outcome.status != "unknown":
            continue
        later = (s.record for s in journal[stored.seq :])
        first = next((x for x in later if isinstance(x, _DECIDES)), None)
        if isinstance(first, r.ModelIntent):
            wrong.append(f"record {stored.seq}: nobody was asked about {intent.tool}")
    return wrong


_DECIDES = (r.RunPaused, r.RunEnded, r.ModelIntent)


def counts_its_attempts(journal: Journal) -> list[str]:
    """R8: who takes an interrupted run over says so right after it is the owner."""
    wrong = []
    interrupted = False
    for stored in journal:
        record = stored.record
        if isinstance(record, r.RunStarted | r.RunUnpaused):
            interrupted = True
        elif isinstance(record, r.RunEnded | r.RunPaused | r.CancelRequested):
            interrupted = False  # whoever finishes a cancel resumes nothing
        elif isinstance(record, r.OwnerAcquired) and interrupted:
            after = [s.record for s in journal[stored.seq :] if s.epoch == stored.epoch]
            cancels = any(isinstance(x, r.CancelRequested) for x in after)
            if after and not isinstance(after[0], r.ResumeAttempted) and not cancels:
                wrong.append(f"record {stored.seq + 1}: not resume.attempted")
    return wrong


def _recovered(
    journal: Journal,
) -> Iterator[tuple[r.StoredRecord, r.ToolOutcome, r.ToolIntent, bool]]:
    """Outcomes that a later owner wrote than the one that had started the call.

    With each: its record, its intent, and whether the run was being cancelled.
    """
    intents: dict[str, tuple[int, r.ToolIntent]] = {}
    cancelled = False
    # Who comes to cancel a run that nobody owns first settles what the dead one left.
    cancelling = {s.epoch for s in journal if isinstance(s.record, r.CancelRequested)}
    for stored in journal:
        record = stored.record
        if isinstance(record, r.RunStarted):
            cancelled = False
        elif isinstance(record, r.CancelRequested):
            cancelled = True
        elif isinstance(record, r.ToolIntent):
            intents[record.call_id] = (stored.epoch, record)
        elif isinstance(record, r.ToolOutcome) and record.call_id in intents:
            epoch, intent = intents[record.call_id]
            if epoch < stored.epoch:
                yield stored, record, intent, cancelled or stored.epoch in cancelling


def pauses_for_its_own_calls(journal: Journal) -> list[str]:
    """2.4: a paused run waits for something of its own, which can be decided."""
    wrong = []
    planned: set[str] = set()
    for stored in journal:
        record = stored.record
        if isinstance(record, r.RunStarted):
            planned = set()
        elif isinstance(record, r.ToolPlanned):
            planned.add(record.call_id)
        elif isinstance(record, r.RunPaused) and record.reason != "host":
            own = planned.intersection(record.subjects)
            if not own or own != set(record.subjects):
                wrong.append(f"record {stored.seq}: waits for nothing of its own")
    return wrong


def places_in_order(journal: Journal) -> list[str]:
    """Q2: what one boundary places was accepted in that order."""
    return [f"record {seq}: placed late" for seq in _placed_late(journal)]


def _placed_late(journal: Journal) -> list[int]:
    late = []
    accepted: dict[str, int] = {}
    last = 0
    for stored in journal:
        record = stored.record
        if isinstance(record, r.InputAccepted):
            accepted[record.input_id] = record.position
        elif isinstance(record, r.ModelIntent | r.RunStarted | r.RunUnpaused):
            last = 0
        elif isinstance(record, r.InputPlaced):
            if accepted[record.input_id] < last:
                late.append(stored.seq)
            last = accepted[record.input_id]
    return late


KEPT: Sequence[Callable[[Journal], list[str]]] = (
    places_in_order,
    pauses_for_its_own_calls,
    replays_what_is_safe,
    asks_about_what_is_unknown,
    counts_its_attempts,
)
"""What every random schedule is held to, beyond `check_journal`."""
