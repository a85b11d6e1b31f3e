"""The contract of a language model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agentcore.types.model import ModelCapabilities, ModelDelta, ModelRequest


class Model(Protocol):
    """One model behind one wire format. It streams, and only streams."""

    @property
    def id(self) -> str:
        """`provider:name`, as stored in the journal."""
        ...

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it can take and give."""
        ...

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[ModelDelta]]:
        """Send one request; iterate the deltas; the last one is `ResponseDone`.

        Leaving the context early closes the connection. A model never retries: attempts
        belong to the engine, which records and charges each (settled 36).

        Raises:
            ProviderError: the only kind of error it raises. `Unreachable` lets you
                conclude that the request never arrived; `in_stream=True` that output
                had already been shown.
        """
        ...
