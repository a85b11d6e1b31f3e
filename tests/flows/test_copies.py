"""A session can be forked, and moved through a file, without losing what it proves."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit, shown

from agentcore import MemoryRunStore
from agentcore.errors import (
    ConfigError,
    CorruptRecord,
    InputConflict,
    NotAStore,
    SchemaTooNew,
    SessionExists,
    SessionNotFound,
    StoreError,
)
from agentcore.stores.transfer import export_session, import_session
from agentcore.testing import call
from agentcore.types import records as r
from agentcore.types.content import ImagePart, TextPart
from agentcore.types.runs import SessionQuery


async def seq_of(kit: Kit, kind: type[Any], number: int = 1) -> int:
    found = [s.seq for s in await kit.records() if type(s.record) is kind]
    return found[number - 1]


async def two_turns(kit: Kit) -> None:
    agent = kit.agent([call("rw", text="a"), "one", "two"])
    await agent.run("first", session="s", input_id="i1")
    await agent.run("second", session="s", input_id="i2")


# --- fork ---------------------------------------------------------------------------
async def test_a_fork_goes_on_from_where_it_was_made(kit: Kit) -> None:
    await two_turns(kit)
    at = await seq_of(kit, r.InputAccepted, 2) - 1
    before = await kit.records()
    agent = kit.agent(["another"])
    fork = await agent.fork("s", at=at)
    result = await agent.run("instead", session=fork)

    assert shown(result.messages) == [
        "user first", "assistant  [call_1]", "tool call_1=ok", "assistant one",
        "user instead", "assistant another",
    ]  # fmt: skip
    assert await kit.records() == before
    copied = await kit.records(fork)
    created = copied[0].record
    assert isinstance(created, r.SessionCreated)
    assert created.fork_of is not None
    assert (created.fork_of.session_id, created.fork_of.seq) == ("s", at)
    assert [s.record for s in copied[1:at]] == [s.record for s in before[1:at]]
    assert [s.seq for s in copied] == list(range(1, len(copied) + 1))


async def test_what_was_accepted_once_stays_accepted_in_the_fork(kit: Kit) -> None:
    await two_turns(kit)
    agent = kit.agent(["never"])
    fork = await agent.fork("s", at=await seq_of(kit, r.RunEnded, 1))
    again = await agent.run("first", session=fork, input_id="i1")
    assert again.output == "one"
    with pytest.raises(InputConflict):
        await agent.run("changed", session=fork, input_id="i1")
    assert kit.effects.read() == ["call_1"]


@pytest.mark.parametrize(
    "kind", [r.RunStarted, r.ModelIntent, r.ModelOutcome, r.ToolIntent, r.ToolOutcome]
)
async def test_a_fork_in_the_middle_of_a_run_repeats_nothing(
    kit: Kit, kind: type[Any]
) -> None:
    await two_turns(kit)
    # What had not been placed by then is served first.
    agent = kit.agent(["fresh", "fresh"])
    fork = await agent.fork("s", at=await seq_of(kit, kind))
    result = await agent.run("on", session=fork)

    assert result.output == "fresh"
    assert kit.effects.read() == ["call_1"]


async def test_a_fork_of_a_paused_run_is_idle(kit: Kit) -> None:
    gate = kit.gate("x")
    agent = kit.agent([call("ro", text="x"), "never"])
    async with agent.start("hi", session="s"):
        await gate.reached()
    last = (await kit.records())[-1].seq
    fork = await agent.fork("s", at=last)
    assert (await kit.agent(["new"]).run("on", session=fork)).output == "new"


async def test_a_fork_at_no_record_is_refused(kit: Kit) -> None:
    await two_turns(kit)
    agent = kit.agent([])
    bad: list[Any] = [0, -1, 10_000, "3", True, None]
    for at in bad:
        with pytest.raises(ConfigError, match="at"):
            await agent.fork("s", at=at)
    with pytest.raises(SessionNotFound):
        await agent.fork("nobody", at=1)
    assert len(await kit.store.sessions(SessionQuery())) == 1


async def test_more_inputs_than_a_queue_holds_can_be_copied(kit: Kit) -> None:
    agent = kit.agent(["ok"] * 80)
    for number in range(80):
        await agent.run(f"{number}", session="s")
    fork = await agent.fork("s", at=(await kit.records())[-1].seq)
    assert (await kit.store.inbox(fork)).version == 80


# --- export and import --------------------------------------------------------------
async def test_a_session_moves_to_another_store_and_goes_on(
    kit: Kit, tmp_path: Path
) -> None:
    blob = await kit.store.put_blob(b"picture", media_type="image/png")
    agent = kit.agent([call("rw", text="a"), "one"])
    parts: list[Any] = [TextPart("look"), ImagePart("image/png", blob=blob)]
    await agent.run(parts, session="s", input_id="i1")
    await export_session(kit.store, "s", tmp_path / "s.jsonl")
    assert not await anyio.Path(tmp_path / ".s.jsonl.part").exists()

    before = await kit.records()
    kit.store = other = type(kit.store)()
    assert await import_session(other, tmp_path / "s.jsonl") == "s"
    assert [s.record for s in (await kit.records())[1:]][: len(before) - 1] == [
        s.record for s in before[1:]
    ]
    assert await other.get_blob(blob) == b"picture"
    result = await kit.agent(["two"]).run("on", session="s")
    assert result.output == "two"
    assert shown(result.messages)[0] == "user look"
    with pytest.raises(SessionExists):
        await import_session(other, tmp_path / "s.jsonl")
    named = await import_session(other, tmp_path / "s.jsonl", session_id="t")
    assert named == "t"


async def test_what_is_no_whole_export_is_refused_before_anything_is_written(
    kit: Kit, tmp_path: Path
) -> None:
    await two_turns(kit)
    path = tmp_path / "s.jsonl"
    await export_session(kit.store, "s", path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    bad: list[tuple[bytes, type[StoreError]]] = [
        (b"", NotAStore),
        (b"hello\n", NotAStore),
        (b"{}\n", NotAStore),
        (lines[0].replace(b'"version":1', b'"version":2'), SchemaTooNew),
        (lines[0], CorruptRecord),
        (whole[:-20], CorruptRecord),
        (whole.replace(b'"kind":"run.started"', b'"kind":"run.star'), CorruptRecord),
        (b"".join([lines[0], *lines[2:]]), CorruptRecord),
    ]
    store = MemoryRunStore()
    for content, error in bad:
        path.write_bytes(content)
        with pytest.raises(error):
            await import_session(store, path)
    assert await store.sessions(SessionQuery()) == []


async def test_an_export_of_nothing_writes_no_file(kit: Kit, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        await export_session(kit.store, "nobody", tmp_path / "s.jsonl")
    assert not (tmp_path / "s.jsonl").exists()
