"""Runs the host's checks, and keeps what they found as evidence."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from agentcore._base.describe import error_text, type_name
from agentcore._base.surrogates import clean
from agentcore._engine.inbox import fold_cancel
from agentcore._engine.owner import Owner
from agentcore.types import records as r
from agentcore.types.runs import Check, CheckResult, Verification

Found: TypeAlias = Literal["passed", "failed", "error"]
_OUTPUT_CAP: Final = 20_000
"""Characters of a check's output that are kept; its end says most."""


async def run_check(owner: Owner, number: int) -> None:
    """Run one check, inside the owner's cancel scope, from intent to outcome."""
    check = owner.setup.checks[number]
    fingerprint, problem = await _fingerprint(check)
    evidence_id = owner.setup.ids.new("evidence")
    owner.writer.stage(r.EvidenceStarted(evidence_id, check.name, fingerprint))
    await owner.writer.commit()
    if owner.writer.has_mail:
        await fold_cancel(owner.writer)
    if not owner.may_start_effects():
        settle_check(owner, "stopped before it began")
        return
    result: Found = "error"
    output = problem
    if not problem:  # without a name there is nothing its result could hold for
        owner.in_effect = True
        result, output = await _look(check)
        owner.in_effect = False
    if owner.scope.cancel_called:
        return  # settled as an error
    run = owner.run
    repair = 0
    if result == "failed" and run.repairs < owner.setup.repair_rounds:
        repair = run.repairs + 1
    owner.writer.stage(_recorded(evidence_id, result, output, repair))


async def _look(check: Check) -> tuple[Found, str]:
    try:
        found: Any = await check.run()
    except Exception as error:  # noqa: BLE001 - the host's code
        return "error", f"the check failed: {error_text(error)}"
    if isinstance(found, bool):
        found = CheckResult(found)
    if not isinstance(found, CheckResult):
        return "error", f"the check returned {type_name(found)}, no CheckResult or bool"
    return ("passed" if found.passed else "failed"), str(found.output)


async def _fingerprint(check: Check) -> tuple[str | None, str]:
    """What the check is about to look at, by name; or why there is no name."""
    if check.fingerprint is None:
        return None, ""
    try:
        return str(await check.fingerprint()), ""
    except Exception as error:  # noqa: BLE001 - the host's code
        return None, f"the fingerprint failed: {error_text(error)}"


def _recorded(
    evidence_id: str, result: Found, output: str, repair: int = 0
) -> r.EvidenceRecorded:
    text = clean(output)
    if len(text) > _OUTPUT_CAP:
        left_out = len(text) - _OUTPUT_CAP
        text = f"[… {left_out} characters left out …]{text[-_OUTPUT_CAP:]}"
    return r.EvidenceRecorded(evidence_id, result, text, repair=repair)


def settle_check(owner: Owner, why: str) -> None:
    """A check that was begun will find nothing any more."""
    run = owner.state.open_run
    if run is not None and run.checking is not None:
        name = run.checking.evidence_id
        owner.writer.stage(r.EvidenceRecorded(name, "error", why, interrupted=True))


async def verification_at_end(owner: Owner) -> Verification:
    """What the evidence says, given that what it names is still what it looked at."""
    run = owner.run
    said = run.verification
    if said != "passed":
        return said
    for check in owner.setup.checks:
        seen = run.evidence.get(check.name)
        if seen is not None and seen.fingerprint is not None:
            now, _ = await _fingerprint(check)
            if now != seen.fingerprint:
                return "stale"
    return said


async def record_evidence(
    owner: Owner, name: str, found: CheckResult, fingerprint: str | None
) -> None:
    """Keep what the host found out by itself."""
    writer = owner.writer
    await writer.turn()
    evidence_id = owner.setup.ids.new("evidence")
    writer.stage(r.EvidenceStarted(evidence_id, name, fingerprint))
    result: Found = "passed" if found.passed else "failed"
    writer.stage(_recorded(evidence_id, result, found.output))
    await writer.commit()
