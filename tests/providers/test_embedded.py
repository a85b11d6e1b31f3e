"""The embedded model as an agent sees it: started when entered, stopped when left."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from agentcore import ConfigError, Options, ToolLoopAgent, tool
from agentcore.errors import Unreachable
from agentcore.protocols.model import Model
from agentcore.providers import resolve_model
from agentcore.providers.embedded import EmbeddedModel
from agentcore.providers.local import (
    LocalModelError,
    find_or_download_weights,
    qwen_template,
)
from agentcore.types.messages import user_text
from agentcore.types.model import ModelRequest

SHORT = Options(temperature=0, max_tokens=60)
HELLO = ModelRequest([user_text("Say hello.")], options=Options(max_tokens=8))


@pytest.fixture(scope="session")
def weights() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    try:
        return find_or_download_weights()
    except LocalModelError as error:
        pytest.skip(f"the weights of the local model cannot be had: {error}")


@pytest.fixture
def model(weights: Path, tmp_path: Path) -> EmbeddedModel:
    return EmbeddedModel(
        weights, template=qwen_template(), log=tmp_path / "log", options=SHORT
    )


def running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_says_what_it_is_before_anything_is_started() -> None:
    model: Model = EmbeddedModel()
    assert model.id == "local:qwen2.5-coder-1.5b"
    assert model.capabilities.context_window == 8192
    assert EmbeddedModel("a/tiny.gguf").id == "local:tiny"
    assert repr(model) == "EmbeddedModel('local:qwen2.5-coder-1.5b')"


def test_its_name_makes_it() -> None:
    assert isinstance(resolve_model("local:qwen2.5-coder-1.5b"), EmbeddedModel)


def test_another_local_name_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"EmbeddedModel\(path\)"):
        resolve_model("local:other")


async def test_a_missing_file_fails_the_run_before_it_starts(tmp_path: Path) -> None:
    agent = ToolLoopAgent(EmbeddedModel(tmp_path / "none.gguf"))
    with pytest.raises(LocalModelError, match="There is no model file"):
        await agent.run("Hello!")


async def test_a_request_without_entering_says_what_to_do() -> None:
    with pytest.raises(LocalModelError, match="async with"):
        async with EmbeddedModel().stream(HELLO):
            pass


@pytest.mark.live
async def test_an_agent_calls_a_tool_and_leaves_no_server(model: EmbeddedModel) -> None:
    seen: list[str] = []

    @tool(effects="none", replay="safe")
    async def get_weather(city: str) -> str:
        """Get the current weather for a city.

        Args:
            city: Name of the city.
        """
        seen.append(city)
        return f"Sunny in {city}, 24 degrees."

    agent = ToolLoopAgent(
        model, tools=[get_weather], options=Options(tool_choice="required")
    )
    async with agent:
        pid = model.server.pid
        assert pid is not None
        result = await agent.run("What is the weather in Paris?")

    assert result.stop.status == "completed"
    assert seen == ["Paris"]
    assert result.output
    assert result.usage.input_tokens > 0
    assert not running(pid)


@pytest.mark.live
async def test_all_who_enter_share_one_server(model: EmbeddedModel) -> None:
    pids: list[int | None] = []
    both, done = anyio.Event(), anyio.Event()

    async def use() -> None:
        async with model:
            pids.append(model.server.pid)
            if len(pids) == 2:
                both.set()
            await done.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(use)
        group.start_soon(use)
        await both.wait()
        done.set()

    assert pids[0] is not None
    assert pids[0] == pids[1]
    assert not running(pids[0])


@pytest.mark.live
async def test_a_dead_server_is_no_reason_to_try_again(model: EmbeddedModel) -> None:
    async with model:
        pid = model.server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while _answers(model):  # noqa: ASYNC110 - another process sets no event
            await anyio.sleep(0.01)
        with pytest.raises(Unreachable, match="ended by itself") as caught:
            async with model.stream(HELLO):
                pass
    assert not caught.value.retryable


def _answers(model: EmbeddedModel) -> bool:
    try:
        return bool(model.server.base_url)
    except LocalModelError:
        return False


async def test_without_the_extra_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    cache = tmp_path / "cache"
    with pytest.raises(LocalModelError, match=r"pip install -e '.\[local\]'"):
        await EmbeddedModel(cache=cache).__aenter__()
    assert not cache.exists()
