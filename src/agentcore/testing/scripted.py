"""A model that answers from a script, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import override

from agentcore.testing._playing import PlayingModel
from agentcore.testing.steps import Step, StepLike, as_step
from agentcore.types.content import ToolCallPart, join_text
from agentcore.types.messages import Message, ToolMessage
from agentcore.types.model import ModelCapabilities, ModelRequest

_SHOWN = 200


class ScriptExhausted(AssertionError):  # noqa: N818 - named for what happened
    """The model was asked once more than its script has answers."""


class ScriptedModel(PlayingModel):
    """Answers the first request with the first step, the next with the next, and so on.

    Concurrent runs may share one: steps go out in the order the requests arrive.

    Args:
        steps: The answers, in the forms of `StepLike`.
        id: How the journal names it.
        capabilities: By default tools, and neither media nor native JSON Schema.
        strict: A request beyond the script raises `ScriptExhausted`. With `False` the
            last step answers it again.
    """

    def __init__(
        self,
        steps: Iterable[StepLike],
        *,
        id: str = "scripted:model",
        capabilities: ModelCapabilities | None = None,
        strict: bool = True,
    ) -> None:
        super().__init__(id, capabilities or ModelCapabilities())
        # A lone text is meant as one answer, not as one answer per letter.
        several = [steps] if isinstance(steps, str) else steps
        self._steps = [as_step(one) for one in several]
        self._strict = strict
        self._failure: ScriptExhausted | None = None

    @override
    async def _answer(self, request: ModelRequest, number: int) -> Step:
        if number <= len(self._steps):
            return self._steps[number - 1]
        if self._steps and not self._strict:
            return self._steps[-1]
        failure = ScriptExhausted(
            f"request {number} is not in the script of {len(self._steps)} steps; "
            f"it ends with {_last(request)}"
        )
        self._failure = self._failure or failure
        raise failure

    def assert_exhausted(self) -> None:
        """Fail unless every step was asked for, and nothing beyond.

        Raises:
            ScriptExhausted: a request came that was not in the script. It is raised
                here once more, since a run turns it into a failed result.
            AssertionError: steps are left; the message lists them.
        """
        if self._failure is not None:
            raise self._failure
        asked = len(self._requests)
        if left := self._steps[asked:]:
            lines = [f"  {asked + n}: {_show(s)}" for n, s in enumerate(left, start=1)]
            total = len(self._steps)
            head = f"{len(left)} of {total} scripted steps were never asked for:"
            raise AssertionError("\n".join([head, *lines]))


def _show(step: Step) -> str:
    if step.raise_ is not None:
        return f"raise {step.raise_!r}"
    shown = [
        f"call {part.name}({part.arguments})"
        if isinstance(part, ToolCallPart)
        else repr(getattr(part, "text", part))
        for part in step.parts()
    ]
    return _cut(", ".join(shown) or "an empty answer") + (" (cut)" if step.cut else "")


def _last(request: ModelRequest) -> str:
    if not request.messages:
        return "no message at all"
    message: Message = request.messages[-1]
    if isinstance(message, ToolMessage):
        text = join_text(tuple(p for r in message.results for p in r.content))
    else:
        text = getattr(message, "text", "")
    return f"a {message.kind} message: {_cut(text)!r}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
