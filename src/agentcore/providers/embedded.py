"""The embedded model as a `Model`: weights, server and wire format put together.

Needs the extra `local`. The server belongs to the model object: the first to enter
starts it, the last to leave stops it, whatever event loop or thread they are on.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio
from typing_extensions import override

from agentcore.errors import Unreachable
from agentcore.providers.local import (
    MODEL_ID,
    LocalModelError,
    LocalServer,
    Progress,
    ServerLimits,
)
from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.types.model import ModelCapabilities, ModelDelta, ModelRequest
from agentcore.types.options import NO_OPTIONS, Options

DEFAULT_NAME: Final = "qwen2.5-coder-1.5b"
"""What `id` calls the model that is downloaded where no path is given."""

_READ_SECONDS: Final = 600.0
"""A long prompt takes minutes on one core before the first word comes."""
_TURN_SECONDS: Final = 0.02


class EmbeddedModel:
    """A small model on this machine: no account, no key, no network once it is there.

    Entering makes sure of the weights (see `find_or_download_weights`), starts
    llama.cpp's server on loopback and waits until it answers; an agent does that at its
    first run. Entering is counted and shared: the last to leave stops the server. Keep
    it running between runs with `async with agent:` or `async with model:`.

    Args:
        model_path: a GGUF file. Default: Qwen2.5-Coder-1.5B-Instruct, found in the
            user's cache folder or downloaded once (1.1 GB).
        cache: folder of the weights, `progress`: told while they are downloaded; both
            as in `find_or_download_weights`.
        template: chat template (Jinja text); as in `LocalServer`.
        limits: threads, context window, patience.
        log: file for the server's output; as in `LocalServer`.
        options: defaults for every request; the request's own options lie over them.
    """

    def __init__(
        self,
        model_path: Path | str | None = None,
        *,
        cache: Path | None = None,
        progress: Progress | None = None,
        template: str | None = None,
        limits: ServerLimits | None = None,
        log: Path | None = None,
        options: Options = NO_OPTIONS,
    ) -> None:
        path = None if model_path is None else Path(model_path)
        limits = limits or ServerLimits()
        self._id = f"local:{DEFAULT_NAME if path is None else path.stem}"
        self._capabilities = ModelCapabilities(
            parallel_tool_calls=False, json_schema=True, context_window=limits.context
        )
        self._options = options
        self._server = LocalServer(
            path,
            template=template,
            limits=limits,
            log=log,
            cache=cache,
            progress=progress,
        )
        # Enters may come from several threads with an event loop each.
        self._turn = threading.Lock()
        self._users = 0
        self._wire: OpenAIChatModel | None = None

    @property
    def id(self) -> str:
        """`local:` and the model's name, as stored in the journal."""
        return self._id

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it can take and give."""
        return self._capabilities

    @property
    def server(self) -> LocalServer:
        """Its server: address, process id and log file while it runs."""
        return self._server

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._id!r})"

    async def __aenter__(self) -> Self:
        """Start the server, or share the one that runs.

        Raises:
            LocalModelError: the extra is not installed, the weights cannot be had, or
                the server does not start. No process is left behind.
        """
        async with self._alone():
            wire = self._wire or await self._start()
            try:
                await wire.__aenter__()
            except BaseException:
                if not self._users:
                    await self._stop()
                raise
            self._users += 1
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server if nobody else uses it; not interrupted by cancellation."""
        with anyio.CancelScope(shield=True):
            async with self._alone():
                wire = self._wire
                self._users -= 1
                try:
                    if wire is not None:
                        await wire.__aexit__(exc_type, exc, traceback)
                finally:
                    if not self._users:
                        await self._stop()

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[ModelDelta]]:
        """Send one request; as `OpenAIChatModel.stream`.

        Raises:
            LocalModelError: the model has not been entered.
            Unreachable: its server has died; the message holds the end of its log. It
                is not retryable: leave the model and enter it again.
            ProviderError: as `OpenAIChatModel.stream`.
        """
        return self._stream(request)

    @asynccontextmanager
    async def _stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncIterator[ModelDelta], None]:
        wire = self._wire
        if wire is None:
            raise LocalModelError(
                "The embedded model is not running. Use it inside `async with`, or "
                "give it to an agent, which enters it."
            )
        try:
            _ = self._server.base_url
        except LocalModelError as death:
            raise Unreachable(str(death), retryable=False) from death
        async with wire.stream(request) as deltas:
            yield deltas

    async def _start(self) -> OpenAIChatModel:
        await self._server.__aenter__()
        self._wire = OpenAIChatModel(
            MODEL_ID,
            base_url=self._server.base_url,
            options=self._options,
            capabilities=self._capabilities,
            http_timeout=_READ_SECONDS,
            provider="llamacpp",
        )
        return self._wire

    async def _stop(self) -> None:
        self._wire = None
        await self._server.__aexit__(None, None, None)

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None, None]:
        """One at a time, across event loops: what anyio has belongs to one loop."""
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110 - see above
            await anyio.sleep(_TURN_SECONDS)
        try:
            yield
        finally:
            self._turn.release()


__all__ = ["EmbeddedModel"]
