"""A blocking tool that is given up may still return, in time or too late."""

import threading
import time
from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit

from agentcore import tool
from agentcore.executors.local import LocalToolExecutor
from agentcore.testing import Gate, call, step
from agentcore.types import records as r

SCENARIO = pytest.mark.scenario
PATIENCE = 20


class Blocking:
    """A blocking tool: it tells when it works, and returns when it may."""

    def __init__(self, kit: Kit, **declared: Any) -> None:
        self.working, self.may = threading.Event(), threading.Event()

        @tool(name="block", **declared)
        def block() -> str:
            """Work until it may return."""
            self.working.set()
            self.may.wait(PATIENCE)
            return "returned"

        self.tool = block

    async def works(self) -> None:
        while not self.working.is_set():  # noqa: ASYNC110 - set in a thread
            await anyio.sleep(0.001)

    def executor(self, grace: float) -> LocalToolExecutor:
        return LocalToolExecutor([self.tool], grace=grace)


@SCENARIO("run-32")
async def test_a_call_that_returns_within_the_grace_keeps_its_result(kit: Kit) -> None:
    blocking = Blocking(kit)
    agent = kit.agent([call("block")], tools=[], executor=blocking.executor(PATIENCE))
    async with agent.start("hi", session="s") as run:
        await blocking.works()
        await run.cancel()
        blocking.may.set()
        result = await run.result()

    assert result.stop.status == "cancelled"
    assert [(c.status, c.text) for c in result.tool_calls] == [("ok", "returned")]


@SCENARIO("run-31")
async def test_a_call_that_outlasts_the_grace_is_unknown(kit: Kit) -> None:
    blocking = Blocking(kit)
    agent = kit.agent([call("block")], tools=[], executor=blocking.executor(0.01))
    async with agent.start("hi", session="s") as run:
        await blocking.works()
        await run.cancel()
        result = await run.result()
    blocking.may.set()

    assert result.stop.status == "cancelled"
    assert await kit.outcomes() == ["call_1 unknown/unknown"]


@SCENARIO("run-33")
async def test_a_reading_call_that_outlasts_the_grace_is_cancelled(kit: Kit) -> None:
    blocking = Blocking(kit, effects="none")
    agent = kit.agent([call("block")], tools=[], executor=blocking.executor(0))
    async with agent.start("hi", session="s") as run:
        await blocking.works()
        await run.cancel()
        await run.result()
    blocking.may.set()

    assert await kit.outcomes() == ["call_1 cancelled/none"]


@SCENARIO("run-34")
async def test_what_comes_too_late_is_noted_and_changes_nothing(kit: Kit) -> None:
    blocking = Blocking(kit, timeout=0.05)
    asked = Gate()
    answers = [call("block"), step("done", gate=asked)]
    agent = kit.agent(answers, tools=[], executor=blocking.executor(PATIENCE))
    began = time.monotonic()
    async with agent.start("hi", session="s") as run:
        await asked.reached()
        assert time.monotonic() - began < PATIENCE / 2  # no grace after a timeout
        blocking.may.set()
        async for event in run:
            if isinstance(getattr(event, "record", None), r.ToolLateResult):
                asked.open()
        result = await run.result()

    assert result.output == "done"
    assert [c.status for c in result.tool_calls] == ["unknown"]
    lines = await kit.lines()
    assert lines.count("tool.late_result call_1") == 1
    assert await kit.outcomes() == ["call_1 unknown/unknown"]
    assert len(kit.requests()) == 2


async def test_what_comes_after_the_run_is_dropped(kit: Kit) -> None:
    blocking = Blocking(kit, timeout=0.05)
    agent = kit.agent([call("block"), "done"], tools=[], executor=blocking.executor(0))
    assert (await agent.run("hi", session="s")).output == "done"
    before = await kit.records()
    blocking.may.set()
    with anyio.fail_after(PATIENCE):
        while agent.health().held_workers:  # noqa: ASYNC110 - it ends in a thread
            await anyio.sleep(0.001)
    assert await kit.records() == before


# --- replies ------------------------------------------------------------------------
@SCENARIO("run-53")
async def test_a_long_reply_that_is_lost_leaves_what_had_streamed(kit: Kit) -> None:
    long = step(chunks=["x" * 100] * 128, gate=(gate := Gate()), gate_after=127)
    agent = kit.agent([long, "done"])
    async with agent.start("hi", session="s"):
        await gate.reached()
        partials = [
            s.record
            for s in await kit.records()
            if isinstance(s.record, r.ModelPartial)
        ]
        assert "".join(p.text for p in partials) == "x" * 6400
        gate.open()


async def test_a_short_reply_leaves_no_partials(kit: Kit) -> None:
    agent = kit.agent([step(chunks=["ab"] * 100)])
    await agent.run("hi", session="s")
    assert not any("partial" in line for line in await kit.lines())
