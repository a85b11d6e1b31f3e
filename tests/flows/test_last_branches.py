"""What no run should come to, and what is done if one does."""

import threading
from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit
from tests.flows.test_rare_paths import OddStore

from agentcore import ToolLoopAgent, tool
from agentcore._engine.deps import RunSetup, Setup
from agentcore._engine.feed import Feed
from agentcore._engine.follow import Follower
from agentcore._engine.owner import Owner
from agentcore._engine.planning import plan_again
from agentcore._engine.results import result_of
from agentcore._engine.session import open_session
from agentcore._engine.toolbox import open_toolbox
from agentcore.errors import StoreError
from agentcore.journal.apply import fold
from agentcore.testing import ScriptedModel, call
from agentcore.types import records as r
from agentcore.types.context import ToolContext
from agentcore.types.runs import SessionHeader


def setup_of(agent: ToolLoopAgent[Any, Any]) -> Setup:
    return agent._wiring().setup


async def owner_of(agent: ToolLoopAgent[Any, Any], session: str = "s") -> Owner:
    """Whoever has just become the owner, before it has looked at anything."""
    setup, store = setup_of(agent), agent.store
    assert store is not None
    writer = await open_session(setup, store, session, Feed())
    return Owner(setup, RunSetup(), writer, "")


async def let_go(owner: Owner) -> None:
    owner.writer.stage(r.OwnerReleased())
    await owner.writer.commit()
    await owner.writer.store.release(owner.writer.lease)


async def _lost(kit: Kit) -> None:
    """A journal whose owner was lost while the first of two calls ran."""
    kit.store = store = OddStore()
    store.fails = r.ToolOutcome
    asked = [call("rw", text="a"), call("ro", text="b")]
    with pytest.raises(StoreError):
        await kit.agent([asked, "never"]).run("hi", session="s")
    store.heal()


async def test_a_call_that_began_is_never_made_again_whatever_lost_its_outcome(
    kit: Kit,
) -> None:
    await _lost(kit)
    agent = kit.agent(["done"])
    owner = await owner_of(agent)
    owner.toolbox = await open_toolbox(owner.setup, owner.yours)

    ready = plan_again(owner)

    assert [one.call.id for one in ready] == ["call_2"]
    await let_go(owner)
    assert await kit.outcomes() == ["call_1 unknown/unknown"]
    assert (await agent.resume("s")).output == "done"


async def test_a_run_that_nobody_drives_reads_as_paused(kit: Kit) -> None:
    await _lost(kit)
    run = fold("s", await kit.records()).open_run
    assert run is not None

    stop = result_of(run, (), "s", None).stop

    assert (stop.status, stop.reason) == ("paused", "host")
    assert "nobody drives it" in stop.detail
    later = kit.agent(["done"], on_unknown="continue")
    assert (await later.resume("s")).output == "done"


async def test_an_owner_without_a_run_says_so(kit: Kit) -> None:
    await kit.store.create(SessionHeader("s"))
    owner = await owner_of(kit.agent(["never"]))

    with pytest.raises(RuntimeError, match="no run has been started"):
        _ = owner.run
    await let_go(owner)


async def test_whoever_follows_has_no_result_before_the_end(kit: Kit) -> None:
    await kit.agent(["one"]).run("hi", session="s", input_id="i1")
    setup = setup_of(kit.agent(["never"]))
    follower = Follower(setup, kit.store, "s", "another")

    assert not await follower.was_served()
    with pytest.raises(RuntimeError, match="has not been served"):
        follower.result()


async def test_calls_of_a_result_are_shown_and_hashed_as_a_tuple_is(kit: Kit) -> None:
    agent = kit.agent([call("ro", text="a"), "done", "no calls"])
    calls = (await agent.run("hi", session="s")).tool_calls
    none = (await agent.run("hi again", session="s")).tool_calls

    assert repr(calls) == repr(tuple(calls))
    assert hash(none) == hash(())
    with pytest.raises(TypeError):  # arguments are a dict
        hash(calls)


# Not through the kit: the event loop ends in the middle, and with it the test's own.
def test_a_blocking_tool_may_tell_its_progress_after_the_event_loop_has_ended(
    anyio_backend: str,
) -> None:
    began, ended, told = threading.Event(), threading.Event(), threading.Event()

    @tool(effects="none", timeout=0.3)
    def work(context: ToolContext[Any]) -> str:
        """Work."""
        began.set()
        ended.wait(10)
        context.progress("still here")
        told.set()  # so it raised nothing
        return "late"

    agent = ToolLoopAgent(ScriptedModel([call("work"), "done"]), tools=[work])

    async def main() -> None:
        assert (await agent.run("hi")).output == "done"

    anyio.run(main, backend=anyio_backend)
    assert began.is_set()
    ended.set()
    assert told.wait(10)
