"""What a scripted model answers: texts, calls, errors, and `step(…)` for the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from agentcore._base.frozen import frozen
from agentcore.errors import BrokenStream, ConfigError, ProviderError
from agentcore.types.content import (
    AssistantPart,
    FilePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from agentcore.types.model import (
    FileReady,
    Finish,
    ModelDelta,
    ModelResponse,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolInputReady,
    ToolInputStarted,
)
from agentcore.types.usage import Usage

DEFAULT_USAGE = Usage(input_tokens=10, output_tokens=5)
"""What a step costs unless it says otherwise: small, known, and easy to add up."""

_WORDS = re.compile(r"\S+\s*|\s+")


class Waitable(Protocol):
    """Anything with a `wait()`: a `Gate`, or an `anyio.Event` of the running loop."""

    async def wait(self) -> object:
        """Return once the way is free."""
        ...


@frozen
class Step:
    """One answer of a scripted model; write `step(…)`.

    What it says streams in this order: thinking, text, calls, `content`. Positions
    count the deltas shown before something happens, so `gate_after=1` waits behind the
    first piece of text. A call takes its start, its argument text in two halves, and
    its end: four deltas.
    """

    text: str = ""
    calls: Sequence[ToolCallPart] = ()
    """Made by `call` or `call_raw`."""
    thinking: str = ""
    content: Sequence[str | AssistantPart] = ()
    """Parts in any order, where thinking, text, calls is not the right one."""
    usage: Usage | None = DEFAULT_USAGE
    """`None`: the vendor did not say."""
    finish: Finish | None = None
    """`None`: `tool_calls` with calls, else `stop`."""
    chunks: Sequence[str] = ()
    """The pieces the text arrives in, instead of word by word; may replace `text`."""
    cut: bool = False
    """The stream breaks without its end: `BrokenStream`."""
    raise_: BaseException | type[BaseException] | None = None
    """Raised instead of the stream's end. Of a class an instance is made, with
    `in_stream` set where something was shown; an instance is raised as it is."""
    fail_after: int | None = None
    """`cut` or `raise_` strikes after so many deltas; `None`: in place of the end."""
    gate: Waitable | None = None
    """The stream waits here until the test opens it."""
    gate_after: int = 0
    """0: before the request is answered at all."""
    response: ModelResponse | None = None
    """Handed out as it is at the end, for what the other fields cannot say."""

    def __post_init__(self) -> None:
        if self.text and self.chunks and "".join(self.chunks) != self.text:
            raise ConfigError("step(): the chunks do not add up to the text")
        if self.cut and self.raise_ is not None:
            raise ConfigError("step(): it can end with cut or with raise_, not both")
        if self.fail_after is not None and not self.fails:
            raise ConfigError("step(): fail_after needs cut=True or raise_=…")

    @property
    def fails(self) -> bool:
        """It ends in an error."""
        return self.cut or self.raise_ is not None

    def parts(self) -> tuple[AssistantPart, ...]:
        """What it says, in the order it streams."""
        if self.response is not None:
            return self.response.content
        text = self.text or "".join(self.chunks)
        return (
            *([ThinkingPart(self.thinking)] if self.thinking else []),
            *([TextPart(text)] if text else []),
            *self.calls,
            *(TextPart(p) if isinstance(p, str) else p for p in self.content),
        )


step = Step

StepLike: TypeAlias = (
    str
    | ToolCallPart
    | Step
    | ModelResponse
    | BaseException
    | type[BaseException]
    | Sequence[str | AssistantPart]
)
"""A text, a call, a list of them, an error to raise, a `step(…)`, a whole response."""


def call(tool: str, /, *, _id: str = "", **arguments: Any) -> ToolCallPart:
    """A call of `tool`; `_id` is the vendor's id, numbered by the model if left out."""
    return ToolCallPart(tool, json.dumps(arguments), provider_call_id=_id)


def call_raw(tool: str, arguments: str, /, *, _id: str = "") -> ToolCallPart:
    """A call whose argument text is sent as it stands, be it JSON or not."""
    return ToolCallPart(tool, arguments, provider_call_id=_id)


def as_step(value: object) -> Step:
    """The step a short form stands for.

    Raises:
        ConfigError: it is none of the forms of `StepLike`.
    """
    match value:
        case Step():
            return value
        case str():
            return Step(value)
        case ToolCallPart():
            return Step(calls=(value,))
        case ModelResponse():
            return Step(response=value)
        case list() | tuple():
            return Step(content=tuple(value))
        case _:
            return Step(raise_=_error(value))


def _error(value: object) -> BaseException | type[BaseException]:
    if isinstance(value, BaseException) or (
        isinstance(value, type) and issubclass(value, BaseException)
    ):
        return value
    raise ConfigError(
        f"{value!r} is no step of a scripted model: give a text, call(…), a list of "
        "them, an exception, step(…) or a ModelResponse"
    )


def response_of(a_step: Step, model: str, numbers: Iterator[int]) -> ModelResponse:
    """The response a step ends with; calls without a vendor's id are numbered."""
    if a_step.response is not None:
        return a_step.response
    parts = tuple(_with_id(part, numbers) for part in a_step.parts())
    calls = any(isinstance(part, ToolCallPart) for part in parts)
    finish = a_step.finish or ("tool_calls" if calls else "stop")
    return ModelResponse(parts, finish, a_step.usage, model)


def _with_id(part: AssistantPart, numbers: Iterator[int]) -> AssistantPart:
    if isinstance(part, ToolCallPart) and not part.provider_call_id:
        return replace(part, provider_call_id=f"scripted_{next(numbers)}")
    return part


def deltas_of(
    parts: Iterable[AssistantPart], chunks: Sequence[str] = ()
) -> Iterator[ModelDelta]:
    """The deltas of these parts, without the end; `chunks` cut the first text."""
    index = 0
    for part in parts:
        match part:
            case ThinkingPart(text=text):
                yield from map(ThinkingDelta, _WORDS.findall(text))
            case TextPart(text=text):
                yield from map(TextDelta, chunks or _WORDS.findall(text))
                chunks = ()
            case ToolCallPart():
                yield from _call_deltas(index, part)
                index += 1
            case FilePart():
                yield FileReady(part)
            case _:
                pass  # other parts arrive with the response only


def _call_deltas(index: int, part: ToolCallPart) -> Iterator[ModelDelta]:
    text, half = part.arguments, len(part.arguments) // 2
    yield ToolInputStarted(index, part.name, part.provider_call_id)
    for piece in (text[:half], text[half:]):
        if piece:
            yield ToolInputDelta(index, piece)
    yield ToolInputReady(index, part.name, text, part.provider_call_id)


def error_of(a_step: Step, shown: int) -> BaseException:
    """The error of a step that fails once `shown` deltas are out."""
    error = a_step.raise_
    if error is None:
        message = "the scripted stream ends without its terminal marker"
        return BrokenStream(message, in_stream=shown > 0)
    if not isinstance(error, type):
        return error
    message = f"scripted {error.__name__}"
    if issubclass(error, ProviderError):
        return error(message, in_stream=shown > 0)
    return error(message)
