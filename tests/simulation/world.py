"""A small world of processes over one store, that moves only when a schedule says so.

Every call of a process's store, every model request and every tool call stops at a
turnstile before and after it. The schedule lets one waiting task through at a time, and
in between crashes processes, cancels, steers and so on. So the order of everything is
the schedule's alone, and a schedule is played the same way every time.

It runs on asyncio, whose event loop can be asked whether anything is left to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint
from typing_extensions import override

from agentcore import ToolLoopAgent, tool
from agentcore.errors import InboxFull, InputConflict, SessionNotFound, StoreFailed
from agentcore.journal._checks import Checker
from agentcore.protocols.store import Appended
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    CountingIds,
    FunctionModel,
    call,
    call_raw,
    check_pairing,
    step,
)
from agentcore.testing._effect_tools import effect_tools
from agentcore.testing.faults import Crashed, FaultyStore
from agentcore.testing.journals import journal_lines
from agentcore.testing.steps import Step, StepLike
from agentcore.types import inbox as i
from agentcore.types import records as r
from agentcore.types.context import ToolContext
from agentcore.types.model import ModelRequest
from agentcore.types.policy import Decision
from agentcore.types.runs import Lease, Receipt, RunResult

S = "s"
# Made once, since that takes long: each call finds its process in the run's `deps`.
TOOLS: list[Any] = effect_tools(lambda context: context.deps.take_effect(context))


@tool(approval="ask")
async def ask(context: ToolContext[Any], text: str = "") -> str:
    """As `rw`, and somebody must say yes first."""
    await context.deps.take_effect(context)
    return f"ask {text}".rstrip()


TOOLS.append(ask)
MOMENT = 0.1
"""Seconds somebody may wait between two looks at something; they pass at once."""
REFUSALS = (InputConflict, InboxFull, SessionNotFound)
"""What a door may answer to somebody who comes too late."""


class Wrong(AssertionError):  # noqa: N818 - it is no error of the program
    """The world saw something that must never happen."""


@dataclass(eq=False)
class Waiting:
    """A task at the turnstile."""

    who: Process
    what: str
    passed: anyio.Event = field(default_factory=anyio.Event)
    error: Exception | None = None

    @override
    def __str__(self) -> str:
        return f"{self.who.name} {self.what}"


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still until somebody lets it jump."""

    now = 0.0

    @override
    def time(self) -> float:
        return self.now

    @property
    def is_busy(self) -> bool:
        """Something is left to do before anybody must wait."""
        return bool(self._ready)  # type: ignore[attr-defined]  # of the base class

    def jump(self, most: float) -> bool:
        """Go on to the next timer, if it is due within so many seconds."""
        timers = self._scheduled  # type: ignore[attr-defined]  # of the base class
        due = [timer.when() for timer in timers if not timer.cancelled()]
        if not due or min(due) > self.now + most:
            return False
        self.now = max(self.now, min(due))
        return True


def running_loop() -> Loop:
    """The one the world runs on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    return loop


class Clock:
    """Time passes only while somebody sleeps, and sleeping is waiting to be let on."""

    def __init__(self, turn: Callable[[str], Awaitable[None]] | None = None) -> None:
        self._turn = turn
        self._time = 1_000.0

    def now(self) -> float:
        self._time += 1
        return self._time

    def monotonic(self) -> float:
        return self._time

    async def sleep(self, seconds: float) -> None:
        if self._turn is None:
            raise Wrong("nobody is to sleep here")
        await self._turn("sleep")


class Process:
    """One caller with a store handle of its own."""

    def __init__(self, world: World, name: str, *, suspends: bool) -> None:
        self.world = world
        self.name = name
        pause = self.turn if suspends else None
        self.store = FaultyStore(world.store, pause=pause)
        self.agent: ToolLoopAgent[Any, Any] = ToolLoopAgent(
            FunctionModel(self._answer),
            tools=TOOLS,
            store=self.store,
            ids=world.ids,
            clock=Clock(self.turn),
            asks="pause",
        )
        self.handle: Any = None
        self.run: Any = None
        """The handle, once it was entered."""
        self.result: RunResult[Any] | None = None
        self.error: Exception | None = None
        self.done = False
        self.resumes = False
        self.input_id = ""
        """Of a process that runs an input of its own."""
        self.poisoned = False
        """An append of its failed, so it must start nothing more."""
        self.may_fail = False
        """A fault of its store was injected."""
        self._scope = anyio.CancelScope()

    async def drive(self, make: Callable[[], Any], entered: bool) -> None:
        """What the process is for; it ends with it."""
        try:
            with self.store.process(), self._scope:
                self.handle = make()
                if entered:
                    async with self.handle as self.run:
                        self.result = await self.run.result()
                else:
                    self.result = await self.handle
        except Exception as error:  # noqa: BLE001 - judged at the end
            self.error = error
        finally:
            self.done = True

    def leave(self) -> None:
        """The caller is cancelled: the graceful stop."""
        self._scope.cancel()

    def crash(self) -> None:
        """Kill it; what waits at the turnstile finds itself dead."""
        self.store.crash()
        for waiting in self.world.waiting:
            if waiting.who is self:
                waiting.passed.set()

    async def turn(self, what: str) -> None:
        """Wait for the schedule's leave to go on."""
        if self.poisoned and what.startswith(("model", "tool")):
            self.world.wrong.append(f"{self.name} starts {what} after a failed append")
        waiting = Waiting(self, what)
        self.world.waiting.append(waiting)
        try:
            await waiting.passed.wait()
        finally:
            with suppress(ValueError):
                self.world.waiting.remove(waiting)
        if self.store.crashed:
            raise Crashed(self.name)
        if waiting.error is not None:
            raise waiting.error

    async def wait(self) -> None:
        """In the middle of a stream (a step's `gate`)."""
        await self.turn("stream")

    async def _answer(self, request: ModelRequest) -> StepLike:
        problems = check_pairing(request.messages)
        if problems:
            raise Wrong(f"the model was sent {problems}")
        await self.turn("model")
        return self.world.next_reply(self)

    async def take_effect(self, context: ToolContext[Any]) -> None:
        """What a tool of this process does, as its argument `text` says."""
        text = str(context.call.arguments.get("text", ""))
        with anyio.CancelScope(shield="stubborn" in text):
            await self.turn(f"tool {context.call.name}")
            await self.world.note_effect(context.call.id)
            await self.turn(f"effect {context.call.name}")
        if "raise" in text:
            raise RuntimeError("the tool failed after its effect")


class Storage(MemoryRunStore):
    """What all processes share; it looks at every append when it is made."""

    def __init__(self, world: World) -> None:
        super().__init__(clock=Clock())
        self._world = world

    @override
    async def append(
        self, lease: Lease, records: Sequence[r.Record], **expected: Any
    ) -> Appended:
        unread = await self.inbox(S, self._world.folded)
        done = await super().append(lease, records, **expected)
        self._world.appended(records, [item for _, item in unread.items])
        return done


class World:
    """Everything a schedule moves."""

    def __init__(self, replies: Sequence[str], *, suspends: bool, tasks: TaskGroup):
        self.folded = 0
        """The inbox position up to which the journal holds the inbox."""
        self.store = Storage(self)
        self.ids = CountingIds()
        self.waiting: list[Waiting] = []
        self.effects: list[str] = []
        self.processes: list[Process] = []
        self.receipts: dict[str, Receipt] = {}
        """By input id: what was said, and acknowledged."""
        self.said = 0
        self.steps = 0
        self.log: list[str] = []
        self.wrong: list[str] = []
        self.records: list[r.StoredRecord] = []
        self._intents: set[str] = set()
        self._checker = Checker()
        self._replies = list(replies)
        self._suspends = suspends
        self._tasks = tasks
        self.client: ToolLoopAgent[Any, Any] = ToolLoopAgent(
            FunctionModel(lambda _: "unused"), store=self.store, ids=self.ids
        )

    # --- what happens in it -----------------------------------------------------------

    def next_reply(self, process: Process) -> Step | StepLike:
        """What the model answers next; see `replies`."""
        self.steps += 1
        text = self._replies.pop(0) if self._replies else "text"
        return reply(text, process)

    async def note_effect(self, call_id: str) -> None:
        """A tool does what cannot be undone."""
        await self.look()
        if call_id not in self._intents:
            self.wrong.append(f"{call_id} had its effect before its intent was durable")
        self.effects.append(call_id)

    def appended(self, records: Sequence[r.Record], unread: Sequence[Any]) -> None:
        """An append was made while these items of the inbox were not folded in."""
        accepted = {x.input_id for x in records if isinstance(x, r.InputAccepted)}
        for record in records:
            position = getattr(record, "position", 0)
            if isinstance(position, int):
                self.folded = max(self.folded, position)
            if isinstance(record, r.RunEnded) and record.stop.status == "completed":
                self.wrong += [
                    f"completed while the steer {item.id} lay unread in the inbox"
                    for item in unread
                    if isinstance(item, i.Input)
                    if item.delivery == "steer" and item.id not in accepted
                ]

    async def look(self) -> None:
        """Check what was written since the last look."""
        with suppress(SessionNotFound):
            async for stored in self.store.read(S, len(self.records)):
                self.records.append(stored)
                self._checker.take(stored)
                if isinstance(stored.record, r.ToolIntent):
                    self._intents.add(stored.record.call_id)

    # --- what a schedule does ---------------------------------------------------------

    def new_process(self) -> Process:
        """One more."""
        name = f"P{len(self.processes) + 1}"
        process = Process(self, name, suspends=self._suspends)
        self.processes.append(process)
        return process

    @property
    def alive(self) -> list[Process]:
        """The processes that are not done, oldest first."""
        return [p for p in self.processes if not p.done]

    def spawn(
        self, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any
    ) -> None:
        """Start a task beside the schedule."""
        self._tasks.start_soon(function, *args)

    def new_input(self) -> str:
        """The id of something to say."""
        self.said += 1
        return f"i{self.said}"

    def run(self, *, entered: bool) -> None:
        """A new process runs an input of its own."""
        input_id = self.new_input()
        process = self.new_process()
        process.input_id = input_id

        def make() -> Any:
            return process.agent.start(
                input_id, session=S, input_id=input_id, deps=process
            )

        self.spawn(process.drive, make, entered)

    def resume(
        self, *, entered: bool, decisions: dict[str, Decision] | None = None
    ) -> Process:
        """A new process goes on with the session."""
        process = self.new_process()
        process.resumes = True
        self.spawn(
            process.drive,
            lambda: process.agent.resume(S, decisions=decisions, deps=process),
            entered,
        )
        return process

    def ask(self, door: Callable[[], Awaitable[Receipt]], input_id: str = "") -> None:
        """Somebody outside of every process uses a door of the session."""

        async def knock() -> None:
            with suppress(*REFUSALS):
                receipt = await door()
                if input_id:
                    self.receipts[input_id] = receipt

        self.spawn(knock)

    def let_through(self, pick: int) -> None:
        """One of those at the turnstile goes on."""
        if self.waiting:
            waiting = self.waiting.pop(pick % len(self.waiting))
            self.log.append(f"    {waiting}")
            waiting.passed.set()

    def fail(self, pick: int) -> None:
        """A write of one process fails, and nobody knows whether it happened."""
        writes = [w for w in self.waiting if w.what.partition(":")[2] in _FAILABLE]
        if writes:
            waiting = writes[pick % len(writes)]
            self.waiting.remove(waiting)
            self.log.append(f"    {waiting} fails")
            waiting.who.may_fail = True
            waiting.who.poisoned |= waiting.what.endswith("append")
            waiting.error = StoreFailed(f"injected {waiting.what}")
            waiting.passed.set()

    async def rest(self) -> None:
        """Let every task run until it waits for the schedule."""
        loop = running_loop()
        await checkpoint()
        while loop.is_busy or loop.jump(MOMENT):
            await checkpoint()
        await self.look()
        if self._checker.violations or self.wrong:
            raise Wrong("\n".join([*map(str, self._checker.violations), *self.wrong]))

    def told(self) -> str:
        """What happened, for a failure."""
        return "\n".join(
            [
                "schedule, and what it let through:",
                *self.log,
                "journal:",
                *(f"  {line}" for line in journal_lines(self.records)),
                f"effects: {self.effects}",
                f"waiting: {[str(w) for w in self.waiting]}",
                f"alive: {[p.name for p in self.alive]}",
            ]
        )


_FAILABLE = ("append", "accept", "create")


def reply(text: str, process: Process) -> StepLike:
    """A reply of the model, from a few words.

    `text`, `empty`, `cut`, `refused`, `wait` (a stream that stops in the middle), or
    calls: `rw par parw`, each with `-raise`, `-stubborn`, `-twice` or `-bad`; `length`
    before calls cuts them off.
    """
    match text.split():
        case ["text"]:
            return "done"
        case ["empty"]:
            return ""
        case ["cut"]:
            return step("half a", cut=True)
        case ["refused"]:
            return StoreFailed("a model raises what it likes")
        case ["wait"]:
            return step("first second", gate=process, gate_after=1)
        case ["length", *names]:
            return step("more", calls=_calls(names), finish="length")
        case names:
            return step(calls=_calls(names))


def _calls(names: Sequence[str]) -> tuple[Any, ...]:
    made = []
    for name in names:
        tool, _, way = name.partition("-")
        if way == "bad":
            made.append(call_raw(tool, "{"))
        elif way == "twice":
            made += [call(tool, _id="same"), call(tool, _id="same")]
        else:
            made.append(call(tool, text=way))
    return tuple(made)


def item_of(kind: str, item_id: str, input_id: str) -> i.InboxItem:
    """An item for which an agent has no door."""
    if kind == "redeliver":
        return i.Redeliver(item_id, input_id, "steer")
    raise ValueError(kind)
