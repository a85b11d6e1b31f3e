"""The server's life: started, asked, ended with its parent; every failure explained."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore.providers.local import (
    LocalModelError,
    LocalServer,
    ServerLimits,
    find_or_download_weights,
    qwen_template,
)

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather for a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}

PARENT = """
import os, sys, threading, time
from pathlib import Path
from agentcore.providers.local import *
server = LocalServer(Path(sys.argv[1]), log=Path(sys.argv[2]))
def tell():
    while server.pid is None:
        time.sleep(0.01)
    print(server.pid, flush=True)
threading.Thread(target=tell, daemon=True).start()
with server:
    if sys.argv[3] == "forked" and os.fork() == 0:
        os.close(1)
        time.sleep(10)
        os._exit(0)
    print(server.base_url, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="session")
def model() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    try:
        return find_or_download_weights()
    except LocalModelError as error:
        pytest.skip(f"the weights of the local model cannot be had: {error}")


@pytest.fixture
def garbage(tmp_path: Path) -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    path = tmp_path / "garbage.gguf"
    path.write_bytes(b"no model at all" * 1000)
    return path


def gone(pid: int) -> bool:
    """Whether nothing is left of the process, not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


def ended(pid: int) -> bool:
    """Whether the process is gone, or a zombie that its new parent did not fetch."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.02)


def port_is_free(url: str) -> bool:
    port = urllib.parse.urlsplit(url).port
    assert port is not None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def ask(base_url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=240) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


# --- without weights --------------------------------------------------------------


def test_a_file_that_is_no_model_is_explained_with_the_logs_end(garbage: Path) -> None:
    server = LocalServer(garbage)
    with pytest.raises(LocalModelError) as caught, server:
        pass
    text = str(caught.value)
    assert "ended by itself (exit code 1)" in text
    assert str(server.log) in text
    assert "invalid magic characters" in text
    assert f"Check that {garbage} is a whole GGUF model" in text
    assert server.pid is None
    assert server.log is not None
    assert "invalid magic characters" in server.log.read_text()
    server.log.unlink()


async def test_an_async_caller_gets_the_same_error(
    garbage: Path, tmp_path: Path
) -> None:
    with pytest.raises(LocalModelError, match="invalid magic characters"):
        async with LocalServer(garbage, log=tmp_path / "log"):
            pass


def test_a_given_log_is_appended_to_and_only_its_new_lines_are_told(
    garbage: Path, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_text("from an earlier start\n")
    with (
        pytest.raises(LocalModelError) as caught,
        LocalServer(garbage, log=log),
    ):
        pass
    assert "earlier" not in str(caught.value)
    assert log.read_text().startswith("from an earlier start\n")


def test_a_log_that_cannot_be_written_is_named(garbage: Path, tmp_path: Path) -> None:
    log = tmp_path / "no" / "folder" / "log"
    with (
        pytest.raises(LocalModelError, match=r"log .*/no/folder/log.*Pass log="),
        LocalServer(garbage, log=log),
    ):
        pass


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with (
        pytest.raises(LocalModelError, match=r"pip install -e '.\[local\]'"),
        LocalServer(tmp_path / "model.gguf"),
    ):
        pass


def test_outside_of_with_there_is_no_address() -> None:
    server = LocalServer()
    assert server.pid is None
    assert server.log is None
    with pytest.raises(LocalModelError, match="Use it inside `with`"):
        _ = server.base_url


# --- with the real model ----------------------------------------------------------


@pytest.fixture
def server(model: Path, tmp_path: Path) -> Iterator[LocalServer]:
    log = tmp_path / "server.log"
    with LocalServer(model, template=qwen_template(), log=log) as running:
        yield running


@pytest.mark.live
@pytest.mark.usefixtures("model")
def test_the_default_model_calls_a_tool_and_the_port_is_free_afterwards() -> None:
    # Everything by default: weights from the cache, template, limits, log.
    with LocalServer() as server:
        url, pid = server.base_url, server.pid
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url)
        body = {
            "model": "local",
            "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
            "tools": [WEATHER],
            "tool_choice": "required",
            "max_tokens": 64,
        }
        message = ask(url, body)["choices"][0]["message"]
    [call] = message["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"])["city"] == "Paris"
    assert pid is not None
    assert gone(pid)
    assert port_is_free(url)
    assert server.pid is None
    assert server.log is not None
    assert "listening on" in server.log.read_text()
    server.log.unlink()


@pytest.mark.live
def test_a_server_killed_from_outside_is_explained(server: LocalServer) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(LocalModelError, match=r"(?s)code -9.*listening on.*killed"):
        until(lambda: not server.base_url, 5)


@pytest.mark.live
def test_a_second_start_is_refused_and_leaves_the_first_running(
    server: LocalServer,
) -> None:
    with pytest.raises(LocalModelError, match="running already"), server:
        pass
    assert server.base_url


@pytest.mark.live
async def test_an_async_host_starts_and_stops_it(model: Path, tmp_path: Path) -> None:
    async with LocalServer(model, log=tmp_path / "log") as server:
        pid, url = server.pid, server.base_url
        with pytest.raises(LocalModelError, match="running already"):
            async with server:
                pass
        assert server.base_url == url
    assert pid is not None
    assert gone(pid)
    assert port_is_free(url)


@pytest.mark.live
async def test_a_cancelled_start_leaves_no_process(model: Path, tmp_path: Path) -> None:
    server = LocalServer(model, log=tmp_path / "log")
    pids: list[int] = []
    async with anyio.create_task_group() as group:

        async def start() -> None:
            async with server:
                await anyio.sleep_forever()

        group.start_soon(start)
        while server.pid is None:  # noqa: ASYNC110 - it sets no event
            await anyio.sleep(0.01)
        pids.append(server.pid)
        group.cancel_scope.cancel()
    assert server.pid is None
    assert gone(pids[0])


@pytest.mark.live
def test_a_server_that_is_not_ready_in_time_is_ended_and_explained(
    model: Path, tmp_path: Path
) -> None:
    with (
        pytest.raises(LocalModelError, match=r"did not answer within 0\.1 s"),
        LocalServer(
            model, limits=ServerLimits(start_timeout_s=0.1), log=tmp_path / "log"
        ) as server,
    ):
        assert server.pid is None


@pytest.mark.live
@pytest.mark.parametrize("when", ["loading", "serving", "forked"])
def test_the_server_ends_when_its_parent_is_killed(
    model: Path, tmp_path: Path, when: str
) -> None:
    log = tmp_path / "log"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(model), str(log), when],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        url = parent.stdout.readline().strip() if when != "loading" else None
        until(lambda: "loading model" in log.read_text(), 60)
        assert not ended(pid)
        os.kill(parent.pid, signal.SIGKILL)
        # A second is far less than the rest of the loading takes.
        until(lambda: ended(pid), 3.0 if when == "forked" else 1.0)
        if url is not None:
            until(lambda: port_is_free(url), 1.0)
    finally:
        parent.kill()
        parent.communicate()
