"""What a host sees: committed records without a gap, deltas, and nobody in the way."""

import logging
from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit

from agentcore import Committed, TextDelta, tool
from agentcore.errors import ConfigError
from agentcore.testing import Gate, call, step
from agentcore.types import records as r
from agentcore.types.context import ToolContext
from agentcore.types.events import ToolProgress
from agentcore.types.model import (
    ThinkingDelta,
    ToolInputDelta,
    ToolInputReady,
    ToolInputStarted,
)

SCENARIO = pytest.mark.scenario


class Collecting:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def emit(self, event: Any) -> None:
        self.events.append(event)


class Raising:
    """A sink that fails at every event."""

    def __init__(self) -> None:
        self.asked = 0

    async def emit(self, event: Any) -> None:
        self.asked += 1
        raise RuntimeError("no")


class Blocking:
    """A sink that never comes back from its first event, until the test lets it."""

    def __init__(self) -> None:
        self.gate = Gate()

    async def emit(self, event: Any) -> None:
        await self.gate.wait()


def numbers(events: list[Any]) -> list[int]:
    return [event.seq for event in events if isinstance(event, Committed)]


# --- the caller's own stream --------------------------------------------------------
async def test_the_stream_of_a_run_has_every_record_once_and_in_order(
    kit: Kit,
) -> None:
    calls = [call("par", text="a"), call("par", text="b"), call("rw")]
    async with kit.agent([calls, "done"]).start("hi", session="s") as run:
        events = [event async for event in run]

    committed = [event for event in events if isinstance(event, Committed)]
    journal = await kit.records()
    first = committed[0].seq
    assert numbers(events) == list(range(first, first + len(committed)))
    assert [event.record for event in committed] == [
        stored.record for stored in journal[first - 1 : first - 1 + len(committed)]
    ]
    kinds = [event.record.kind for event in committed]
    assert "input.accepted" in kinds
    assert kinds[-1] == "run.ended"


async def test_deltas_arrive_as_the_model_sends_them(kit: Kit) -> None:
    reply = step(chunks=["Hel", "lo"], thinking="hm", calls=[call("ro", text="a")])
    async with kit.agent([reply, "done"]).start("hi", session="s") as run:
        events = [event async for event in run]

    deltas = [event for event in events if not isinstance(event, Committed)]
    assert [type(delta) for delta in deltas[:7]] == [
        ThinkingDelta,
        TextDelta,
        TextDelta,
        ToolInputStarted,
        ToolInputDelta,
        ToolInputDelta,
        ToolInputReady,
    ]
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert said == "Hellodone"


async def test_deltas_come_before_the_record_of_their_reply(kit: Kit) -> None:
    async with kit.agent(["one two three"]).start("hi", session="s") as run:
        events = [event async for event in run]

    outcome = next(
        index
        for index, event in enumerate(events)
        if isinstance(event, Committed) and isinstance(event.record, r.ModelOutcome)
    )
    last = max(i for i, event in enumerate(events) if isinstance(event, TextDelta))
    assert last < outcome


async def test_a_tool_tells_how_far_it_is(kit: Kit) -> None:
    @tool(effects="none")
    async def work(context: ToolContext[Any]) -> str:
        """Work."""
        context.progress("half", progress=1, total=2)
        return "done"

    @tool(effects="none")
    def block(context: ToolContext[Any]) -> str:
        """Work in a thread."""
        context.progress("from a thread")
        return "done"

    agent = kit.agent([call("work"), call("block"), "ok"], tools=[work, block])
    async with agent.start("hi", session="s") as run:
        events = [event async for event in run]

    assert [event for event in events if isinstance(event, ToolProgress)] == [
        ToolProgress("call_1", "half", 1, 2),
        ToolProgress("call_2", "from a thread"),
    ]


async def test_reading_the_stream_again_gives_no_second_stream(kit: Kit) -> None:
    async with kit.agent(["ok"]).start("hi", session="s") as run:
        assert [event async for event in run]
        assert [event async for event in run] == []
        assert (await run.result()).output == "ok"


async def test_the_result_needs_no_reading(kit: Kit) -> None:
    async with kit.agent([call("ro"), "ok"]).start("hi", session="s") as run:
        assert (await run.result()).output == "ok"


async def test_a_handle_that_was_not_entered_says_so(kit: Kit) -> None:
    run = kit.agent(["ok"]).start("hi", session="s")

    with pytest.raises(ConfigError, match="async with"):
        aiter(run)
    for door in (run.result, run.cancel, run.pause, lambda: run.steer("more")):
        with pytest.raises(ConfigError, match="async with"):
            await door()


async def test_a_handle_is_used_once(kit: Kit) -> None:
    agent = kit.agent(["ok", "never"])
    run = agent.start("hi")
    await run
    with pytest.raises(ConfigError, match="again"):
        await run
    with pytest.raises(ConfigError, match="again"):
        await run.__aenter__()
    assert len(kit.requests()) == 1


async def test_two_readers_of_one_run_both_come_to_an_end(kit: Kit) -> None:
    async def read() -> None:
        async for _ in run:
            pass

    started = kit.agent([call("rw"), "ok"]).start("hi", session="s")
    with anyio.fail_after(5):
        async with started as run, anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)


async def test_leaving_the_loop_over_events_does_not_stop_the_run(kit: Kit) -> None:
    async with kit.agent([call("rw"), "ok"]).start("hi", session="s") as run:
        async for _ in run:
            break
        assert (await run.result()).output == "ok"


# --- reading again ------------------------------------------------------------------
@SCENARIO("run-6")
async def test_the_journal_can_be_read_from_anywhere_while_the_run_goes_on(
    kit: Kit,
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([[call("rw"), call("ro", text="hang")], "done"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        one = await kit.records(after=4)
        two = await kit.records(after=4)
        gate.open()
        await run.result()

    assert one == two
    assert [stored.seq for stored in one] == list(range(5, 5 + len(one)))
    whole = await kit.records(after=4)
    assert whole[: len(one)] == one


async def test_a_slow_reader_misses_no_record(kit: Kit) -> None:
    agent = kit.agent([*[call("rw", text=f"{n}") for n in range(250)], "done"])
    async with agent.start("hi", session="s") as run:
        result = await run.result()  # nothing read so far
        events = [event async for event in run]

    seen = numbers(events)
    assert result.output == "done"
    assert len(seen) > 1024 + 200
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    journal = {stored.seq: stored.record for stored in await kit.records()}
    assert all(
        event.record == journal[event.seq]
        for event in events
        if isinstance(event, Committed)
    )


async def test_text_a_slow_reader_has_not_taken_is_joined_and_never_dropped(
    kit: Kit,
) -> None:
    chunks = [chr(ord("a") + n % 26) * 64 for n in range(20_000)]  # 1.28 MB
    async with kit.agent([step(chunks=chunks)]).start("hi", session="s") as run:
        result = await run.result()
        pieces = [e.text async for e in run if isinstance(e, TextDelta)]

    assert "".join(pieces) == result.output == "".join(chunks)
    assert len(pieces) < len(chunks)


# --- sinks --------------------------------------------------------------------------
async def kinds_of_a_run(kit: Kit, session: str, sinks: list[Any]) -> list[str]:
    agent = kit.agent([[call("par"), call("par")], call("rw"), "done"], sinks=sinks)
    async with agent.start("hi", session=session) as run:
        await run.result()
        for sink in sinks:
            if isinstance(sink, Blocking):
                sink.gate.open()
    return [stored.record.kind for stored in await kit.records(session)]


@SCENARIO("run-5")
async def test_a_sink_that_raises_or_blocks_changes_nothing_in_the_record(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    plain = await kinds_of_a_run(kit, "s", [])
    raising = Raising()

    with caplog.at_level(logging.CRITICAL, logger="agentcore"):
        assert await kinds_of_a_run(kit, "raising", [raising]) == plain
    assert await kinds_of_a_run(kit, "blocking", [Blocking()]) == plain
    assert raising.asked > 10  # each time anew


async def test_a_sink_gets_every_event_of_a_run_that_is_only_awaited(
    kit: Kit,
) -> None:
    one, other = Collecting(), Collecting()
    await kit.agent([call("rw"), "done"], sinks=[one, other]).run("hi", session="s")

    assert one.events == other.events
    seen = numbers(one.events)
    assert seen == list(range(seen[0], seen[-1] + 1))
    kinds = [e.record.kind for e in one.events if isinstance(e, Committed)]
    assert "run.ended" in kinds
    assert any(isinstance(event, TextDelta) for event in one.events)


async def test_one_failing_sink_keeps_no_event_from_another(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    good = Collecting()
    with caplog.at_level(logging.CRITICAL, logger="agentcore"):
        await kit.agent(["done"], sinks=[Raising(), good]).run("hi", session="s")

    assert any(
        isinstance(e, Committed) and e.record.kind == "run.ended" for e in good.events
    )


async def test_sinks_see_a_run_without_a_store_too(kit: Kit) -> None:
    sink = Collecting()
    await kit.agent([call("ro"), "ok"], store=None, sinks=[sink]).run("hi")

    seen = numbers(sink.events)
    assert seen == list(range(seen[0], seen[-1] + 1))


async def test_a_second_callers_stream_ends_with_its_own_run(kit: Kit) -> None:
    gate = Gate()
    agent = kit.agent([step("one", gate=gate), "two", "three"])
    seen: list[Any] = []

    async def attach() -> None:
        async with agent.start("b", session="s", input_id="b") as guest:
            seen.extend([event async for event in guest])

    async with (
        anyio.create_task_group() as tasks,
        agent.start("a", session="s", input_id="a") as run,
    ):
        await gate.reached()
        tasks.start_soon(attach)
        await anyio.wait_all_tasks_blocked()
        await agent.submit("c", session="s", input_id="c")
        gate.open()
        await run.result()

    committed = [event for event in seen if isinstance(event, Committed)]
    assert numbers(seen) == list(range(committed[0].seq, committed[-1].seq + 1))
    ends = [e for e in committed if isinstance(e.record, r.RunEnded)]
    assert len(ends) == 2
    assert committed[-1] is ends[-1]
