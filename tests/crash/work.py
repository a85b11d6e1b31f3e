"""The run that is killed: batches of all tools, a pause, a steer, an answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from tests.crash.torn import TornJsonl, TornSqlite

from agentcore import ToolLoopAgent, tool
from agentcore._base.processes import start_time
from agentcore.errors import SessionNotFound
from agentcore.policies.retry import RetryPolicy
from agentcore.testing import (
    CrashCase,
    FunctionModel,
    Gate,
    ScriptedModel,
    call,
    check_pairing,
    step,
)
from agentcore.testing.steps import StepLike
from agentcore.types.content import TextPart
from agentcore.types.context import ToolContext
from agentcore.types.inbox import Input, StateChange
from agentcore.types.messages import AssistantMessage, ToolMessage
from agentcore.types.model import ModelRequest
from agentcore.types.policy import (
    ApprovalRequest,
    Approve,
    Decision,
    LeaveUnknown,
    Pending,
)

Batches: TypeAlias = Sequence[Sequence[str]]

S = "s"
BATCHES = (
    ("rw", "idem", "ro", "parw", "parw", "group", "pay"),
    ("par", "par", "talk"),
)
MIXED = (("par", "parw"), ("talk",))
"""What is safe and what is not, at the same time."""
LONG = "word " * 1000
"""So much that a part of it is on record before its end."""


def agent(case: CrashCase, batches: Batches = BATCHES) -> ToolLoopAgent:
    return ToolLoopAgent(
        FunctionModel(partial(_answer, batches)),
        tools=[*case.tools, *_more_tools(case)],
        store=case.store,
        retry=RetryPolicy(base=0),
        asks="pause",
    )


def _answer(batches: Batches, request: ModelRequest) -> StepLike:
    assert check_pairing(request.messages) == []
    said = [m.text for m in request.messages if isinstance(m, AssistantMessage)]
    assert not any("word word" in text for text in said)  # half an answer is none
    answers = sum(isinstance(message, ToolMessage) for message in request.messages)
    if answers < len(batches):
        return [call(name) for name in batches[answers]]
    return LONG


def _more_tools(case: CrashCase) -> Sequence[Any]:
    @tool(effects="external", replay="never")
    async def group(context: ToolContext[Any]) -> str:
        """Say which processes belong to it, before it has its effect."""
        started = start_time(os.getpid())
        await context.record_process(os.getpid(), started or 0.0)
        case.effect(context)
        return "grouped"

    @tool(approval="ask", effects="external", replay="never")
    async def pay(context: ToolContext[Any]) -> str:
        """Need an approval."""
        case.effect(context)
        return "paid"

    @tool(effects="none", replay="safe")
    async def talk(context: ToolContext[Any]) -> str:
        """Meanwhile the user says more; what nobody acknowledged is said again."""
        case.effect(context)
        more = Input("i2", (TextPart("and more"),), delivery="steer")
        await case.store.accept(S, more)
        await case.store.accept(S, StateChange("c1", "mood", "good"))
        return "talked"

    return group, pay, talk


async def mixed(case: CrashCase) -> None:
    await go(case, MIXED)


async def go(case: CrashCase, batches: Batches = BATCHES) -> None:
    """Begin the run, or go on with it, until it has ended; any process may."""
    mine = agent(case, batches)
    async with case.store:
        known = await _is_known(case)
        if known:
            result = await mine.resume(S)
        else:
            result = await mine.run("go", session=S, input_id="i1")
        while result.stop.status == "paused":
            decisions = {one.id: _decided(one) for one in result.pending}
            result = await mine.resume(S, decisions=decisions)


async def look(case: CrashCase) -> None:
    """Resume, and decide nothing."""
    result = await agent(case).resume(S)
    print(result.stop.status, *(one.kind for one in result.pending))  # noqa: T201


async def steered(case: CrashCase) -> None:
    """The model does not answer; meanwhile the user says more."""
    gate = Gate()
    mine = agent(case).with_(model=ScriptedModel([step("late", gate=gate)]))
    async with mine.start("go", session=S, input_id="i1") as run:
        await gate.reached()
        await run.steer("and more", input_id="i2")


async def stopped(case: CrashCase) -> None:
    """Cancelled while one call is open and the other has not started."""
    mine = agent(case)

    @tool(effects="external", replay="never")
    async def long(context: ToolContext[Any]) -> str:
        """Take so long that it is cancelled."""
        case.effect(context)
        await mine.cancel(session=S)
        await anyio.sleep_forever()
        return "never"

    model = ScriptedModel([[call("long"), call("rw")]])
    cancelled = mine.with_(model=model, tools=[long, *case.tools])
    await cancelled.run("go", session=S, input_id="i1")


async def _is_known(case: CrashCase) -> bool:
    """Whether the input was accepted; who was not told so says it again."""
    try:
        page = await case.store.inbox(S)
    except SessionNotFound:
        return False
    return any(isinstance(item, Input) and item.id == "i1" for _, item in page.items)


def _decided(one: Pending) -> Decision:
    return Approve() if isinstance(one, ApprovalRequest) else LeaveUnknown()


# --- the stores, by name --------------------------------------------------------------
def sqlite_crash(folder: Path) -> TornSqlite:
    return TornSqlite(folder / "bot.db", durability="crash")


def sqlite_power(folder: Path) -> TornSqlite:
    return TornSqlite(folder / "bot.db")


def jsonl_crash(folder: Path) -> TornJsonl:
    return TornJsonl(folder / "store", durability="crash")


def jsonl_power(folder: Path) -> TornJsonl:
    return TornJsonl(folder / "store")
