"""What the fake models share: they capture requests and play steps as streams."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from anyio.lowlevel import checkpoint

from agentcore.testing.steps import Step, deltas_of, error_of, response_of
from agentcore.types.model import (
    ModelCapabilities,
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
)


class PlayingModel(ABC):
    """A model that keeps what it was sent, and answers what a subclass tells it to."""

    def __init__(self, model_id: str, capabilities: ModelCapabilities) -> None:
        self._id = model_id
        self._capabilities = capabilities
        self._requests: list[ModelRequest] = []
        self._lock = threading.Lock()
        self._call_numbers = itertools.count(1)
        self.active: int = 0
        """Streams open now: 0 once whoever asked has closed them all."""

    @property
    def id(self) -> str:
        """`provider:name`, as stored in the journal."""
        return self._id

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it says it can do."""
        return self._capabilities

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """Every request so far, each as it was at the moment it was sent."""
        return tuple(self._requests)

    @abstractmethod
    async def _answer(self, request: ModelRequest, number: int) -> Step:
        """The step that answers this request, the `number`th from 1."""

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[ModelDelta]]:
        """Capture the request, and play the step that answers it.

        Errors before the first delta are raised on entering, as a provider does. It
        yields to the event loop once, then streams without a pause except at a gate.
        """
        # The history is a live view of the caller's: what was sent must not grow on.
        sent = replace(request, messages=tuple(request.messages))
        with self._lock:
            self._requests.append(sent)
            number = len(self._requests)
        await checkpoint()
        step = await self._answer(sent, number)
        vendor_name = self._id.rpartition(":")[2]
        response = response_of(step, vendor_name, self._call_numbers)
        playback = _Playback(step, response)
        await playback.begin()
        self.active += 1
        try:
            async with aclosing(playback.stream()) as deltas:
                yield deltas
        finally:
            self.active -= 1


class _Playback:
    """One step on its way out."""

    def __init__(self, step: Step, response: ModelResponse) -> None:
        self._step = step
        parts = response.content
        self._deltas = [*deltas_of(parts, step.chunks), ResponseDone(response)]
        last = len(self._deltas) - 1
        self._gate_at = min(step.gate_after, last)
        wanted = last if step.fail_after is None else min(step.fail_after, last)
        self._fail_at = wanted if step.fails else None

    async def begin(self) -> None:
        """What happens before the answer's first byte."""
        if self._gate_at == 0:
            await self._wait()
        # A cut stream has begun: it breaks while it is read.
        if self._fail_at == 0 and not self._step.cut:
            raise error_of(self._step, 0)

    async def stream(self) -> AsyncGenerator[ModelDelta, None]:
        for position, delta in enumerate(self._deltas):
            if position == self._gate_at > 0:
                await self._wait()
            if position == self._fail_at:
                raise error_of(self._step, position)
            yield delta

    async def _wait(self) -> None:
        if self._step.gate is not None:
            await self._step.gate.wait()
