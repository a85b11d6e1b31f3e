"""What every `ToolExecutor` must keep to, as tests."""

# ruff: noqa: S101 - these are tests; pytest rewrites their asserts

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, cast

import anyio
import pytest

from agentcore.errors import NotFound, ToolError, Unavailable
from agentcore.protocols.tools import ToolExecutor
from agentcore.types.actor import Actor
from agentcore.types.content import BlobRef
from agentcore.types.context import ToolContext
from agentcore.types.json import EMPTY, JsonObject, JsonValue
from agentcore.types.messages import Message
from agentcore.types.policy import Question
from agentcore.types.runs import RunView
from agentcore.types.tools import ToolCall, ToolResult
from agentcore.types.usage import RunUsage

Example: TypeAlias = tuple[str, JsonObject]
"""The name of a tool, and arguments it takes."""

PATIENCE = 10.0


class _View:
    """A run that has just begun (`RunView`)."""

    session_id = root_session_id = "session-1"
    run_id = "run-1"
    actors: tuple[Actor, ...] = ()
    usage = RunUsage()
    running_seconds = 0.0
    tool_uses: Mapping[str, int] = EMPTY
    messages: Sequence[Message] = ()
    state: Mapping[str, JsonValue] = EMPTY


class _Doors:
    """What the engine does for a tool (`ToolDoors`): here, next to nothing."""

    def progress(self, *_: object) -> None:
        """Shown to nobody."""

    async def record_process(self, *_: object) -> None:
        """Written nowhere."""

    async def save(self, data: bytes, media_type: str) -> BlobRef:
        """Kept nowhere."""
        return BlobRef("0" * 32, len(data), media_type)

    def late_result(self, *_: object) -> None:
        """Noted nowhere."""

    async def ask(self, call_id: str, question: Question) -> NoReturn:
        """Nobody is there."""
        raise ToolError(f"nobody answers {call_id}: {question.text}")


class ToolExecutorContract:
    """Subclass it as `Test…` with a fixture `executor`, not yet entered.

    With the fixture `example` (a tool and arguments for a call that succeeds) and
    `slow_example` (one that lasts until it is cancelled) more is tested.
    """

    @pytest.fixture
    def executor(self) -> ToolExecutor:
        """The executor under test, not entered."""
        raise NotImplementedError("override the fixture `executor`")

    @pytest.fixture
    def example(self) -> Example | None:
        """A tool and arguments whose call succeeds, any number of times."""
        return None

    @pytest.fixture
    def slow_example(self) -> Example | None:
        """A tool and arguments whose call lasts longer than any test."""
        return None

    @pytest.fixture
    def deps(self) -> Any:
        """What the tools expect in `ToolContext.deps`."""
        return None

    def run(
        self, executor: ToolExecutor, example: Example, deps: Any, call_id: str = "c-1"
    ) -> Any:
        """The coroutine of one call."""
        call = ToolCall(call_id, *example)
        context = ToolContext(deps, call, cast("RunView", _View()), _Doors())
        return executor.execute(call, context)

    async def test_entering_twice_and_again_keeps_it_usable(
        self, executor: ToolExecutor
    ) -> None:
        """Leaving the inner one closes nothing the outer one needs."""
        async with executor:
            async with executor:
                inner = await executor.list_tools()
            outer = await executor.list_tools()
        async with executor:
            again = await executor.list_tools()
        names = [[spec.name for spec in specs] for specs in (inner, outer, again)]
        assert names[0] == names[1] == names[2]

    async def test_tools_are_listed_by_unique_names_in_a_stable_order(
        self, executor: ToolExecutor
    ) -> None:
        """A changing list would cost the model its prompt cache."""
        async with executor:
            first = await executor.list_tools()
            second = await executor.list_tools(None)
        assert list(first) == list(second)
        names = [spec.name for spec in first]
        assert len(names) == len(set(names))
        for spec in first:
            assert spec.name
            assert spec.parameters.get("type") == "object"

    async def test_an_unknown_tool_is_refused(
        self, executor: ToolExecutor, deps: Any
    ) -> None:
        """By an error that says nothing ran, or by a failed result."""
        async with executor:
            try:
                result = await self.run(executor, ("no_such_tool", {}), deps)
            except (NotFound, Unavailable):
                return
        assert not result.ok

    async def test_a_call_gives_a_result(
        self, executor: ToolExecutor, example: Example | None, deps: Any
    ) -> None:
        """Of a tool that is listed."""
        if example is None:
            pytest.skip("no fixture `example`")
        async with executor:
            assert example[0] in [spec.name for spec in await executor.list_tools()]
            result = await self.run(executor, example, deps)
        assert isinstance(result, ToolResult)
        assert result.ok, result.text

    async def test_calls_run_side_by_side(
        self, executor: ToolExecutor, example: Example | None, deps: Any
    ) -> None:
        """Eight at once; each gets a result of its own."""
        if example is None:
            pytest.skip("no fixture `example`")
        results: dict[str, ToolResult] = {}

        async def one(call_id: str) -> None:
            results[call_id] = await self.run(executor, example, deps, call_id)

        async with executor:
            with anyio.fail_after(PATIENCE * 3):
                async with anyio.create_task_group() as group:
                    for n in range(8):
                        group.start_soon(one, f"c-{n}")
        assert len(results) == 8
        assert all(result.ok for result in results.values())

    async def test_a_cancelled_call_ends(
        self, executor: ToolExecutor, slow_example: Example | None, deps: Any
    ) -> None:
        """Promptly, and the executor still lists its tools afterwards."""
        if slow_example is None:
            pytest.skip("no fixture `slow_example`")
        async with executor:
            returned = False
            with anyio.fail_after(PATIENCE):
                with anyio.move_on_after(0.05) as scope:
                    await self.run(executor, slow_example, deps)
                    returned = True
            assert scope.cancelled_caught
            assert not returned
            await executor.list_tools()
