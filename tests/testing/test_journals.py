"""One door that judges a whole journal, and says where it is wrong."""

from typing import Any

import pytest
from typing_extensions import override

from agentcore import ToolLoopAgent
from agentcore.context.projection import HistoryProjector
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    CountingIds,
    ScriptedModel,
    assert_journal,
    call,
    check_effects,
    effect_tools,
    journal_lines,
)
from agentcore.types import records as r
from agentcore.types.records import StoredRecord

TOOLS = ("ro", "idem", "rw", "par", "parw")


async def journal_of(*calls: Any) -> tuple[list[StoredRecord], list[str]]:
    """A run with these calls, and what they did."""
    effects: list[str] = []
    store = MemoryRunStore()
    agent: ToolLoopAgent = ToolLoopAgent(
        ScriptedModel([list(calls), "done"]),
        tools=effect_tools(lambda context: effects.append(context.call.id)),
        store=store,
        ids=CountingIds(),
    )
    await agent.run("go", session="s")
    return [stored async for stored in store.read("s")], effects


async def test_the_journal_of_a_run_is_right_at_any_length() -> None:
    records, effects = await journal_of(*(call(n) for n in TOOLS))
    assert sorted(effects) == [f"call_{n}" for n in range(1, 6)]
    assert_journal(records, effects)
    for length in range(len(records)):
        assert_journal(records[:length])


async def test_a_broken_rule_is_shown_where_it_is() -> None:
    records, _ = await journal_of(call("rw"))
    without = [s for s in records if not isinstance(s.record, r.ToolOutcome)]
    numbered = [
        StoredRecord(seq, s.epoch, s.at, s.record) for seq, s in enumerate(without, 1)
    ]
    with pytest.raises(AssertionError) as caught:
        assert_journal(numbered)
    text = str(caught.value)
    assert "I1 at record 14: model.intent with open calls ['call_1']" in text
    assert "    14 model.intent req_2 #1" in text


async def test_a_prompt_that_cannot_be_made_again_is_shown() -> None:
    records, _ = await journal_of(call("rw"))
    changed = [
        StoredRecord(s.seq, s.epoch, s.at, r.InputAccepted("input_1", 1, ()))
        if isinstance(s.record, r.InputAccepted)
        else s
        for s in records
    ]
    with pytest.raises(AssertionError, match="give another prompt digest"):
        assert_journal(changed)


async def test_an_unsafe_call_has_its_effect_once() -> None:
    records, effects = await journal_of(call("rw"), call("idem"))
    (wrong,) = check_effects(records, [*effects, *effects])
    assert str(wrong).endswith("call_1 had its effect 2 times")


async def test_an_effect_needs_an_intent() -> None:
    records, effects = await journal_of(call("rw"))
    (wrong,) = check_effects(records, [*effects, "call_9"])
    assert str(wrong).endswith("call_9 ran without an intent")


async def test_done_and_none_mean_what_they_say() -> None:
    records, effects = await journal_of(call("rw"), call("ro"))
    (wrong,) = check_effects(records, [])
    assert str(wrong).endswith("call_1 says effect done, and had none")
    denied = [
        StoredRecord(s.seq, 1, s.at, r.ToolOutcome("call_1", "unknown", "none"))
        if isinstance(s.record, r.ToolOutcome) and s.record.call_id == "call_1"
        else s
        for s in records
    ]
    (wrong,) = check_effects(denied, effects)
    assert str(wrong).endswith("call_1 says effect none, and had one")
    with pytest.raises(AssertionError, match="and had one"):
        assert_journal(denied, effects)


async def test_a_journal_is_shown_in_a_line_a_record() -> None:
    records, _ = await journal_of(call("rw"))
    lines = journal_lines(records)
    assert lines[0] == "1 session.created"
    assert "12 tool.intent call_1 rw" in lines
    assert "13 tool.outcome call_1 ok/done" in lines
    assert lines[-2].endswith("run.ended completed/final")


class Forgetful(HistoryProjector):
    """Forgets the results of calls, as a broken projection would."""

    @override
    def add(self, record: r.Record) -> None:
        if not isinstance(record, r.ToolOutcome):
            super().add(record)


async def test_a_prompt_without_a_result_is_shown() -> None:
    records, _ = await journal_of(call("rw"))
    with pytest.raises(AssertionError, match=r"pairing at record 15: .* has no result"):
        assert_journal(records, projector=Forgetful)
