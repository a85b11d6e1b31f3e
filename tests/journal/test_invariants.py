"""The checker of journals: a sound one passes, and each broken rule is named."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from agentcore import ToolLoopAgent, tool
from agentcore.context.projection import HistoryProjector
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    CountingIds,
    ScriptedModel,
    assert_valid,
    call,
    check_digests,
    check_journal,
)
from agentcore.types import records as r
from agentcore.types.content import TextPart, ToolCallPart
from agentcore.types.policy import Approve, Charge, Deny
from agentcore.types.runs import Stop

HI = (TextPart("hi"),)


@tool
async def rw() -> str:
    """Write."""
    return "written"


@pytest.fixture
async def journal() -> list[r.StoredRecord]:
    """A run of two calls and an answer."""
    store = MemoryRunStore()
    model = ScriptedModel([[call("rw"), call("rw")], "done"])
    agent = ToolLoopAgent(model, tools=[rw], store=store, ids=CountingIds())
    await agent.run("hi", session="s", input_id="i1")
    return [stored async for stored in store.read("s")]


def number(records: list[r.StoredRecord]) -> list[r.StoredRecord]:
    """The same records, numbered anew."""
    return [
        dataclasses.replace(stored, seq=seq)
        for seq, stored in enumerate(records, start=1)
    ]


def made(*records: Any) -> list[r.StoredRecord]:
    """A journal of one owner."""
    head = [r.StoredRecord(1, 0, 0.0, r.SessionCreated("s", 1))]
    owned = [r.OwnerAcquired("o"), *records]
    return number([*head, *(r.StoredRecord(0, 1, 0.0, record) for record in owned)])


def rules(records: list[r.StoredRecord]) -> set[str]:
    return {violation.rule for violation in check_journal(records)}


def index_of(records: list[r.StoredRecord], kind: type[Any], nth: int = 0) -> int:
    return [i for i, s in enumerate(records) if type(s.record) is kind][nth]


ACCEPTED = r.InputAccepted("i1", 1, HI)
STARTED = r.RunStarted("run_1", None, {}, ("i1",))
PLACED = r.InputPlaced("i1", "run_1")
RESERVED = r.UsageReserved("q1", Charge(requests=1))
RECORDED = r.UsageRecorded("q1")
OPENED = (ACCEPTED, STARTED, PLACED)


def asked(**changes: Any) -> r.ModelIntent:
    values: dict[str, Any] = {
        "req_id": "q1",
        "attempt": 1,
        "head_seq": 5,
        "prompt_digest": "",
        "model": "m",
        "reservation_id": "q1",
        **changes,
    }
    return r.ModelIntent(**values)


def answered(*content: Any, status: Any = "ok") -> r.ModelOutcome:
    return r.ModelOutcome("q1", 1, status, content or (TextPart("done"),))


def ended(status: Any = "completed", reason: str = "final") -> r.RunEnded:
    return r.RunEnded("run_1", Stop(status, reason))


CALLED = (
    *OPENED,
    RESERVED,
    asked(),
    answered(ToolCallPart("rw", "{}", "c1")),
    RECORDED,
)
PLANNED = (*CALLED, r.ToolPlanned("c1", "q1", 0, "rw", "h"))
INTENT = r.ToolIntent("c1", "rw", "h")


# --- sound --------------------------------------------------------------------------
async def test_the_journal_of_a_run_breaks_no_rule(
    journal: list[r.StoredRecord],
) -> None:
    assert check_journal(journal) == []
    assert_valid(journal)


async def test_a_journal_may_end_anywhere(journal: list[r.StoredRecord]) -> None:
    for length in range(len(journal) + 1):
        assert check_journal(journal[:length]) == []


async def test_every_prompt_can_be_made_again(journal: list[r.StoredRecord]) -> None:
    assert check_digests(journal, HistoryProjector) == []


def test_an_empty_journal_breaks_no_rule() -> None:
    assert check_journal([]) == []


# --- one record less, twice, or elsewhere -------------------------------------------
@pytest.mark.parametrize(
    ("kind", "nth", "rule"),
    [
        (r.OwnerAcquired, 0, "I5"),
        (r.InputAccepted, 0, "I3"),
        (r.RunStarted, 0, "I2"),
        (r.UsageReserved, 0, "W3"),
        (r.UsageRecorded, 0, "W3"),
        (r.ModelIntent, 0, "W3"),
        (r.ModelOutcome, 0, "W4"),
        (r.ToolPlanned, 1, "I1"),
        (r.ToolIntent, 0, "W5"),
        (r.ToolOutcome, 1, "I1"),
    ],
)
async def test_a_missing_record_is_noticed(
    journal: list[r.StoredRecord], kind: type[Any], nth: int, rule: str
) -> None:
    index = index_of(journal, kind, nth)
    assert rule in rules(number(journal[:index] + journal[index + 1 :]))


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (r.InputAccepted, "I3"),
        (r.InputPlaced, "I3"),
        (r.RunStarted, "I2"),
        (r.UsageReserved, "W3"),
        (r.UsageRecorded, "W3"),
        (r.ModelIntent, "W3"),
        (r.ModelOutcome, "W3"),
        (r.ToolPlanned, "I1"),
        (r.ToolIntent, "W5"),
        (r.ToolOutcome, "I1"),
        (r.RunEnded, "I2"),
        (r.SessionCreated, "seq"),
    ],
)
async def test_a_record_that_stands_twice_is_noticed(
    journal: list[r.StoredRecord], kind: type[Any], rule: str
) -> None:
    index = index_of(journal, kind)
    assert rule in rules(number([*journal[: index + 1], *journal[index:]]))


async def test_a_gap_in_the_numbers_is_noticed(journal: list[r.StoredRecord]) -> None:
    [gap] = check_journal(journal[:4] + journal[5:])[:1]

    assert (gap.rule, gap.seq) == ("seq", 6)
    assert str(gap) == "seq at record 6: expected 5"


@pytest.mark.parametrize("epoch", [0, 2])
async def test_a_record_of_another_epoch_is_noticed(
    journal: list[r.StoredRecord], epoch: int
) -> None:
    odd = dataclasses.replace(journal[5], epoch=epoch)
    assert "I5" in rules([*journal[:5], odd, *journal[6:]])


async def test_a_prompt_that_cannot_be_made_again_is_noticed(
    journal: list[r.StoredRecord],
) -> None:
    index = index_of(journal, r.InputAccepted)
    other = r.InputAccepted("i1", 1, (TextPart("something else"),))
    journal[index] = dataclasses.replace(journal[index], record=other)

    assert {v.rule for v in check_digests(journal, HistoryProjector)} == {"I4"}


async def test_a_prompt_of_the_future_is_noticed(
    journal: list[r.StoredRecord],
) -> None:
    index = index_of(journal, r.ModelIntent)
    intent = journal[index].record
    assert isinstance(intent, r.ModelIntent)
    ahead = dataclasses.replace(intent, head_seq=99)
    journal[index] = dataclasses.replace(journal[index], record=ahead)

    assert "I4" in rules(journal)
    assert [v.rule for v in check_digests(journal, HistoryProjector)] == ["I4"]


# --- made by hand -------------------------------------------------------------------
BROKEN: list[tuple[str, Callable[[], list[r.StoredRecord]], str]] = [
    ("an epoch that does not rise", lambda: made(r.OwnerAcquired("p")), "epoch"),
    (
        "a record after the release",
        lambda: made(r.OwnerReleased(), ACCEPTED),
        "I5",
    ),
    (
        "inputs out of order",
        lambda: made(ACCEPTED, r.InputAccepted("i0", 1, HI)),
        "I3",
    ),
    (
        "parked without a cancel",
        lambda: made(*OPENED, r.InputAccepted("i2", 2, HI), r.InputParked("i2", "c")),
        "Q6",
    ),
    (
        "released and not parked",
        lambda: made(ACCEPTED, r.InputReleased("i1", "c")),
        "I3",
    ),
    (
        "withdrawn after placing",
        lambda: made(*OPENED, r.InputWithdrawn("i1", "w")),
        "I3",
    ),
    (
        "redelivered after placing",
        lambda: made(*OPENED, r.InputRedelivered("i1", "steer")),
        "I3",
    ),
    (
        "placed in another run",
        lambda: made(ACCEPTED, STARTED, r.InputPlaced("i1", "run_9")),
        "I3",
    ),
    (
        "waiting inputs not parked",
        lambda: made(
            *OPENED,
            r.InputAccepted("i2", 2, HI),
            r.CancelRequested("c", "run_1", 3),
            ended("cancelled", "user"),
        ),
        "Q6",
    ),
    (
        "a request after the cancel",
        lambda: made(*OPENED, r.CancelRequested("c", "run_1", 2), RESERVED, asked()),
        "W7",
    ),
    (
        "a call after the cancel",
        lambda: made(*PLANNED, r.CancelRequested("c", "run_1", 2), INTENT),
        "W7",
    ),
    (
        "an input placed after the cancel",
        lambda: made(
            *OPENED,
            r.InputAccepted("i2", 2, HI),
            r.CancelRequested("c", "run_1", 3),
            r.InputPlaced("i2", "run_1"),
        ),
        "W7",
    ),
    (
        "two cancels",
        lambda: made(
            *OPENED,
            r.CancelRequested("c", "run_1", 2),
            r.CancelRequested("d", "run_1", 3),
        ),
        "W7",
    ),
    (
        "a cancel of another run",
        lambda: made(*OPENED, r.CancelRequested("c", "run_9", 2)),
        "W7",
    ),
    (
        "a cancelled run that completed",
        lambda: made(*OPENED, r.CancelRequested("c", "run_1", 2), ended()),
        "2.8",
    ),
    ("cancelled by nobody", lambda: made(*OPENED, ended("cancelled", "user")), "W7"),
    ("completed without a reply", lambda: made(*OPENED, ended()), "2.8"),
    (
        "completed with an empty reply",
        lambda: made(
            *OPENED, RESERVED, asked(), answered(TextPart(" ")), RECORDED, ended()
        ),
        "2.8",
    ),
    (
        "completed with an unseen input",
        lambda: made(
            *OPENED,
            RESERVED,
            asked(),
            answered(),
            RECORDED,
            r.InputAccepted("i2", 2, HI, "steer"),
            r.InputPlaced("i2", "run_1", "steer"),
            ended(),
        ),
        "2.8",
    ),
    (
        "completed with a pending steer",
        lambda: made(
            *OPENED,
            RESERVED,
            asked(),
            answered(),
            RECORDED,
            r.InputAccepted("i2", 2, HI, "steer"),
            ended(),
        ),
        "2.8",
    ),
    (
        "wrong totals",
        lambda: made(*OPENED, RESERVED, asked(), answered(), RECORDED, ended()),
        "I6",
    ),
    (
        "a request while paused",
        lambda: made(*OPENED, r.RunPaused("run_1", "host"), RESERVED, asked()),
        "2.4",
    ),
    (
        "paused twice",
        lambda: made(
            *OPENED, r.RunPaused("run_1", "host"), r.RunPaused("run_1", "host")
        ),
        "2.4",
    ),
    (
        "paused with a running call",
        lambda: made(*PLANNED, INTENT, r.RunPaused("run_1", "host")),
        "2.4",
    ),
    (
        "paused in a request",
        lambda: made(*OPENED, RESERVED, asked(), r.RunPaused("run_1", "host")),
        "2.4",
    ),
    ("unpaused without a pause", lambda: made(*OPENED, r.RunUnpaused("run_1")), "2.4"),
    (
        "ended in a request",
        lambda: made(*OPENED, RESERVED, asked(), ended("failed", "model")),
        "W3",
    ),
    (
        "released in a request",
        lambda: made(*OPENED, RESERVED, asked(), r.OwnerReleased()),
        "W3",
    ),
    ("an attempt left out", lambda: made(*OPENED, RESERVED, asked(attempt=2)), "W3"),
    (
        "a call that was not asked for",
        lambda: made(*CALLED, r.ToolPlanned("c9", "q1", 0, "rw")),
        "W4",
    ),
    (
        "a call of another reply",
        lambda: made(*CALLED, r.ToolPlanned("c1", "q9", 0, "rw")),
        "W4",
    ),
    (
        "a call without an id",
        lambda: made(*OPENED, RESERVED, asked(), answered(ToolCallPart("rw", "{}"))),
        "W4",
    ),
    (
        "a request with an open call",
        lambda: made(
            *PLANNED,
            r.UsageReserved("q2", Charge()),
            asked(req_id="q2", reservation_id="q2"),
        ),
        "I1",
    ),
    (
        "a request with unplanned calls",
        lambda: made(
            *CALLED,
            r.UsageReserved("q2", Charge()),
            asked(req_id="q2", reservation_id="q2"),
        ),
        "W4",
    ),
    ("an intent nobody planned", lambda: made(*OPENED, INTENT), "I1"),
    (
        "an intent after the outcome",
        lambda: made(*PLANNED, r.ToolOutcome("c1", "denied"), INTENT),
        "W5",
    ),
    (
        "other arguments",
        lambda: made(*PLANNED, r.ToolIntent("c1", "rw", "other")),
        "2.13",
    ),
    (
        "ok without an intent",
        lambda: made(*PLANNED, r.ToolOutcome("c1", "ok", "done")),
        "W5",
    ),
    (
        "denied after an intent",
        lambda: made(*PLANNED, INTENT, r.ToolOutcome("c1", "denied")),
        "W5",
    ),
    (
        "an effect of a refused call",
        lambda: made(*PLANNED, r.ToolOutcome("c1", "denied", "done")),
        "2.6",
    ),
    (
        "unknown without an effect",
        lambda: made(*PLANNED, INTENT, r.ToolOutcome("c1", "unknown", "none")),
        "2.6",
    ),
    (
        "an effect of a tool without",
        lambda: made(
            *PLANNED,
            r.ToolIntent("c1", "rw", "h", "none"),
            r.ToolOutcome("c1", "ok", "done"),
        ),
        "2.6",
    ),
    (
        "a late result of a known one",
        lambda: made(
            *PLANNED, INTENT, r.ToolOutcome("c1", "ok", "done"), r.ToolLateResult("c1")
        ),
        "2.6",
    ),
    (
        "two late results",
        lambda: made(
            *PLANNED,
            INTENT,
            r.ToolOutcome("c1", "unknown", "unknown"),
            r.ToolLateResult("c1"),
            r.ToolLateResult("c1"),
        ),
        "2.6",
    ),
    (
        "run without the yes it needs",
        lambda: made(*PLANNED, r.ApprovalRequested("c1", "h", "rw", {}), INTENT),
        "2.13",
    ),
    (
        "run in spite of a no",
        lambda: made(
            *PLANNED,
            r.ApprovalRequested("c1", "h", "rw", {}),
            r.ApprovalDecided("c1", "h", Deny()),
            INTENT,
        ),
        "2.13",
    ),
    (
        "a yes to other arguments",
        lambda: made(
            *PLANNED,
            r.ApprovalRequested("c1", "h", "rw", {}),
            r.ApprovalDecided("c1", "x", Approve()),
        ),
        "2.13",
    ),
    (
        "decided twice",
        lambda: made(
            *PLANNED,
            r.ApprovalRequested("c1", "h", "rw", {}),
            r.ApprovalDecided("c1", "h", Approve()),
            r.ApprovalDecided("c1", "h", Approve()),
        ),
        "2.13",
    ),
    ("a reply outside of a run", lambda: made(answered()), "I2"),
]


@pytest.mark.parametrize(
    ("build", "rule"),
    [(b, rule) for _, b, rule in BROKEN],
    ids=[n for n, _, _ in BROKEN],
)
def test_a_broken_journal_is_named_by_its_rule(
    build: Callable[[], list[r.StoredRecord]], rule: str
) -> None:
    assert rule in rules(build())


def test_all_that_is_wrong_is_in_the_message_of_the_assertion() -> None:
    with pytest.raises(AssertionError, match=r"2\.8 at record 6: completed without"):
        assert_valid(made(*OPENED, ended()))


def test_a_late_result_of_an_unknown_call_is_sound() -> None:
    unknown = r.ToolOutcome("c1", "unknown", "unknown")
    late = r.ToolLateResult("c1")
    assert check_journal(made(*PLANNED, INTENT, unknown, late)) == []


def test_a_parked_input_may_come_back_and_be_placed() -> None:
    assert (
        check_journal(
            made(
                *OPENED,
                r.InputAccepted("i2", 2, HI),
                r.CancelRequested("c", "run_1", 3),
                r.InputParked("i2", "c"),
                ended("cancelled", "user"),
                r.InputReleased("i2", "x"),
                r.InputRedelivered("i2", "steer"),
                r.RunStarted("run_2"),
                r.InputPlaced("i2", "run_2"),
            )
        )
        == []
    )
