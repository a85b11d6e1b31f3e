"""Whoever leaves a stream in its middle leaves nothing to the garbage collector.

trio reports an async generator that is collected before its end, and on asyncio it is
closed at some later moment by a task nobody knows.
"""

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from tests.wire.openai_chat.raw_server import (
    HELLO,
    Answer,
    event,
    hanging,
    plain,
    said,
    serving,
    streaming,
)

from agentcore import MemoryRunStore, TextDelta, ToolLoopAgent
from agentcore.errors import ProviderError
from agentcore.providers.openai_chat import OpenAIChatModel
from agentcore.types.messages import user_text
from agentcore.types.model import ModelRequest

REQUEST = ModelRequest([user_text("hi")])
HALF = (said("Hel"), said("lo"))


@contextmanager
def collected() -> Iterator[list[str]]:
    """Names of the async generators that begin inside and are left to be collected."""
    before = sys.get_asyncgen_hooks()
    names: list[str] = []

    def finalize(generator: Any) -> None:
        names.append(generator.__qualname__)
        if before.finalizer is not None:
            before.finalizer(generator)

    sys.set_asyncgen_hooks(before.firstiter, finalize)
    try:
        yield names
        gc.collect()
    finally:
        sys.set_asyncgen_hooks(*before)


async def drain(model: OpenAIChatModel) -> None:
    async with model.stream(REQUEST) as deltas:
        async for _ in deltas:
            pass


async def read_to_its_end(model: OpenAIChatModel) -> None:
    await drain(model)


async def leave(model: OpenAIChatModel) -> None:
    async with model.stream(REQUEST) as deltas:
        await anext(deltas)


async def leave_unread(model: OpenAIChatModel) -> None:
    async with model.stream(REQUEST):
        pass


async def fail_inside(model: OpenAIChatModel) -> None:
    async def fail() -> None:
        async with model.stream(REQUEST) as deltas:
            await anext(deltas)
            raise LookupError("the caller's own")

    with pytest.raises(LookupError):
        await fail()


async def be_cancelled(model: OpenAIChatModel) -> None:
    with anyio.move_on_after(0.1) as scope:
        await drain(model)
    assert scope.cancelled_caught


async def be_cancelled_between_pieces(model: OpenAIChatModel) -> None:
    with anyio.CancelScope() as scope:
        async with model.stream(REQUEST) as deltas:
            await anext(deltas)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def be_refused(model: OpenAIChatModel) -> None:
    with pytest.raises(ProviderError):
        await drain(model)


async def silent(stream: SocketStream) -> None:
    await anyio.sleep_forever()


ENDS: dict[str, tuple[Answer, Callable[[OpenAIChatModel], Awaitable[None]]]] = {
    "read to its end": (streaming(*HELLO), read_to_its_end),
    "left": (hanging(*HALF), leave),
    "left, and more to come": (streaming(*HELLO), leave),
    "left unread": (hanging(*HALF), leave_unread),
    "left by an error": (hanging(*HALF), fail_inside),
    "cancelled while it waits": (hanging(*HALF), be_cancelled),
    "cancelled before an answer": (silent, be_cancelled),
    "cancelled between pieces": (hanging(*HALF), be_cancelled_between_pieces),
    "cut": (streaming(*HALF, finish=False), be_refused),
    "no JSON": (hanging(*HALF, b"data: {oops}\n\n"), be_refused),
    "an error inside": (hanging(*HALF, event({"error": "it broke"})), be_refused),
    "an error status": (plain("500 No", b"{}"), be_refused),
    "a long error body": (plain("500 No", b"x" * 1_000_000), be_refused),
}


@pytest.mark.parametrize("end", ENDS)
async def test_no_generator_is_left_to_the_collector(end: str) -> None:
    answer, ask = ENDS[end]
    with collected() as names:
        async with serving(answer) as server:
            await ask(OpenAIChatModel("m", base_url=server.url))
    assert names == []


async def _steps(model: OpenAIChatModel) -> AsyncIterator[str]:
    """Ways out of a run while its model streams."""
    agent = ToolLoopAgent(model, store=MemoryRunStore())
    async with agent.start("hi") as run:
        async for seen in run:
            if isinstance(seen, TextDelta):
                await run.cancel()
    yield (await run.result()).stop.status
    async with agent.start("hi", session="left") as run:
        async for seen in run:
            if isinstance(seen, TextDelta):
                break
    yield (await run.result()).stop.status
    yield (await agent.run("hi", timeout=0.1)).stop.status


async def test_nor_is_one_where_a_run_is_cut_short_while_its_model_streams() -> None:
    with collected() as names:
        async with serving(hanging(*HALF)) as server:
            model = OpenAIChatModel("m", base_url=server.url)
            stops = [stop async for stop in _steps(model)]
    assert stops == ["cancelled", "paused", "budget"]
    assert names == []
