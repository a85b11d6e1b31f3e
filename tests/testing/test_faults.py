"""A store that fails where a test says, and whose process can die there."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import anyio
import pytest

from agentcore import ToolLoopAgent
from agentcore.errors import ConfigError, LeaseLost, SessionExists, StoreFailed
from agentcore.protocols.store import RunStore, Watch
from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import (
    CountingIds,
    Crashed,
    FakeClock,
    Fault,
    FaultyStore,
    Gate,
    ScriptedModel,
    assert_journal,
    call,
    crashes,
    delays,
    effect_tools,
    fails,
    holds,
    journal_lines,
    turns_clock,
)
from agentcore.types.content import TextPart
from agentcore.types.inbox import Input
from agentcore.types.records import Record, StateChanged, StoredRecord
from agentcore.types.runs import Lease, SessionHeader, SessionQuery

S = "s"
HELLO = Input("i1", (TextPart("hello"),))


def note(value: str) -> list[Record]:
    return [StateChanged("k", value)]


async def opened(store: RunStore) -> Lease:
    await store.create(SessionHeader(S))
    return await store.acquire(S, "owner")


async def journal(store: RunStore) -> list[StoredRecord]:
    return [stored async for stored in store.read(S)]


async def test_a_write_fails_before_or_after_it_was_made() -> None:
    inner = MemoryRunStore()
    store = FaultyStore(inner, fails("before:append#2"), fails("after:append#2"))
    lease = await opened(store)
    await store.append(lease, note("a"), expected_seq=1)
    for seq, length in ((2, 2), (2, 3)):
        with pytest.raises(StoreFailed):
            await store.append(lease, note("b"), expected_seq=seq)
        assert len(await journal(inner)) == length
    await store.append(lease, note("c"), expected_seq=3)
    store.assert_fired()


async def test_the_error_is_the_one_the_test_wants() -> None:
    store = FaultyStore(MemoryRunStore(), fails("before:create", OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        await store.create(SessionHeader(S))


async def test_records_are_counted_one_by_one_and_a_refused_call_is_not() -> None:
    store = FaultyStore(
        MemoryRunStore(), fails("after:state.changed#3"), fails("before:create#2")
    )
    lease = await opened(store)
    await store.append(lease, [*note("a"), *note("b")], expected_seq=1)
    with pytest.raises(SessionExists):
        await store.inner.create(SessionHeader(S))
    with pytest.raises(StoreFailed):
        await store.append(lease, note("c"), expected_seq=3)
    with pytest.raises(StoreFailed):
        await store.create(SessionHeader("t"))
    store.assert_fired()


async def test_a_write_of_any_kind_can_be_the_place() -> None:
    store = FaultyStore(MemoryRunStore(), fails("before:write#3"))
    await opened(store)  # create, acquire
    await store.sessions(SessionQuery())
    with pytest.raises(StoreFailed):
        await store.put_blob(b"data")
    store.assert_fired()


async def test_a_fault_that_never_struck_is_reported() -> None:
    store = FaultyStore(MemoryRunStore(), fails("after:append#7"))
    await opened(store)
    with pytest.raises(AssertionError, match="never struck: fails after:append#7"):
        store.assert_fired()


@pytest.mark.parametrize(
    "place", ["append", "before:apend", "mid:accept", "after:append#0", "during:append"]
)
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(ConfigError):
        fails(place)


def test_a_store_that_cannot_be_torn_is_not_given_such_a_fault() -> None:
    with pytest.raises(ConfigError, match="no `append_torn`"):
        FaultyStore(MemoryRunStore(), crashes("mid:append"))


class Tearing(MemoryRunStore):
    """Leaves half of an append behind, which no reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.torn: list[Record] = []

    async def append_torn(
        self, lease: Lease, records: list[Record], **expected: Any
    ) -> None:
        self.torn += records[: len(records) // 2]


async def test_an_append_is_torn_where_the_store_can_be() -> None:
    inner = Tearing()
    store = FaultyStore(inner, crashes("mid:append"))
    lease = await opened(store)
    with pytest.raises(Crashed):
        await store.append(lease, [*note("a"), *note("b")], expected_seq=1)
    assert inner.torn == note("a")
    assert len(await journal(inner)) == 1


async def test_a_call_is_delayed_and_held() -> None:
    clock, gate = FakeClock(), Gate()
    store = FaultyStore(
        MemoryRunStore(),
        delays("before:create", 5, clock),
        holds("after:acquire", gate),
    )
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(opened, store)
            await clock.sleeping()
            await clock.advance(5)
            await gate.reached()
            gate.open()
    assert clock.sleeps == [5]


async def test_the_clock_goes_backwards_where_the_test_says() -> None:
    clock = FakeClock(1_000)
    store = FaultyStore(
        MemoryRunStore(clock=clock), turns_clock("before:append", clock, 500)
    )
    lease = await opened(store)
    await store.append(lease, note("a"), expected_seq=1)
    assert [stored.at for stored in await journal(store)] == [1_000, 500]


async def test_a_fault_can_be_a_function_of_the_test() -> None:
    seen = []
    place = fails("before:create").place
    store = FaultyStore(MemoryRunStore(), Fault(place, "notes", lambda: seen.append(1)))
    await store.create(SessionHeader(S))
    assert seen == [1]


# --- a process that dies --------------------------------------------------------------


async def test_a_dead_process_does_nothing_more() -> None:
    inner = MemoryRunStore()
    store = FaultyStore(inner, crashes("after:append"))
    lease = await opened(store)
    with pytest.raises(Crashed):
        await store.append(lease, note("a"), expected_seq=1)
    calls: list[Callable[[], Any]] = [
        lambda: store.append(lease, note("b"), expected_seq=2),
        lambda: store.accept(S, HELLO),
        lambda: store.create(SessionHeader("t")),
        lambda: store.inbox(S),
        lambda: store.renew(lease),
        lambda: store.release(lease),
        lambda: store.put_blob(b""),
        lambda: store.delete(S),
        lambda: store.wait(S, 0),
        lambda: journal(store),
    ]
    for attempt in calls:
        with pytest.raises(Crashed):
            await attempt()
    assert len(await journal(inner)) == 2


async def test_the_next_owner_takes_over_from_a_crashed_one() -> None:
    inner = MemoryRunStore()
    store = FaultyStore(inner)
    lease = await opened(store)
    store.crash()

    second = await inner.acquire(S, "next")

    assert (second.epoch, second.took_over) == (2, True)
    with pytest.raises(LeaseLost):
        await inner.append(lease, note("stale"), expected_seq=1)
    await inner.release(second)
    assert (await inner.acquire(S, "third")).took_over is False


async def test_a_crash_while_the_lease_is_given_leaves_it_takeable() -> None:
    inner = MemoryRunStore()
    store = FaultyStore(inner, crashes("after:acquire"))
    with pytest.raises(Crashed):
        await opened(store)
    assert (await inner.acquire(S, "next")).took_over


async def test_a_released_lease_is_not_given_up_again() -> None:
    inner = MemoryRunStore()
    store = FaultyStore(inner)
    await store.release(await opened(store))
    theirs = await inner.acquire(S, "next")
    store.crash()
    await inner.renew(theirs)


async def test_another_storage_is_told_how_to_give_a_lease_up() -> None:
    given_up: list[Lease] = []
    store = FaultyStore(MemoryRunStore(), abandon=given_up.append)
    lease = await opened(store)
    store.crash()
    store.crash()
    assert given_up == [lease]


@pytest.mark.scenario("run-45")
async def test_a_run_ends_where_its_process_crashes_and_the_next_goes_on() -> None:
    inner, ids = MemoryRunStore(), CountingIds()
    store = FaultyStore(inner, crashes("after:tool.intent#2"))
    effects: list[str] = []
    agent: ToolLoopAgent = ToolLoopAgent(
        ScriptedModel([call("rw"), call("rw"), "done"]),
        tools=effect_tools(lambda context: effects.append(context.call.id)),
        store=store,
        ids=ids,
    )
    with store.process():
        await agent.run("go", session=S)
    store.assert_fired()
    assert effects == ["call_1"]
    assert journal_lines(await journal(inner))[-1].endswith("tool.intent call_2 rw")

    result = await agent.with_(store=inner).resume(S)

    records = await journal(inner)
    assert_journal(records, effects)
    assert "owner.acquired takeover" in "\n".join(journal_lines(records))
    assert result.stop.status in ("completed", "paused")


async def test_a_crash_ends_everything_in_its_process() -> None:
    store = FaultyStore(MemoryRunStore(), crashes("after:create"))
    with store.process():
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 60)
            group.start_soon(store.create, SessionHeader(S))
    assert store.crashed


async def test_another_error_is_no_crash() -> None:
    store = FaultyStore(MemoryRunStore())
    with pytest.raises(ValueError, match="mine"), store.process():
        raise ValueError("mine")
    with pytest.raises(ExceptionGroup), store.process():
        raise ExceptionGroup("both", [ValueError("mine")])
    assert not store.crashed


async def test_whoever_accepts_outlives_a_crash_of_the_listener() -> None:
    inner = MemoryRunStore()
    store = FaultyStore(inner, crashes("before:inbox"))
    await opened(store)
    assert isinstance(store, Watch)

    async def listener(version: int) -> None:
        await store.inbox(S)

    with store.on_accept(S, listener):
        receipt = await inner.accept(S, HELLO)
        await inner.accept(S, Input("i2", (TextPart("again"),)))
    assert receipt.position == 1
    assert store.crashed


# --- what it keeps of the wrapped store -----------------------------------------------


class Polled:
    """A store without `Watch`."""

    def __init__(self) -> None:
        self._inner = MemoryRunStore()

    def __getattr__(self, name: str) -> Any:
        if name in ("on_accept", "wait"):
            raise AttributeError(name)
        return getattr(self._inner, name)


class WithSnapshots(MemoryRunStore):
    extra = "something"

    async def save_snapshot(self, session_id: str, seq: int, data: Any) -> None:
        self.saved = (seq, data)

    async def load_snapshot(self, session_id: str) -> Any:
        return self.saved


async def test_it_can_do_what_the_wrapped_store_can() -> None:
    polled: Any = Polled()
    assert not isinstance(FaultyStore(polled), Watch)
    assert not hasattr(FaultyStore(MemoryRunStore()), "save_snapshot")
    store: Any = FaultyStore(WithSnapshots(), fails("before:save_snapshot"))
    watched: object = store
    assert isinstance(watched, Watch)
    assert store.extra == "something"
    with pytest.raises(StoreFailed):
        await store.save_snapshot(S, 1, {})
    await store.save_snapshot(S, 1, {})
    assert await store.load_snapshot(S) == (1, {})


async def test_it_waits_only_where_something_is_to_happen() -> None:
    assert FaultyStore(MemoryRunStore()).commits_inline is True
    assert FaultyStore(MemoryRunStore(), fails("after:append")).commits_inline is False


class Opened(MemoryRunStore):
    is_open = False

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.is_open = False


async def test_it_opens_and_closes_the_wrapped_store_after_a_crash_too() -> None:
    inner = Opened()
    async with FaultyStore(inner) as store:
        assert inner.is_open
        store.crash()
    assert not inner.is_open


def test_a_real_kill_ends_the_process_at_once(tmp_path: Path) -> None:
    code = (
        "import anyio, atexit, sys\n"
        "from agentcore.testing import FaultyStore, kills\n"
        "from agentcore.stores.memory import MemoryRunStore\n"
        "from agentcore.types.runs import SessionHeader\n"
        "atexit.register(print, 'too late')\n"
        "store = FaultyStore(MemoryRunStore(), kills('before:create'))\n"
        "anyio.run(store.create, SessionHeader('s'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-9, "")
