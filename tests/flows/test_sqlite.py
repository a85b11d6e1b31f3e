"""An agent on a SQLite store: it runs, another process reads, another agent resumes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agentcore import SqliteRunStore, ToolLoopAgent, tool
from agentcore.testing import Gate, ScriptedModel, call, step
from agentcore.types.records import RunEnded

S = "s"

READ = """
import anyio, json, sys
from agentcore import SqliteRunStore

async def main():
    async with SqliteRunStore(sys.argv[1]) as store:
        kinds = [stored.record.kind async for stored in store.read("s")]
    print(json.dumps(kinds))

anyio.run(main)
"""

CRASH = """
import anyio, os, signal, sys
from agentcore import SqliteRunStore, ToolLoopAgent, tool
from agentcore.testing import ScriptedModel, call

@tool(effects="none", replay="safe")
async def look() -> str:
    '''Look.'''
    os.kill(os.getpid(), signal.SIGKILL)

store = SqliteRunStore(sys.argv[1], durability=sys.argv[2])
ToolLoopAgent(ScriptedModel([call("look")]), tools=[look], store=store).run_sync(
    "hi", session="s"
)
"""


@tool(effects="none", replay="safe")
async def look() -> str:
    """Look."""
    return "seen"


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("durability", ["power", "crash"])
async def test_a_run_is_read_by_another_process(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "bot.db"
    store = SqliteRunStore(
        path, durability="power" if durability == "power" else "crash"
    )
    agent = ToolLoopAgent(
        ScriptedModel([call("look"), "Done."]), tools=[look], store=store
    )
    result = await agent.run("hi", session=S)
    assert result.output == "Done."
    assert os.listdir(tmp_path) == ["bot.db"]  # the agent left, so it is closed
    done = await anyio.to_thread.run_sync(python, READ, str(path))
    assert done.returncode == 0, done.stderr
    kinds = json.loads(done.stdout)
    assert kinds[0] == "session.created"
    assert kinds.count("tool.outcome") == 1
    assert kinds[-2:] == ["run.ended", "owner.released"]


@pytest.mark.scenario("run-63")
@pytest.mark.parametrize("durability", ["power", "crash"])
async def test_a_second_agent_resumes_what_a_killed_process_left(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "bot.db"
    died = await anyio.to_thread.run_sync(python, CRASH, str(path), durability)
    assert died.returncode == -9, died.stderr
    async with SqliteRunStore(path) as store:
        agent = ToolLoopAgent(ScriptedModel(["Done."]), tools=[look], store=store)
        result = await agent.resume(S)
        assert result.output == "Done."
        ended = [s async for s in store.read(S) if isinstance(s.record, RunEnded)]
    assert len(ended) == 1


async def test_a_second_agent_attaches_through_another_handle(tmp_path: Path) -> None:
    path, gate = tmp_path / "bot.db", Gate()
    first = ToolLoopAgent(
        ScriptedModel([step("One.", gate=gate), "Two."]), store=SqliteRunStore(path)
    )
    second = ToolLoopAgent(ScriptedModel([]), store=SqliteRunStore(path))
    outputs = {}

    async def run(agent: ToolLoopAgent, text: str) -> None:
        outputs[text] = (await agent.run(text, session=S)).output

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run, first, "a")
            await gate.reached()
            group.start_soon(run, second, "b")
            await anyio.sleep(0.2)
            gate.open()
    assert outputs == {"a": "One.", "b": "Two."}
