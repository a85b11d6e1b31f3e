"""The floor: what the same work costs without a runtime round it.

A loop that asks the model and runs the tools it names, with what any typed agent does
anyway: immutable slotted messages, arguments validated by pydantic from the model's
JSON, the result encoded, an event for each step, a no-op OpenTelemetry span round each
model and tool call, a task group for calls that run beside each other. It has no
journal, no retries, no deadlines, no policies and no errors. It imports nothing of
agentcore: ratios to it say what agentcore adds.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from opentelemetry import trace
from pydantic import BaseModel
from pydantic_core import to_json
from tests.benchmarks.plan import DELTA, PLAN

IMPORT = (
    "import asyncio, sqlite3; from pydantic import BaseModel, TypeAdapter; "
    "from opentelemetry import trace"
)
"""What the floor of the cold import loads: what no such library can do without."""

_span = trace.get_tracer("floor").start_as_current_span


@dataclass(frozen=True, slots=True)
class User:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Result:
    call_id: str
    content: str


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    calls: tuple[Call, ...] = ()
    tokens: tuple[int, int] = (1, 1)


Message: TypeAlias = User | Answer | Result


@dataclass(frozen=True, slots=True)
class Event:
    number: int
    kind: str
    data: Message | Call


@dataclass(frozen=True, slots=True)
class Delta:
    text: str


class AddArguments(BaseModel):
    a: int
    b: int


async def add(a: int, b: int) -> int:
    if PLAN.tool_sleep:
        await asyncio.sleep(PLAN.tool_sleep)
    return a + b


class Tool:
    __slots__ = ("function", "validate")

    def __init__(
        self, function: Callable[..., Awaitable[Any]], arguments: type[BaseModel]
    ) -> None:
        self.function = function
        self.validate = arguments.__pydantic_validator__.validate_json


TOOLS = {"add": Tool(add, AddArguments)}


async def ask_model(history: list[Message]) -> Answer:
    if PLAN.model_sleep:
        await asyncio.sleep(PLAN.model_sleep)
    last = history[-1]
    reply = PLAN.decide(last.call_id if type(last) is Result else None)
    if type(reply) is str:
        return Answer(reply)
    calls = [Call(id_, "add", to_json(args).decode()) for id_, args in reply]  # type: ignore[str-unpack]
    return Answer("", tuple(calls))


class Run:
    __slots__ = ("cancelled", "events", "history", "show", "tokens")

    def __init__(self, prompt: str, show: Callable[[Event], None]) -> None:
        self.history: list[Message] = [User(prompt)]
        self.show = show
        self.events = 0
        self.tokens = 0
        self.cancelled = False

    def emit(self, kind: str, data: Message | Call) -> None:
        self.events += 1
        self.show(Event(self.events, kind, data))

    async def call(self, call: Call) -> Result:
        with _span("tool"):
            self.emit("tool_start", call)
            tool = TOOLS[call.tool]
            arguments = tool.validate(call.arguments)
            value = await tool.function(**arguments.__dict__)
            result = Result(call.id, to_json(value).decode())
            self.emit("tool_end", result)
            return result

    async def drive(self) -> str:
        history = self.history
        while True:
            if self.cancelled:
                raise asyncio.CancelledError
            with _span("model"):
                answer = await ask_model(history)
            self.tokens += sum(answer.tokens)
            history.append(answer)
            self.emit("answer", answer)
            calls = answer.calls
            if not calls:
                return answer.text
            if len(calls) == 1:
                history.append(await self.call(calls[0]))
                continue
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.call(call)) for call in calls]
            history.extend(task.result() for task in tasks)


def ignore(event: Event) -> None:
    """The host that looks at nothing."""


async def run(prompt: str) -> str:
    """One run from an empty history."""
    return await Run(prompt, ignore).drive()


def runner() -> Callable[[str], Awaitable[str]]:
    """What runs a prompt; here there is no agent to be built first."""
    return run


async def stream(prompt: str) -> int:
    """One streamed answer, read as events; returns how many pieces came."""
    seen = 0
    async for event in _events():
        if type(event) is Delta:
            seen += 1
    return seen


async def _events() -> AsyncIterator[Delta | Answer]:
    pieces: list[str] = []
    async for piece in _deltas():
        pieces.append(piece)
        yield Delta(piece)
    yield Answer("".join(pieces))


async def _deltas() -> AsyncIterator[str]:
    for _ in range(PLAN.deltas):
        yield DELTA


class IdleSessions:
    """Sessions of ten messages, kept as the objects they are."""

    async def add(self, number: int) -> list[Message]:
        """(user, call, result, text) twice, then (user, text)."""
        messages: list[Message] = []
        for turn in range(3):
            messages.append(User(f"question {number} {turn}"))
            if turn < 2:
                arguments = to_json({"a": number, "b": turn}).decode()
                call = Call(f"call_{turn}_{number}", "add", arguments)
                messages.append(Answer("", (call,)))
                messages.append(Result(call.id, str(number + turn)))
            messages.append(Answer(f"answer {number} {turn}"))
        return messages
