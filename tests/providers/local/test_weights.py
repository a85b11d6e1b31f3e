"""Weights: what a host gets from every state of cache, disk and network."""

import errno
import hashlib
import json
import logging
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.providers.local.range_server import FileServer

from agentcore.errors import ConfigError
from agentcore.providers.local import (
    Fetch,
    HubFile,
    LocalModelError,
    SourceError,
    Weights,
    WeightsSource,
    ensure_weights,
    find_or_download_weights,
    silent,
)

CONTENT = random.Random(7).randbytes(3_000_000)
WEIGHTS = Weights("small.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


class Seen:
    def __init__(self) -> None:
        self.calls: list[tuple[int, int, str]] = []

    def __call__(self, done: int, total: int, source: str) -> None:
        self.calls.append((done, total, source))

    def of(self, source: str) -> list[int]:
        return [done for done, _, name in self.calls if name == source]


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(CONTENT).running() as running:
        yield running


def hub(server: FileServer, name: str = "hub") -> HubFile:
    return HubFile(server.url, name=name, read_timeout_s=5.0)


def get(cache: Path, *sources: WeightsSource, seen: Seen | None = None) -> Path:
    return find_or_download_weights(
        weights=WEIGHTS, sources=sources, cache=cache, progress=seen or silent
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_download_is_whole_reported_and_leaves_only_the_file_and_its_lock(
    server: FileServer, tmp_path: Path
) -> None:
    seen = Seen()
    path = get(tmp_path / "new" / "cache", hub(server), seen=seen)
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == {"small.gguf", "small.gguf.lock"}
    done = seen.of("hub")
    assert done == sorted(done)
    assert done[-1] == len(CONTENT)
    assert {total for _, total, _ in seen.calls} == {len(CONTENT)}


def test_a_cached_file_is_used_without_any_source(
    server: FileServer, tmp_path: Path
) -> None:
    (tmp_path / "small.gguf").write_bytes(CONTENT)
    assert get(tmp_path) == tmp_path / "small.gguf"
    assert server.asked == []


def test_a_connection_cut_twice_is_continued_where_it_broke(
    server: FileServer, tmp_path: Path
) -> None:
    server.cut_after = [1_000_000, 500_000]
    seen = Seen()
    assert get(tmp_path, hub(server), seen=seen).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000000-", "bytes=1500000-"]
    assert seen.of("hub") == sorted(seen.of("hub"))


def test_a_download_that_failed_is_continued_by_the_next_call(
    server: FileServer, tmp_path: Path
) -> None:
    server.cut_after = [1_000_000, 0]
    with pytest.raises(LocalModelError):
        get(tmp_path, hub(server))
    assert (tmp_path / "small.gguf.part-hub").stat().st_size == 1_000_000
    server.asked.clear()
    assert get(tmp_path, hub(server)).read_bytes() == CONTENT
    assert server.asked == ["bytes=1000000-"]


def test_a_server_that_cannot_resume_sends_everything_again(
    server: FileServer, tmp_path: Path
) -> None:
    server.ranges = False
    (tmp_path / "small.gguf.part-hub").write_bytes(b"x" * 1000)
    assert get(tmp_path, hub(server)).read_bytes() == CONTENT


def test_other_bytes_than_the_published_ones_are_refused_and_removed(
    tmp_path: Path,
) -> None:
    with (
        FileServer(CONTENT[:-1] + b"!").running() as bad,
        pytest.raises(LocalModelError, match=r"hub: gave a file with another sha256"),
    ):
        get(tmp_path, hub(bad))
    assert names(tmp_path) == {"small.gguf.lock"}


def test_a_file_longer_than_the_published_one_is_refused(tmp_path: Path) -> None:
    with (
        FileServer(CONTENT + b"more").running() as bad,
        pytest.raises(LocalModelError, match="more bytes than the published file"),
    ):
        get(tmp_path, hub(bad))


def test_a_file_shorter_than_the_published_one_is_refused(tmp_path: Path) -> None:
    with (
        FileServer(CONTENT[:1000]).running() as bad,
        pytest.raises(LocalModelError, match="HTTP 416"),
    ):
        get(tmp_path, hub(bad))


def test_wrong_bytes_left_by_an_earlier_download_are_replaced_in_the_same_call(
    server: FileServer, tmp_path: Path
) -> None:
    (tmp_path / "small.gguf.part-hub").write_bytes(b"x" * 1000)
    assert get(tmp_path, hub(server)).read_bytes() == CONTENT
    assert server.asked == ["bytes=1000-", None]


@pytest.mark.parametrize("damage", [CONTENT[:-1] + b"!", CONTENT[:-1], b""])
def test_a_damaged_cached_file_is_replaced_and_the_user_is_told(
    server: FileServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: bytes,
) -> None:
    (tmp_path / "small.gguf").write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert get(tmp_path, hub(server)).read_bytes() == CONTENT
    assert "does not have the published sha256" in caplog.text


def test_a_damaged_cached_file_is_never_returned_when_nothing_replaces_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "small.gguf").write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(LocalModelError, match="no source was given"):
        get(tmp_path)
    assert not (tmp_path / "small.gguf").exists()


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_a_refusal_leads_to_the_next_source(
    server: FileServer, tmp_path: Path, status: int
) -> None:
    with FileServer(b"", status=status).running() as refusing:
        path = get(tmp_path, hub(refusing, "first"), hub(server, "second"))
    assert path.read_bytes() == CONTENT
    assert refusing.asked == [None]


def test_an_unreachable_host_leads_to_the_next_source_at_once(
    server: FileServer, tmp_path: Path
) -> None:
    with FileServer(b"").running() as gone:
        pass
    begun = time.monotonic()
    unknown = HubFile("http://no-such-host.invalid/m", name="unknown")
    path = get(tmp_path, hub(gone, "gone"), unknown, hub(server))
    assert path.read_bytes() == CONTENT
    assert time.monotonic() - begun < 5


def test_a_host_that_never_answers_leads_to_the_next_source(
    server: FileServer, tmp_path: Path
) -> None:
    with FileServer(b"", silent=True).running() as mute:
        first = HubFile(mute.url, name="mute", read_timeout_s=0.2)
        assert get(tmp_path, first, hub(server)).read_bytes() == CONTENT


def test_what_a_failed_source_left_is_removed_when_another_one_succeeds(
    server: FileServer, tmp_path: Path
) -> None:
    with FileServer(CONTENT, cut_after=[1_000_000, 0]).running() as broken:
        get(tmp_path, hub(broken, "first"), hub(server, "second"))
    assert names(tmp_path) == {"small.gguf", "small.gguf.lock"}


def test_when_all_sources_fail_one_error_names_each_and_the_next_step(
    tmp_path: Path,
) -> None:
    with (
        FileServer(b"", status=403).running() as a,
        FileServer(b"", status=404).running() as b,
        pytest.raises(ConfigError) as caught,
    ):
        get(tmp_path, hub(a, "a"), hub(b, "b"))
    text = str(caught.value)
    assert "a: answered HTTP 403" in text
    assert "b: answered HTTP 404" in text
    assert "pass model_path=" in text
    assert str(tmp_path) in text


class FullDisk:
    name = "full"

    def fetch(self, job: Fetch) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_ends_the_search_and_says_what_to_do(
    server: FileServer, tmp_path: Path
) -> None:
    with pytest.raises(LocalModelError, match=r"No space left.*pass cache="):
        get(tmp_path, FullDisk(), hub(server))
    assert server.asked == []


def test_a_cache_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LocalModelError, match="pass cache="):
        get(tmp_path / "file" / "cache")


def test_a_progress_callback_that_raises_ends_the_download_and_keeps_its_bytes(
    server: FileServer, tmp_path: Path
) -> None:
    def enough(done: int, total: int, source: str) -> None:
        if done > 1_500_000:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        find_or_download_weights(
            weights=WEIGHTS, sources=[hub(server)], cache=tmp_path, progress=enough
        )
    assert (tmp_path / "small.gguf.part-hub").stat().st_size > 1_000_000


def test_a_model_of_the_hosts_own_is_taken_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    with pytest.raises(LocalModelError, match=r"no model file .*mine\.gguf"):
        find_or_download_weights(mine)
    mine.write_bytes(b"GGUF")
    assert find_or_download_weights(mine) == mine


@pytest.mark.parametrize(
    ("xdg", "expected"),
    [("{}/xdg", "xdg"), ("", ".cache"), ("relative", ".cache"), (None, ".cache")],
)
def test_the_default_cache_is_the_users_cache_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    xdg: str | None,
    expected: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg.format(tmp_path))
    cached = tmp_path / expected / "agentcore" / "models" / "small.gguf"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT)
    found = find_or_download_weights(weights=WEIGHTS, sources=(), progress=silent)
    assert found == cached


PROCESS = """
import json, sys
from pathlib import Path
from agentcore.providers.local import *
a = json.loads(sys.argv[1])
seen = []
def progress(done, total, source):
    if source not in seen:
        seen.append(source)
        print(source, flush=True)
find_or_download_weights(
    weights=Weights(*a["weights"]), sources=[HubFile(a["url"])],
    cache=Path(a["cache"]), progress=progress)
print("ok", flush=True)
"""


def download_in_process(server: FileServer, cache: Path) -> "subprocess.Popen[str]":
    weights = [WEIGHTS.file_name, WEIGHTS.size, WEIGHTS.sha256]
    order = {"url": server.url, "cache": str(cache), "weights": weights}
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, json.dumps(order)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_download_once_and_both_get_the_whole_file(
    server: FileServer, tmp_path: Path
) -> None:
    server.chunk_pause_s = 0.05
    first = download_in_process(server, tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline() == "hub\n"
    second = download_in_process(server, tmp_path)
    out_first, _ = first.communicate(timeout=60)
    out_second, _ = second.communicate(timeout=60)
    assert out_first == "ok\n"
    assert out_second == "waiting for another process that downloads it\nok\n"
    assert server.asked == [None]
    assert (tmp_path / "small.gguf").read_bytes() == CONTENT


def test_a_killed_download_frees_the_lock_and_is_continued(
    server: FileServer, tmp_path: Path
) -> None:
    server.chunk_pause_s = 0.02
    victim = download_in_process(server, tmp_path)
    part = tmp_path / "small.gguf.part-hub"
    while not part.exists() or part.stat().st_size < 1_000_000:
        assert victim.poll() is None
        time.sleep(0.01)
    victim.kill()
    victim.communicate()
    have = part.stat().st_size
    server.chunk_pause_s = 0
    assert get(tmp_path, hub(server)).read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={have}-"]


async def test_a_cancelled_task_stops_the_download_and_keeps_its_bytes(
    server: FileServer, tmp_path: Path
) -> None:
    server.chunk_pause_s = 0.1
    begun = time.monotonic()
    with anyio.move_on_after(1.5) as scope:
        await ensure_weights(
            weights=WEIGHTS, sources=[hub(server)], cache=tmp_path, progress=silent
        )
    assert scope.cancelled_caught
    assert time.monotonic() - begun < 4
    assert not (tmp_path / "small.gguf").exists()
    server.chunk_pause_s = 0
    path = await ensure_weights(
        weights=WEIGHTS, sources=[hub(server)], cache=tmp_path, progress=silent
    )
    assert path.read_bytes() == CONTENT


class Broken:
    name = "broken"

    def fetch(self, job: Fetch) -> None:
        raise SourceError("is out of order")


async def test_errors_reach_an_async_caller_bare(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="broken: is out of order"):
        await ensure_weights(
            weights=WEIGHTS, sources=[Broken()], cache=tmp_path, progress=silent
        )


def test_importing_loads_neither_the_http_client_nor_the_native_library() -> None:
    code = (
        "import sys, agentcore.providers.local\n"
        "assert not {'httpx', 'xllamacpp'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
