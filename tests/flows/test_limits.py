"""Budgets and retries: what is counted, what is waited for, and what ends a run."""

from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit, shown

from agentcore import tool
from agentcore.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BrokenStream,
    ContextOverflow,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ServerError,
    Timeout,
    Unreachable,
)
from agentcore.policies.retry import RetryPolicy
from agentcore.testing import FakeClock, Gate, call, step
from agentcore.types.events import RetryScheduled
from agentcore.types.policy import Budget
from agentcore.types.runs import RunResult
from agentcore.types.usage import Usage

SCENARIO = pytest.mark.scenario
AT_ONCE = RetryPolicy(base=0.0)


def stop_of(result: RunResult[Any]) -> str:
    return f"{result.stop.status}/{result.stop.reason}"


# --- budgets ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("budget", "reason", "requests"),
    [
        (Budget(turns=2), "turns", 2),
        (Budget(requests=3), "requests", 3),
        (Budget(total_tokens=31), "tokens_total", 3),
        (Budget(input_tokens=20), "tokens_in", 2),
        (Budget(output_tokens=5), "tokens_out", 1),
        (Budget(requests=0), "requests", 0),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_run_stops_at_the_first_limit_it_meets(
    kit: Kit, budget: Budget, reason: str, requests: int
) -> None:
    agent = kit.agent([call("ro", text=f"{n}") for n in range(9)], budget=budget)
    result = await agent.run("hi", session="s")

    assert stop_of(result) == f"budget/{reason}"
    assert len(kit.requests()) == requests
    assert result.output is None
    assert result.stop.detail


async def test_a_limit_that_is_only_just_met_by_the_answer_ends_nothing(
    kit: Kit,
) -> None:
    agent = kit.agent([call("ro"), "done"], budget=Budget(turns=2, requests=2))

    assert stop_of(await agent.run("hi", session="s")) == "completed/final"


async def test_cost_is_a_limit(kit: Kit) -> None:
    dear = step(calls=[call("ro")], usage=Usage(1, 1, cost_usd=0.06))
    agent = kit.agent([dear] * 9, budget=Budget(cost_usd=0.10))
    result = await agent.run("hi", session="s")

    assert stop_of(result) == "budget/cost"
    assert len(kit.requests()) == 2
    assert result.usage.cost_usd == pytest.approx(0.12)


async def test_calls_over_the_limit_are_denied_and_then_the_run_ends(
    kit: Kit,
) -> None:
    calls = [call("rw", text=text) for text in "abc"]
    agent = kit.agent([calls, "never"], budget=Budget(tool_calls=2))
    result = await agent.run("hi", session="s")

    assert stop_of(result) == "budget/tool_calls"
    assert kit.effects.read() == ["call_1", "call_2"]
    assert sorted(await kit.outcomes())[2] == "call_3 denied/none"
    assert len(kit.requests()) == 1


async def test_one_tool_may_have_its_own_limit(kit: Kit) -> None:
    agent = kit.agent(
        [[call("rw"), call("ro"), call("rw"), call("ro")]],
        budget=Budget(per_tool={"rw": 1}),
    )
    result = await agent.run("hi", session="s")

    assert stop_of(result) == "budget/tool_calls"
    assert kit.effects.read() == ["call_1", "call_2", "call_4"]


async def test_parallel_calls_are_counted_one_by_one(kit: Kit) -> None:
    calls = [call("par", text=f"{n}") for n in range(5)]
    result = await kit.agent([calls, "done"]).run("hi", session="s")

    assert result.usage.tool_calls == 5


async def test_a_new_run_of_the_session_starts_at_zero(kit: Kit) -> None:
    agent = kit.agent(["one", "two"], budget=Budget(requests=1))

    assert (await agent.run("a", session="s")).output == "one"
    assert (await agent.run("b", session="s")).output == "two"


async def test_a_run_may_lower_the_agents_limits_and_never_raise_them(
    kit: Kit,
) -> None:
    agent = kit.agent(
        [call("ro", text=f"{n}") for n in range(9)],
        budget=Budget(requests=3, tool_calls=8, per_tool={"ro": 7}),
    )
    lower = await agent.run("a", session="a", budget=Budget(requests=2))
    higher = await agent.run("b", session="b", budget=Budget(requests=5, turns=9))

    assert (stop_of(lower), lower.usage.requests) == ("budget/requests", 2)
    assert (stop_of(higher), higher.usage.requests) == ("budget/requests", 3)


async def test_unknown_usage_is_counted_as_unknown_and_not_as_nothing(
    kit: Kit,
) -> None:
    result = await kit.agent([step("ok", usage=None)]).run("hi", session="s")

    assert result.usage.unknown_requests == 1
    assert result.usage.requests == 1


@pytest.mark.parametrize("by", ["timeout", "budget"])
async def test_a_run_out_of_time_stops_in_the_middle_of_a_reply(
    kit: Kit, by: str
) -> None:
    agent = kit.agent([step("never", gate=Gate(), gate_after=1)])
    options: Any = {"timeout": 0.03} if by == "timeout" else {}
    if by == "budget":
        agent = agent.with_(budget=Budget(wall_time=0.03))
    with anyio.fail_after(2):
        result = await agent.run("hi", session="s", **options)

    assert stop_of(result) == "budget/wall_time"
    assert "model.outcome aborted" in await kit.lines()


async def test_a_run_out_of_time_settles_its_calls(kit: Kit) -> None:
    kit.gate("hang")
    calls = [call("rw"), call("rw", text="hang"), call("rw")]
    result = await kit.agent([calls]).run("hi", session="s", timeout=0.05)

    assert stop_of(result) == "budget/wall_time"
    assert sorted(await kit.outcomes()) == [
        "call_1 ok/done",
        "call_2 unknown/unknown",
        "call_3 not_started/none",
    ]


async def test_a_run_out_of_time_in_a_parallel_batch_keeps_what_came_back(
    kit: Kit,
) -> None:
    kit.gate("hang")
    calls = [call("par", text="a"), call("par", text="hang")]
    result = await kit.agent([calls]).run("hi", session="s", timeout=0.05)

    assert stop_of(result) == "budget/wall_time"
    assert await kit.outcomes() == ["call_1 ok/none", "call_2 cancelled/none"]


async def test_a_run_out_of_time_waits_for_no_retry(kit: Kit) -> None:
    agent = kit.agent([Overloaded("busy", retry_after=30.0), "never"])
    with anyio.fail_after(2):
        result = await agent.run("hi", session="s", timeout=0.03)

    assert stop_of(result) == "budget/wall_time"
    assert len(kit.requests()) == 1


async def test_time_left_over_is_no_matter(kit: Kit) -> None:
    result = await kit.agent([call("ro"), "ok"]).run("hi", session="s", timeout=30)

    assert result.output == "ok"


async def test_time_that_was_up_in_one_run_is_not_up_in_the_next(kit: Kit) -> None:
    kit.gate("hang")
    agent = kit.agent([call("ro", text="hang"), "ok"])
    first = await agent.run("a", session="s", timeout=0.03)
    second = await agent.run("b", session="s", timeout=5)

    assert (stop_of(first), stop_of(second)) == ("budget/wall_time", "completed/final")


# --- retries ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "error",
    [
        Overloaded("busy"),
        RateLimited("slow down"),
        ServerError("down"),
        Timeout("late"),
        Unreachable("no line"),
        BrokenStream("cut"),
        BadRequest("odd, but said to be passing", retryable=True),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_passing_failure_is_tried_again_and_on_record(
    kit: Kit, error: Exception
) -> None:
    result = await kit.agent([error, "ok"], retry=AT_ONCE).run("hi", session="s")

    assert result.output == "ok"
    assert [line for line in await kit.lines() if line.startswith("model")] == [
        "model.intent",
        "model.outcome error",
        "model.intent #2",
        "model.outcome ok",
    ]
    assert [request.attempt for request in kit.requests()] == [1, 2]
    assert len({request.request_id for request in kit.requests()}) == 1
    assert result.usage.requests == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AuthFailed("no key"), "auth"),
        (BadRequest("bad"), "model"),
        (QuotaExhausted("no credit"), "model"),
        (ContextOverflow("too long"), "context"),
        (BadResponse("odd"), "model"),
        (ServerError("always", retryable=False), "model"),
    ],
    ids=str,
)
async def test_a_lasting_failure_ends_the_run_at_once(
    kit: Kit, error: Exception, reason: str
) -> None:
    result = await kit.agent([error]).run("hi", session="s")

    assert stop_of(result) == f"failed/{reason}"
    assert str(error) in result.stop.detail
    assert len(kit.requests()) == 1


async def test_a_model_that_breaks_its_contract_is_an_internal_failure(
    kit: Kit,
) -> None:
    result = await kit.agent([ZeroDivisionError("oops")]).run("hi", session="s")

    assert stop_of(result) == "failed/internal"
    assert "oops" in result.stop.detail
    assert len(kit.requests()) == 1


@pytest.mark.parametrize("attempts", [1, 2, 5])
async def test_attempts_are_bounded(kit: Kit, attempts: int) -> None:
    policy = RetryPolicy(base=0.0, max_attempts=attempts)
    agent = kit.agent([Overloaded("busy")] * 9, retry=policy)
    result = await agent.run("hi", session="s")

    assert stop_of(result) == "failed/model"
    assert len(kit.requests()) == attempts
    assert result.usage.requests == attempts


async def test_success_gives_the_next_request_all_its_attempts_again(
    kit: Kit,
) -> None:
    busy = Overloaded("busy")
    policy = RetryPolicy(base=0.0, max_attempts=3)
    agent = kit.agent([busy, busy, call("ro"), busy, busy, "ok"], retry=policy)

    assert (await agent.run("hi", session="s")).output == "ok"


async def test_waits_grow_with_full_jitter_up_to_the_cap(kit: Kit) -> None:
    clock = FakeClock(autojump=True)
    policy = RetryPolicy(base=1.0, cap=4.0, random=lambda: 0.5)
    agent = kit.agent([Overloaded("busy")] * 5, clock=clock, retry=policy)
    await agent.run("hi", session="s")

    assert clock.sleeps == [0.5, 1.0, 2.0, 2.0]


async def test_waits_stay_within_their_bounds(kit: Kit) -> None:
    clock = FakeClock(autojump=True)
    agent = kit.agent([Overloaded("busy")] * 5, clock=clock)
    await agent.run("hi", session="s")

    assert len(clock.sleeps) == 4
    for number, slept in enumerate(clock.sleeps):
        assert 0 <= slept <= min(30.0, 0.5 * 2**number)


async def test_the_vendors_retry_after_is_kept_to(kit: Kit) -> None:
    clock = FakeClock(autojump=True)
    agent = kit.agent(
        [
            RateLimited("later", retry_after=17.5),
            RateLimited("x", retry_after=60),
            "ok",
        ],
        clock=clock,
    )

    assert (await agent.run("hi", session="s")).output == "ok"
    assert clock.sleeps == [17.5, 60]


async def test_a_retry_after_beyond_a_minute_is_not_waited_for(kit: Kit) -> None:
    clock = FakeClock(autojump=True)
    agent = kit.agent([RateLimited("later", retry_after=61.0)], clock=clock)
    result = await agent.run("hi", session="s")

    assert stop_of(result) == "failed/model"
    assert "later" in result.stop.detail
    assert clock.sleeps == []


async def test_whoever_reads_along_is_told_of_every_wait(kit: Kit) -> None:
    clock = FakeClock(autojump=True)
    policy = RetryPolicy(max_attempts=4, random=lambda: 0.5)
    agent = kit.agent([Overloaded("busy"), "ok"], clock=clock, retry=policy)
    async with agent.start("hi", session="s") as run:
        events = [event async for event in run]

    [told] = [event for event in events if isinstance(event, RetryScheduled)]
    assert (told.attempt, told.max_attempts, told.delay) == (1, 4, 0.25)
    assert "busy" in told.reason


async def test_a_steer_in_the_wait_for_a_retry_is_in_the_next_attempt(
    kit: Kit,
) -> None:
    clock = FakeClock()
    policy = RetryPolicy(random=lambda: 0.5)
    agent = kit.agent([Overloaded("busy"), "ok"], clock=clock, retry=policy)
    async with agent.start("hi", session="s") as run:
        await clock.sleeping()
        await run.steer("hurry")
        await clock.advance(60)
        await run.result()

    assert shown(kit.requests()[1].messages) == ["user hi", "user hurry"]


async def test_text_of_a_failed_attempt_is_kept_and_never_shown_again(
    kit: Kit,
) -> None:
    cut = step("half a ", cut=True)
    await kit.agent([cut, "whole"], retry=AT_ONCE).run("hi", session="s")

    assert shown(kit.requests()[1].messages) == ["user hi"]
    failed = next(
        stored.record
        for stored in await kit.records()
        if stored.record.kind == "model.outcome"
    )
    assert [getattr(part, "text", "") for part in getattr(failed, "content", ())] == [
        "half a "
    ]


async def test_a_tool_is_never_run_twice_because_a_later_request_failed(
    kit: Kit,
) -> None:
    agent = kit.agent([call("rw"), Overloaded("busy"), "ok"], retry=AT_ONCE)
    await agent.run("hi", session="s")

    assert kit.effects.read() == ["call_1"]


async def test_a_tool_timeout_is_not_the_end_of_the_runs_time(kit: Kit) -> None:
    @tool(effects="none", timeout=0.02)
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return ""

    agent = kit.agent([call("hang"), call("ro"), "ok"], tools=[hang, kit.ro])

    assert (await agent.run("hi", session="s", timeout=5)).output == "ok"
