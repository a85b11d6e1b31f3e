"""Paths that are taken seldom: what a run does there is promised all the same."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from tests.flows.kit import KeptStore, Kit
from typing_extensions import override

from agentcore import tool
from agentcore.errors import (
    ConfigError,
    CorruptRecord,
    SessionBusy,
    StoreError,
    StoreFailed,
)
from agentcore.protocols.store import Appended, InboxPage, RunStore
from agentcore.testing import (
    FakeClock,
    FakeExecutor,
    FunctionModel,
    Gate,
    call,
    call_raw,
    tool_spec,
)
from agentcore.types import records as r
from agentcore.types.content import ToolCallPart
from agentcore.types.context import ToolContext
from agentcore.types.model import ModelResponse
from agentcore.types.runs import Lease
from agentcore.types.tools import ToolSpec


class OddStore(KeptStore):
    """Fails where it is told to, and waits where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: type[Any] | None = None
        """An append that holds such a record fails."""
        self.lost = False
        """Every append fails."""
        self.acquiring: Gate | None = None
        """Where the next caller who wants the session waits."""
        self.unreadable = False

    @override
    async def append(
        self,
        lease: Lease,
        records: Sequence[r.Record],
        *,
        expected_seq: int,
        expected_inbox: int | None = None,
    ) -> Appended:
        if self.lost or any(type(record) is self.fails for record in records):
            self.lost = True
            raise StoreFailed("disk full")
        return await super().append(
            lease, records, expected_seq=expected_seq, expected_inbox=expected_inbox
        )

    @override
    async def acquire(self, session_id: str, owner: str) -> Lease:
        gate, self.acquiring = self.acquiring, None
        if gate is not None:
            await gate.wait()
        return await super().acquire(session_id, owner)

    @override
    def read(self, session_id: str, after: int = 0) -> AsyncIterator[r.StoredRecord]:
        if self.unreadable:
            raise CorruptRecord("record 2 is damaged")
        return super().read(session_id, after)

    def heal(self) -> None:
        """From now on it works."""
        self.fails = None
        self.lost = self.unreadable = False


class Unwatched:
    """Only what every store must have: nobody is told of anything."""

    def __init__(self, store: RunStore) -> None:
        for name in (
            "create",
            "sessions",
            "delete",
            "accept",
            "inbox",
            "acquire",
            "renew",
            "release",
            "append",
            "read",
            "put_blob",
            "get_blob",
        ):
            setattr(self, name, getattr(store, name))


@pytest.fixture
def odd(kit: Kit) -> OddStore:
    """The kit's store from now on."""
    kit.store = store = OddStore()
    return store


# --- calls that cannot be used ------------------------------------------------------
async def test_an_executor_that_checks_nothing_is_given_objects_only(kit: Kit) -> None:
    executor = FakeExecutor({"rm": "gone"}, specs=[tool_spec("rm")])
    asked = [call_raw("rm", "{"), call_raw("rm", "[1]"), call_raw("rm", "")]
    agent = kit.agent([asked, "ok"], tools=[], executor=executor)
    result = await agent.run("hi", session="s")

    assert [c.status for c in result.tool_calls] == ["invalid_args"] * 2 + ["ok"]
    assert "no valid JSON" in result.tool_calls[0].text
    assert "must be a JSON object" in result.tool_calls[1].text
    assert len(executor.calls) == 1


class Nameless(FunctionModel):
    """Gives its calls no ids, as some servers do."""

    def __init__(self) -> None:
        calls = tuple(ToolCallPart("rw", f'{{"text": "{name}"}}') for name in "ab")
        first = ModelResponse(calls, "tool_calls")
        super().__init__(lambda seen: first if len(seen.messages) == 1 else "ok")


async def test_calls_without_an_id_of_the_vendor_are_no_duplicates(kit: Kit) -> None:
    agent = kit.agent(Nameless())
    result = await agent.run("hi", session="s")

    assert [c.status for c in result.tool_calls] == ["ok", "ok"]
    assert len(kit.effects) == 2


# --- tools that are no longer what they were ----------------------------------------
async def _left_open(kit: Kit, later: Any) -> Any:
    """Three calls planned, the first one's outcome lost with its owner."""
    store = OddStore()
    kit.store = store
    store.fails = r.ToolOutcome
    asked = [call("rw", text="a"), call("ro", text="b")]
    with pytest.raises(StoreError):
        await kit.agent([asked, "never"]).run("hi", session="s")
    store.heal()
    agent = kit.agent(["done"], tools=later, on_unknown="continue")
    return await agent.resume("s")


async def test_after_a_lost_owner_only_what_never_began_is_run(kit: Kit) -> None:
    result = await _left_open(kit, kit.tools)

    assert result.output == "done"
    assert await kit.outcomes() == ["call_1 unknown/unknown", "call_2 ok/none"]
    assert kit.effects.read() == ["call_1", "call_2"]
    assert "run.paused host" not in await kit.lines()


async def test_a_planned_call_whose_tool_is_gone_is_unavailable(kit: Kit) -> None:
    result = await _left_open(kit, [kit.rw])

    assert result.output == "done"
    assert (await kit.outcomes())[-1] == "call_2 unavailable/none"
    assert "the tools are: rw" in result.tool_calls[1].text


async def test_a_planned_call_whose_tool_takes_something_else_now_is_not_run(
    kit: Kit,
) -> None:
    @tool(name="ro")
    async def changed(number: int) -> str:
        """Read a number."""
        return str(number)

    result = await _left_open(kit, [kit.rw, changed])

    assert result.output == "done"
    assert (await kit.outcomes())[-1] == "call_2 invalid_args/none"


# --- lost and broken owners ---------------------------------------------------------
async def test_a_request_whose_owner_was_lost_is_unknown_and_made_again(
    kit: Kit, odd: OddStore
) -> None:
    odd.fails = r.ModelOutcome
    with pytest.raises(StoreError):
        await kit.agent(["lost"]).run("hi", session="s")
    odd.heal()
    clock = FakeClock(autojump=True)
    result = await kit.agent(["again"], clock=clock).resume("s")

    assert result.output == "again"
    outcomes = [x for x in await kit.lines() if x.startswith("model.outcome")]
    assert outcomes == ["model.outcome unknown", "model.outcome ok"]


class BrokenListing(FakeExecutor):
    """Cannot say which tools there are."""

    @override
    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        raise LookupError("no catalogue")


async def test_a_run_whose_tools_cannot_be_listed_fails_and_asks_nobody(
    kit: Kit,
) -> None:
    agent = kit.agent(["never"], tools=[], executor=BrokenListing({"t": "x"}))
    result = await agent.run("hi", session="s")

    assert (result.stop.status, result.stop.reason) == ("failed", "tool")
    assert "no catalogue" in result.stop.detail
    assert kit.requests() == []


async def test_an_owner_that_cannot_reopen_a_run_lets_go_of_the_session(
    kit: Kit, odd: OddStore
) -> None:
    gate = kit.gate("hang")
    async with kit.agent([call("ro", text="hang")]).start("hi", session="s"):
        await gate.reached()
    odd.fails = r.RunEnded
    broken = kit.agent(["never"], tools=[], executor=BrokenListing({"t": "x"}))
    with pytest.raises(StoreError):
        await broken.resume("s")
    odd.heal()

    assert (await kit.agent(["done"]).resume("s")).output == "done"


async def test_a_journal_that_cannot_be_read_keeps_nobody_out_for_good(
    kit: Kit, odd: OddStore
) -> None:
    agent = kit.agent(["one", "two"])
    await agent.run("a", session="s")
    odd.unreadable = True
    with pytest.raises(CorruptRecord):
        await agent.run("b", session="s", input_id="b")
    odd.heal()

    assert (await agent.run("b", session="s", input_id="b")).output == "two"


async def test_a_caller_cancelled_over_a_failing_store_gets_its_own_cancellation(
    kit: Kit, odd: OddStore, caplog: pytest.LogCaptureFixture
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "never"])
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await gate.reached()
                odd.fails = r.RunPaused
                scope.cancel()

            tasks.start_soon(leave)
            await agent.run("hi", session="s")
    odd.heal()

    assert scope.cancelled_caught
    assert "could not be settled" in caplog.text
    assert (await kit.agent(["done"]).resume("s")).output == "done"


# --- handles ------------------------------------------------------------------------
async def test_a_repeated_message_that_was_served_can_be_entered_too(kit: Kit) -> None:
    agent = kit.agent(["done"])
    first = await agent.run("hi", session="s", input_id="i1")
    async with agent.start("hi", session="s", input_id="i1") as run:
        assert [event async for event in run] == []
        assert await run.result() == first

    assert len(kit.requests()) == 1


async def test_a_run_that_was_not_entered_cannot_be_left(kit: Kit) -> None:
    run = kit.agent(["never"]).start("hi", session="s")
    with pytest.raises(ConfigError, match="async with"):
        await run.__aexit__(None, None, None)


async def test_only_one_at_a_time_may_resume(kit: Kit) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "done"])
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        with pytest.raises(SessionBusy):
            await agent.resume("s")
        gate.open()
        assert (await run.result()).output == "done"


async def test_whoever_only_reads_along_pauses_nothing_and_has_no_result_of_its_own(
    kit: Kit,
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "done"])
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        async with agent.start("hi", session="s", input_id="i1") as second:
            await second.pause()
        with pytest.raises(RuntimeError, match="before the input was served"):
            await second.result()
        gate.open()
        assert (await run.result()).output == "done"


async def test_whoever_reads_along_sees_the_pause_of_the_run(kit: Kit) -> None:
    first, gate = kit.gate("first"), kit.gate("hang")
    asked = [call("ro", text="first"), call("ro", text="hang"), "done"]
    agent = kit.agent(asked)
    async with agent.start("hi", session="s", input_id="i1"):
        await first.reached()
    async with agent.resume("s") as run:
        await gate.reached()
        async with agent.start("hi", session="s", input_id="i1") as second:
            await anyio.wait_all_tasks_blocked()
            await run.pause()
            gate.open()
            result = await second.result()

    assert (result.stop.status, result.stop.reason) == ("paused", "host")
    assert (await agent.resume("s")).output == "done"


async def test_a_store_that_tells_nobody_anything_is_looked_at_now_and_then(
    kit: Kit,
) -> None:
    store: Any = Unwatched(kit.store)
    gate = kit.gate("hang")
    clock = FakeClock(autojump=True)
    agent = kit.agent([call("ro", text="hang"), "done"], store=store, clock=clock)
    async with agent.start("hi", session="s", input_id="i1") as run:
        await gate.reached()
        async with agent.start("hi", session="s", input_id="i1") as second:
            await anyio.sleep(0.02)
            gate.open()
            assert await second.result() == await run.result()

    assert clock.sleeps


async def test_a_message_served_by_the_owner_before_has_its_result(
    kit: Kit, odd: OddStore
) -> None:
    gate = kit.gate("hang")
    first = kit.agent([call("ro", text="hang"), "one", "two"])
    results: list[Any] = []

    async def ask() -> None:
        results.append(await kit.agent(["never"]).run("b", session="s", input_id="b"))

    async with anyio.create_task_group() as tasks:
        async with first.start("a", session="s") as run:
            await gate.reached()
            odd.acquiring = late = Gate()
            tasks.start_soon(ask)
            await late.reached()
            gate.open()
            await run.result()
            async for _ in run:
                pass
            await anyio.wait_all_tasks_blocked()
            assert (await kit.lines()).count("run.ended completed/final") == 2
        late.open()

    assert results[0].output == "two"


@pytest.mark.parametrize("earlier", [False, True])
async def test_a_message_taken_back_before_its_run_began_is_not_served(
    kit: Kit, odd: OddStore, earlier: bool
) -> None:
    agent = kit.agent(["one"])
    if earlier:
        await agent.run("a", session="s")
    await agent.submit("x", session="s", delivery="follow_up", input_id="x")
    odd.acquiring = late = Gate()
    results: list[Any] = []

    async def ask() -> None:
        results.append(await agent.run("b", session="s", input_id="b"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await late.reached()
        await agent.withdraw("s", "x")
        await agent.withdraw("s", "b")
        late.open()

    assert results[0].output is None
    assert results[0].stop.status in ("cancelled", "paused")
    assert len(kit.requests()) == int(earlier)


# --- other threads ------------------------------------------------------------------
async def test_a_cancel_from_another_thread_that_cannot_be_read_now_is_logged(
    kit: Kit, odd: OddStore, caplog: pytest.LogCaptureFixture
) -> None:
    gate = kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "done"])

    def elsewhere() -> None:
        with start_blocking_portal() as portal:
            portal.call(lambda: agent.cancel(session="s"))

    async with agent.start("hi", session="s") as run:
        await gate.reached()
        odd_inbox = odd.inbox
        looked: list[int] = []

        async def inbox(session_id: str, after: int = 0) -> InboxPage:
            looked.append(after)
            if len(looked) > 1:  # the first is the cancelling thread's own look
                raise StoreFailed("no inbox today")
            return await odd_inbox(session_id, after)

        odd.inbox = inbox  # type: ignore[method-assign]
        await anyio.to_thread.run_sync(elsewhere)
        with anyio.fail_after(5):
            while "was not looked at" not in caplog.text:  # noqa: ASYNC110 - a log
                await anyio.sleep(0.001)
        odd.inbox = odd_inbox  # type: ignore[method-assign]
        gate.open()
        await run.result()

    assert "no inbox today" in caplog.text


# --- results ------------------------------------------------------------------------
async def test_calls_of_a_result_compare_by_what_they_say(kit: Kit) -> None:
    agent = kit.agent([call("ro", text="a"), "done"])
    result = await agent.run("hi", session="s")
    again = await agent.resume("s")

    assert again.tool_calls == result.tool_calls
    assert result.tool_calls != ()
