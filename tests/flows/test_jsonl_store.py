"""An agent on a JSONL store: killed at any moment, it goes on in another process."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import JsonlRunStore, ToolLoopAgent, tool
from agentcore.testing import FunctionModel, ScriptedModel, assert_valid, call
from agentcore.types.model import ModelRequest
from agentcore.types.records import (
    InputAccepted,
    InputPlaced,
    ModelIntent,
    ModelOutcome,
    OwnerAcquired,
    RunEnded,
    StoredRecord,
    ToolOutcome,
)
from agentcore.types.runs import SessionQuery

S = "s1"
PATIENCE = 30.0


@tool(effects="external")
async def book(seat: str) -> str:
    """Book a seat."""
    return f"booked {seat}"


DIES = """
import anyio, os, signal, sys
from agentcore import JsonlRunStore, ToolLoopAgent, tool
from agentcore.testing import ScriptedModel, call
from agentcore.types import records as r

path, when, kind = sys.argv[1:]
def die(): os.kill(os.getpid(), signal.SIGKILL)

@tool(effects="external")
async def book(seat: str) -> str:
    '''Book a seat.'''
    with open(os.path.join(path, "..", "effects"), "a") as file:
        file.write(seat + "\\n")
    return f"booked {seat}"

class Dying(JsonlRunStore):
    async def append(self, lease, records, **expected):
        hit = any(type(record).__name__ == kind for record in records)
        if hit and when == "before":
            die()
        if hit and when == "mid":
            write = os.write
            def half(fd, data):
                write(fd, bytes(data)[: len(data) // 2])
                die()
            os.write = half
        done = await super().append(lease, records, **expected)
        if hit:
            die()
        return done

store = Dying(path)
if when == "accepted":
    accept = store.accept
    async def accepted(session_id, item):
        await accept(session_id, item)
        die()
    store.accept = accepted
model = ScriptedModel([call("book", seat="1A"), "Done."])
agent = ToolLoopAgent(model, tools=[book], store=store)
anyio.run(lambda: agent.run("Book seat 1A.", session="s1", input_id="i"))
"""


def killed(path: Path, when: str, kind: str = "") -> None:
    """An agent's process that ends with kill -9 at an append, or after an accept."""
    done = subprocess.run(
        [sys.executable, "-c", DIES, str(path), when, kind],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def only(records: list[StoredRecord], kind: type[Any]) -> list[Any]:
    return [s.record for s in records if isinstance(s.record, kind)]


def agent_on(path: Path, *script: Any, durability: Any = "power") -> ToolLoopAgent:
    store = JsonlRunStore(path, durability=durability)
    return ToolLoopAgent(ScriptedModel(list(script)), tools=[book], store=store)


async def journal(path: Path) -> list[StoredRecord]:
    return [stored async for stored in JsonlRunStore(path).read(S)]


@pytest.mark.parametrize("durability", ["power", "crash"])
async def test_an_agent_keeps_a_conversation_in_a_folder(
    tmp_path: Path, durability: str
) -> None:
    agent = agent_on(tmp_path, call("book", seat="1A"), "Done.", durability=durability)
    result = await agent.run("Book seat 1A.", session=S)
    assert result.output == "Done."
    later = agent_on(tmp_path, "1A.", durability=durability)
    again = await later.run("Which seat?", session=S)
    assert len(again.messages) == 6
    records = await journal(tmp_path)
    assert_valid(records)
    assert len(only(records, RunEnded)) == 2
    acquired = only(records, OwnerAcquired)
    assert [owner.reason for owner in acquired] == ["fresh", "fresh"]


async def test_many_sessions_run_at_once_on_one_store(tmp_path: Path) -> None:
    agent = ToolLoopAgent(ScriptedModel(["Hello."] * 20), store=JsonlRunStore(tmp_path))
    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(partial(agent.run, "Hello?", session=f"s{n}"))
    infos = await JsonlRunStore(tmp_path).sessions(SessionQuery())
    assert len(infos) == 20
    for info in infos:
        stored = JsonlRunStore(tmp_path).read(info.session_id)
        assert_valid([s async for s in stored])


@pytest.mark.scenario("run-10", "run-11", "run-20", "run-63")
@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("accepted", ""),
        ("before", "InputAccepted"),
        ("mid", "InputAccepted"),
        ("after", "InputAccepted"),
    ],
)
async def test_an_input_whose_process_was_killed_is_placed_once_by_the_next(
    tmp_path: Path, when: str, kind: str
) -> None:
    killed(tmp_path / "store", when, kind)
    agent = agent_on(tmp_path / "store", call("book", seat="1A"), "Done.")
    # The client that got no answer says the same again.
    result = await agent.run("Book seat 1A.", session=S, input_id="i")
    assert (result.output, result.stop.status) == ("Done.", "completed")
    records = await journal(tmp_path / "store")
    assert_valid(records)
    assert len(only(records, InputAccepted)) == 1
    assert [p.input_id for p in only(records, InputPlaced)] == ["i"]
    # After the mere accept there was no owner yet to take over from.
    reason = "fresh" if when == "accepted" else "takeover"
    assert only(records, OwnerAcquired)[-1].reason == reason


@pytest.mark.scenario("run-51")
async def test_a_reply_whose_line_was_torn_is_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    killed(path, "mid", "ModelOutcome")
    (folder,) = sorted((path / "sessions").glob("*"))
    torn = (folder / "journal.jsonl").read_bytes().rpartition(b"\n")[2]
    assert torn

    agent = agent_on(path, call("book", seat="1A"), "Done.")
    async with agent.resume(S) as run:
        result = await run.result()
    assert result.output == "Done."

    (aside,) = sorted(folder.glob("torn-at-*"))
    assert aside.read_bytes() == torn
    records = await journal(path)
    assert_valid(records)
    outcomes = only(records, ModelOutcome)
    assert [o.status for o in outcomes] == ["unknown", "ok", "ok"]
    assert [i.attempt for i in only(records, ModelIntent)] == [1, 2, 1]
    assert not (tmp_path / "effects").exists()  # nothing had been started yet


async def test_a_call_that_ran_when_its_process_was_killed_is_not_run_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    killed(path, "before", "ToolOutcome")
    assert (tmp_path / "effects").read_text(encoding="utf-8") == "1A\n"
    agent = agent_on(path, "I do not know whether it is booked.")
    async with agent.resume(S) as run:
        await run.result()
    records = await journal(path)
    assert_valid(records)
    assert [o.status for o in only(records, ToolOutcome)] == ["unknown"]


STEERED = """
import anyio, sys
from agentcore import JsonlRunStore, ToolLoopAgent
from agentcore.testing import ScriptedModel
from agentcore.types.inbox import Cancel
anyio.run(lambda: JsonlRunStore(sys.argv[1]).accept("s1", Cancel("c")))
"""


@pytest.mark.scenario("run-60")
async def test_a_cancel_from_another_process_reaches_a_run_that_waits(
    tmp_path: Path,
) -> None:
    started = anyio.Event()

    @tool(effects="none")
    async def wait() -> str:
        """Wait."""
        started.set()
        await anyio.sleep_forever()
        return ""

    model = ScriptedModel([call("wait"), "never"])
    agent = ToolLoopAgent(model, tools=[wait], store=JsonlRunStore(tmp_path))
    results = []

    async def run() -> None:
        results.append(await agent.run("Wait.", session=S))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            await anyio.to_thread.run_sync(
                lambda: subprocess.run(
                    [sys.executable, "-c", STEERED, str(tmp_path)], check=True
                )
            )
    assert results[0].stop.status == "cancelled"
    assert_valid(await journal(tmp_path))


@pytest.mark.scenario("run-60")
async def test_a_second_process_that_submits_gets_the_answer_of_the_first(
    tmp_path: Path,
) -> None:
    gate = anyio.Event()

    @tool(effects="none")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    first = ToolLoopAgent(
        ScriptedModel([call("wait"), "one", "two"]),
        tools=[wait],
        store=JsonlRunStore(tmp_path),
    )
    # Another handle with its own locks, as another process would have.
    second = agent_on(tmp_path)
    outputs: set[str | None] = set()

    async def ask(agent: ToolLoopAgent, prompt: str) -> None:
        outputs.add((await agent.run(prompt, session=S)).output)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, first, "a")
            await anyio.sleep(0.2)
            group.start_soon(ask, second, "b")
            await anyio.sleep(0.2)
            gate.set()
    assert outputs == {"one", "two"}
    assert_valid(await journal(tmp_path))


@pytest.mark.parametrize("durability", ["power", "crash"])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_cancelled_at_any_moment_leaves_its_session_free_and_sound(
    tmp_path: Path, seed: int, durability: Any
) -> None:
    dice = random.Random(seed)

    def reply(request: ModelRequest) -> Any:
        return call("book", seat="1A") if len(request.messages) % 4 == 1 else "done"

    async def story() -> None:
        store = JsonlRunStore(tmp_path, durability=durability)
        agent = ToolLoopAgent(FunctionModel(reply), tools=[book], store=store)
        for turn in range(8):
            task = asyncio.create_task(agent.run(f"turn {turn}", session=S))
            await asyncio.sleep(dice.random() * 0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        last = await asyncio.wait_for(agent.run("at last", session=S), PATIENCE)
        assert last.stop.status == "completed"
        assert_valid(await journal(tmp_path))

    asyncio.run(story())  # its own kind of cancellation
