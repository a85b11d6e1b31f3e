"""Checks look at what a run did; what they find is evidence and never its status."""

from typing import Any

import pytest
from tests.flows.kit import Kit, shown
from typing_extensions import override

from agentcore import Check, CheckResult, tool
from agentcore.errors import ConfigError
from agentcore.testing import FakeClock, Gate, call
from agentcore.types import records as r
from agentcore.types.policy import Budget

SCENARIO = pytest.mark.scenario


class Checks:
    """A check that finds what it is told to, one result after the other."""

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.runs = 0

    async def run(self) -> Any:
        self.runs += 1
        found = self.results.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def named(self, name: str = "tests", **settings: Any) -> Check:
        return Check(name, self.run, **settings)


def status(result: Any) -> str:
    return f"{result.stop.status} {result.verification}"


# --- status and evidence ------------------------------------------------------------
@SCENARIO("run-85")
async def test_a_run_without_effects_has_nothing_to_verify(kit: Kit) -> None:
    checks = Checks(True)
    agent = kit.agent([call("ro"), "done"], checks=[checks.named()])
    result = await agent.run("hi", session="s")

    assert status(result) == "completed not_applicable"
    assert (checks.runs, result.evidence) == (0, ())


@SCENARIO("run-85")
async def test_effects_nobody_checked_are_unverified(kit: Kit) -> None:
    result = await kit.agent([call("rw"), "done"]).run("hi", session="s")
    assert status(result) == "completed unverified"


@SCENARIO("run-85")
@pytest.mark.parametrize(
    ("found", "verification"),
    [
        (True, "passed"),
        (CheckResult(True, "12 passed"), "passed"),
        (CheckResult(False, "1 failed"), "failed"),
        (False, "failed"),
        (ValueError("no tests"), "unverified"),
        ("fine", "unverified"),
    ],
)
async def test_what_a_check_finds_stands_beside_the_status(
    kit: Kit, found: Any, verification: str
) -> None:
    checks = Checks(found)
    agent = kit.agent([call("rw"), "done"], checks=[checks.named()])
    result = await agent.run("hi", session="s")

    assert status(result) == f"completed {verification}"
    assert result.output == "done"
    (evidence,) = result.evidence
    assert evidence.check == "tests"
    assert evidence.output == getattr(found, "output", evidence.output)
    ended = [s.record for s in await kit.records() if isinstance(s.record, r.RunEnded)]
    assert [record.verification for record in ended] == [verification]


@SCENARIO("run-85")
async def test_a_run_that_hit_a_limit_keeps_its_evidence(kit: Kit) -> None:
    gate = kit.gate("look")
    answers = [call("rw"), call("ro", text="look")]
    agent = kit.agent(answers, budget=Budget(requests=2))
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        await run.record_evidence("by hand", CheckResult(True, "looked"))
        gate.open()
        result = await run.result()

    assert status(result) == "budget passed"
    assert [(e.check, e.output) for e in result.evidence] == [("by hand", "looked")]


async def test_a_check_looks_only_after_the_tools_it_is_for(kit: Kit) -> None:
    checks = Checks(True)
    agent = kit.agent([call("idem"), "a"], checks=[checks.named(after={"rw"})])
    assert status(await agent.run("hi", session="s")) == "completed unverified"
    assert checks.runs == 0

    agent = kit.agent([call("rw"), "a"], checks=[checks.named(after={"rw"})])
    assert status(await agent.run("hi", session="s")) == "completed passed"


@SCENARIO("run-86")
async def test_words_that_come_after_the_evidence_make_it_stale(kit: Kit) -> None:
    seen = Gate()

    class Slow(Checks):
        @override
        async def run(self) -> Any:
            if not self.runs:
                await run_handle[0].steer("one thing more")
            return await super().run()

    run_handle: list[Any] = []
    checks = Slow(True, True)
    agent = kit.agent([call("rw"), "one", "two"], checks=[checks.named()])
    async with agent.start("hi", session="s") as run:
        run_handle.append(run)
        result = await run.result()
    seen.open()

    # It was said while the check ran: it is answered, and the check runs again.
    assert (result.output, checks.runs) == ("two", 2)
    assert status(result) == "completed passed"


@SCENARIO("run-86")
async def test_evidence_about_what_has_changed_since_is_stale(kit: Kit) -> None:
    names = ["a", "b"]

    async def fingerprint() -> str:
        return names.pop(0)

    checks = Checks(True)
    check = checks.named(fingerprint=fingerprint)
    agent = kit.agent([call("rw"), "done"], checks=[check])
    result = await agent.run("hi", session="s")

    assert status(result) == "completed stale"
    assert result.evidence[0].fingerprint == "a"


# --- repair -------------------------------------------------------------------------
async def test_a_failed_check_goes_back_to_the_model_so_many_times(kit: Kit) -> None:
    bad, good = CheckResult(False, "line 3"), CheckResult(True)
    checks = Checks(bad, bad, good)
    answers = [call("rw"), "one", call("rw"), "two", "three", "never"]
    agent = kit.agent(answers, checks=[checks.named()], repair_rounds=2)
    result = await agent.run("hi", session="s")

    # The last answer changed nothing, so there was nothing new to look at.
    assert (result.output, checks.runs) == ("three", 2)
    assert "line 3" in shown(kit.requests()[2].messages)[-1]
    assert status(result) == "completed failed"


async def test_a_repair_that_works_is_verified(kit: Kit) -> None:
    checks = Checks(CheckResult(False, "line 3"), CheckResult(True))
    answers = [call("rw"), "one", call("rw"), "two"]
    agent = kit.agent(answers, checks=[checks.named()], repair_rounds=1)
    result = await agent.run("hi", session="s")

    assert (result.output, status(result)) == ("two", "completed passed")
    assert "Repair it" in shown(kit.requests()[2].messages)[-1]


async def test_without_repair_rounds_a_failed_check_changes_nothing(kit: Kit) -> None:
    checks = Checks(CheckResult(False, "line 3"))
    agent = kit.agent([call("rw"), "one"], checks=[checks.named()])
    assert (await agent.run("hi", session="s")).output == "one"
    assert len(kit.requests()) == 2


# --- stops --------------------------------------------------------------------------
async def test_a_check_that_is_cut_short_is_no_evidence(kit: Kit) -> None:
    looking = Gate()

    async def forever() -> bool:
        await looking.wait()
        return True

    agent = kit.agent([call("rw"), "done"], checks=[Check("slow", forever)])
    async with agent.start("hi", session="s") as run:
        await looking.reached()
        await run.cancel()
        result = await run.result()

    assert status(result) == "cancelled unverified"
    assert [e.result for e in result.evidence] == ["error"]


async def test_a_host_that_leaves_during_a_check_has_it_run_again(kit: Kit) -> None:
    looking = Gate()
    runs: list[int] = []

    async def sometimes() -> bool:
        runs.append(1)
        if len(runs) == 1:
            await looking.wait()
        return True

    check = Check("slow", sometimes)
    agent = kit.agent([call("rw"), "done"], checks=[check])
    async with agent.start("hi", session="s"):
        await looking.reached()
    result = await agent.resume("s")

    assert status(result) == "completed passed"
    assert len(runs) == 2


# --- bad input ----------------------------------------------------------------------
async def test_a_check_that_cannot_work_is_refused_where_it_is_made(kit: Kit) -> None:
    async def fine() -> bool:
        return True

    def plain() -> bool:
        return True

    bad: list[tuple[Any, str]] = [
        (lambda: Check("", fine), "Check.name"),
        (lambda: Check("a", plain), "Check.run must be an async"),  # type: ignore[arg-type]  # the point
        (lambda: Check("a", fine, "rw"), "Check.after"),  # type: ignore[arg-type]  # the point
        (lambda: kit.agent([], checks=[fine]), "checks must be"),
        (lambda: kit.agent([], checks=Check("a", fine)), "checks must be"),
        (lambda: kit.agent([], checks=[Check("a", fine)] * 2), "checks must be"),
        (lambda: kit.agent([], repair_rounds=-1), "repair_rounds"),
        (lambda: kit.agent([], repair_rounds=True), "repair_rounds"),
    ]
    for make, words in bad:
        with pytest.raises(ConfigError, match=words):
            make()


async def test_evidence_needs_an_open_run_of_ones_own(kit: Kit) -> None:
    agent = kit.agent(["done"], clock=FakeClock(autojump=True))
    async with agent.start("hi", session="s") as run:
        await run.result()
        with pytest.raises(ConfigError, match="open run"):
            await run.record_evidence("late", CheckResult(True))


async def test_a_structured_answer_can_be_repaired_too(kit: Kit) -> None:
    @tool
    async def write() -> str:
        """Write."""
        return "written"

    checks = Checks(CheckResult(False, "wrong"), True)
    answers = [
        call("write"),
        call("final_result", value=1),
        call("write"),
        call("final_result", value=2),
    ]
    agent = kit.agent(
        answers,
        tools=[write],
        output_type=int,
        checks=[checks.named()],
        repair_rounds=1,
    )
    result = await agent.run("hi", session="s")
    assert (result.output, status(result)) == (2, "completed passed")
