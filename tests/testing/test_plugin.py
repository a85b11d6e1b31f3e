"""No test sends a real model request by accident, whatever it runs in."""

import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from agentcore._base.guard import REAL_REQUESTS_ALLOWED
from agentcore.errors import ConfigError
from agentcore.providers._http import HttpPool
from agentcore.testing import forbid_model_requests


@pytest.fixture(scope="module")
async def old_loop() -> AsyncIterator[None]:
    """Keeps one event loop alive for the module: its context is older than the test."""
    yield
    await anyio.lowlevel.checkpoint()


@pytest.fixture(scope="session")
def early() -> bool:
    """What a fixture sees that is set up before any fixture of a single test."""
    return REAL_REQUESTS_ALLOWED.get()


def seen_in_a_new_thread() -> bool:
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(REAL_REQUESTS_ALLOWED.get()))
    thread.start()
    thread.join()
    return seen[0]


DURING_COLLECTION = REAL_REQUESTS_ALLOWED.get()


def test_requests_are_forbidden_in_a_test_a_fixture_and_a_thread(early: bool) -> None:
    assert not REAL_REQUESTS_ALLOWED.get()
    assert not early
    assert not DURING_COLLECTION
    assert not seen_in_a_new_thread()


async def test_requests_are_forbidden_on_every_event_loop() -> None:
    assert not REAL_REQUESTS_ALLOWED.get()
    assert not await anyio.to_thread.run_sync(REAL_REQUESTS_ALLOWED.get)


@pytest.mark.usefixtures("old_loop")
class TestOnALoopThatOutlivesTheTest:
    async def test_requests_are_forbidden(self) -> None:
        assert not REAL_REQUESTS_ALLOWED.get()

    @pytest.mark.usefixtures("allow_model_requests")
    async def test_the_fixture_lifts_the_guard(self) -> None:
        assert REAL_REQUESTS_ALLOWED.get()
        assert seen_in_a_new_thread()

    @pytest.mark.live
    async def test_the_marker_lifts_the_guard(self) -> None:
        assert REAL_REQUESTS_ALLOWED.get()

    async def test_afterwards_they_are_forbidden_again(self) -> None:
        assert not REAL_REQUESTS_ALLOWED.get()


@pytest.mark.usefixtures("allow_model_requests")
async def test_a_context_may_forbid_them_for_itself() -> None:
    with forbid_model_requests():
        assert not REAL_REQUESTS_ALLOWED.get()
        assert not await anyio.to_thread.run_sync(REAL_REQUESTS_ALLOWED.get)
    assert REAL_REQUESTS_ALLOWED.get()


def test_a_context_cannot_allow_what_the_process_forbids() -> None:
    token = REAL_REQUESTS_ALLOWED.set(True)
    assert not REAL_REQUESTS_ALLOWED.get()
    REAL_REQUESTS_ALLOWED.reset(token)


async def test_a_provider_refuses_to_send_and_says_what_to_do() -> None:
    # `.invalid` never resolves: without the guard this would be `Unreachable`.
    pool = HttpPool("https://model.invalid/v1")
    with pytest.raises(ConfigError, match="ScriptedModel"):
        async with pool.post("/chat", b"{}", {}):
            pass


HOST_TEST = """
import pytest
from agentcore._base.guard import REAL_REQUESTS_ALLOWED

def test_guarded():
    assert not REAL_REQUESTS_ALLOWED.get()

@pytest.mark.live
def test_live():
    assert REAL_REQUESTS_ALLOWED.get()

def test_lifted(allow_model_requests):
    assert REAL_REQUESTS_ALLOWED.get()

def test_cheap(request):
    import sys
    assert "httpx" not in sys.modules
    assert "agentcore.testing.scripted" not in sys.modules
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_host.py").write_text(HOST_TEST, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_host_project_is_guarded_just_by_installing_agentcore(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, "--strict-markers", "-W", "error", "-p", "no:anyio")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_host_project_can_turn_the_plugin_off(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, "-p", "no:agentcore", "-k", "test_guarded")
    assert "1 failed" in result.stdout, result.stdout + result.stderr


def test_the_guard_comes_down_when_pytest_has_finished(tmp_path: Path) -> None:
    code = (
        "import pytest; from agentcore._base.guard import REAL_REQUESTS_ALLOWED as r\n"
        "pytest.main(['--co', '-q']); print('after', r.get())"
    )
    output = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path)
    assert output.decode().endswith("after True\n")
