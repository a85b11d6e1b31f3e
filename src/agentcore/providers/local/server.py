"""The embedded model's HTTP server as a context manager, on loopback.

It speaks the OpenAI chat format; what is said to it is no concern of this module.
"""

import dataclasses
import importlib.resources
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from agentcore.providers.local._child import Child, new_log, site_of_xllamacpp
from agentcore.providers.local._errors import LocalModelError
from agentcore.providers.local._threads import Check, go_on, run_stoppable
from agentcore.providers.local.progress import Progress
from agentcore.providers.local.weights import (
    ensure_weights,
    find_or_download_weights,
)

MODEL_ID = "local"
"""The model's name on the wire, whatever file is served."""


def qwen_template() -> str:
    """Return the chat template that makes the default model call tools reliably."""
    files = importlib.resources.files(__package__)
    return (files / "qwen_json_tools.jinja").read_text(encoding="utf-8")


@dataclasses.dataclass(frozen=True, slots=True)
class ServerLimits:
    """What the server may take."""

    threads: int = 1
    """CPU threads; more than the idle cores of the machine makes it slower."""
    context: int = 8192
    """Tokens of prompt and answer together; memory grows with it."""
    start_timeout_s: float = 120.0
    """Seconds from the start of the process until it answers."""


class LocalServer:
    """llama.cpp's HTTP server in a child process, from the wheel of the extra `local`.

    A context manager, sync or async; `with` waits until the server answers and stops it
    at the end. It also ends when this process ends, even by `kill -9`. One request is
    served at a time, greedily (temperature 0) unless a request says otherwise.

    Args:
        model_path: GGUF file to serve. Default: `find_or_download_weights()`.
        template: chat template (Jinja text). Default: the one in the GGUF file, and
            `qwen_template()` for the default model.
        limits: threads, context window, patience.
        log: file the server's output is appended to. Default: a new file in the
            system's folder for temporary files; it is kept.
        cache, progress: as in `find_or_download_weights`.
    """

    def __init__(
        self,
        model_path: Path | None = None,
        *,
        template: str | None = None,
        limits: ServerLimits | None = None,
        log: Path | None = None,
        cache: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        if template is None and model_path is None:
            template = qwen_template()
        self._model_path = model_path
        self._template = template
        self._limits = limits or ServerLimits()
        self._log = log
        self._cache = cache
        self._progress = progress
        self._child: Child | None = None
        # A cancelled `async with` stops what its thread may still be starting.
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """URL of the OpenAI-compatible API, up to and with `/v1`.

        Raises:
            LocalModelError: the server is not running: it was not started yet, it was
                stopped, or it died, and then the message holds the end of its log.
        """
        child = self._child
        if child is None:
            raise LocalModelError(
                "The local model server is not running. Use it inside `with`."
            )
        if child.dead:
            raise child.death()
        return f"{child.address}/v1"

    @property
    def pid(self) -> int | None:
        """Process id of the server, None while there is none."""
        return self._child.pid if self._child else None

    @property
    def log(self) -> Path | None:
        """File with the server's output; None before the first start, if none given."""
        return self._log

    def __enter__(self) -> Self:
        """Start the server and wait until it answers; blocks for seconds.

        Raises:
            LocalModelError: it is started already, a part is missing, the weights
                cannot be had, or the server died or did not answer in time. No process
                is left behind.
        """
        self._refuse_useless_download()
        model = find_or_download_weights(
            self._model_path, cache=self._cache, progress=self._progress
        )
        self._start(model, go_on)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server; its process is gone and its port free after that."""
        self._stop()

    async def __aenter__(self) -> Self:
        """Do as `__enter__`, in a worker thread that a cancelled task stops."""
        self._refuse_useless_download()
        model = await ensure_weights(
            self._model_path, cache=self._cache, progress=self._progress
        )
        self._refuse_second_start()
        try:
            await run_stoppable(lambda check: self._start(model, check))
        except BaseException:
            # A start that was done just when the task was cancelled.
            await self._stop_in_thread()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do as `__exit__`, in a worker thread; not interrupted by cancellation."""
        await self._stop_in_thread()

    async def _stop_in_thread(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._stop)

    def _refuse_useless_download(self) -> None:
        if self._model_path is None:
            site_of_xllamacpp()  # nobody should wait for a gigabyte to read of this

    def _refuse_second_start(self) -> None:
        if self._child is not None:
            raise LocalModelError(
                "This local model server is running already. Make another LocalServer "
                "for a second one."
            )

    def _start(self, model: Path, check: Check) -> None:
        with self._lock:
            self._refuse_second_start()
            site = site_of_xllamacpp()
            self._log = self._log or new_log()
            self._child = Child(
                {
                    "model": str(model.absolute()),
                    "alias": MODEL_ID,
                    "template": self._template,
                    "threads": self._limits.threads,
                    "context": self._limits.context,
                    "site": site,
                },
                self._log,
            )
            try:
                self._child.wait_until_ready(self._limits.start_timeout_s, check)
            except BaseException:
                self._end()
                raise

    def _stop(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()
