"""A model whose answers a function of the test computes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from typing_extensions import override

from agentcore.testing._playing import PlayingModel
from agentcore.testing.steps import Step, StepLike, as_step
from agentcore.types.model import ModelCapabilities, ModelRequest


class FunctionModel(PlayingModel):
    """Asks `fn(request)` for the answer to every request.

    Args:
        fn: Sync or async; returns any form of `StepLike`. What it raises is raised to
            the caller as it is.
        id: How the journal names it.
        capabilities: By default tools, and neither media nor native JSON Schema.
    """

    def __init__(
        self,
        fn: Callable[[ModelRequest], StepLike | Awaitable[StepLike]],
        *,
        id: str = "function:model",
        capabilities: ModelCapabilities | None = None,
    ) -> None:
        super().__init__(id, capabilities or ModelCapabilities())
        self._fn = fn

    @override
    async def _answer(self, request: ModelRequest, number: int) -> Step:
        answer = self._fn(request)
        return as_step(await answer if isawaitable(answer) else answer)
