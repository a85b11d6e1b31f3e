"""Stand-ins for what an agent talks to, so that its tests need no network.

    ScriptedModel, call, call_raw, step   a model that answers from a script
    FunctionModel                         a model that answers from a function
    FakeExecutor, tool_spec, in_turn      an executor that only pretends
    Gate                                  where a fake waits for the test
    FakeClock, CountingIds                time and identifiers
    EffectLog, effect_tools               effects, countable after a kill
    FaultyStore, fails, crashes, …        a store that fails, and whose process can die
    CrashTest                             a real process, killed where a test says
    assert_journal                        all of the following about a journal at once:
    check_journal, assert_valid           the rules every journal keeps
    check_digests                         every prompt can be made again
    check_pairing                         every call has its one result
    check_effects                         the journal says what really happened

Nothing here needs pytest, except the plugin (`testing.plugin`) and the contract suites
(`testing.contracts`). Names load on first use: the plugin is imported by every pytest
run of an environment, and must not cost it more than a moment.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcore._base.guard import forbid_model_requests as forbid_model_requests
    from agentcore.journal.digests import check_digests as check_digests
    from agentcore.journal.invariants import Violation as Violation
    from agentcore.journal.invariants import assert_valid as assert_valid
    from agentcore.journal.invariants import check_journal as check_journal
    from agentcore.journal.pairing import check_pairing as check_pairing
    from agentcore.testing._effect_tools import effect_tools as effect_tools
    from agentcore.testing.crash import Aftermath as Aftermath
    from agentcore.testing.crash import CrashCase as CrashCase
    from agentcore.testing.crash import CrashTest as CrashTest
    from agentcore.testing.effects import EffectLog as EffectLog
    from agentcore.testing.executor import FakeExecutor as FakeExecutor
    from agentcore.testing.executor import in_turn as in_turn
    from agentcore.testing.executor import tool_spec as tool_spec
    from agentcore.testing.faults import Crashed as Crashed
    from agentcore.testing.faults import Fault as Fault
    from agentcore.testing.faults import FaultyStore as FaultyStore
    from agentcore.testing.faults import Torn as Torn
    from agentcore.testing.faults import crashes as crashes
    from agentcore.testing.faults import delays as delays
    from agentcore.testing.faults import fails as fails
    from agentcore.testing.faults import holds as holds
    from agentcore.testing.faults import kills as kills
    from agentcore.testing.faults import turns_clock as turns_clock
    from agentcore.testing.function_model import FunctionModel as FunctionModel
    from agentcore.testing.gate import Gate as Gate
    from agentcore.testing.journals import assert_journal as assert_journal
    from agentcore.testing.journals import check_effects as check_effects
    from agentcore.testing.journals import journal_lines as journal_lines
    from agentcore.testing.runtime import CountingIds as CountingIds
    from agentcore.testing.runtime import FakeClock as FakeClock
    from agentcore.testing.scripted import ScriptedModel as ScriptedModel
    from agentcore.testing.scripted import ScriptExhausted as ScriptExhausted
    from agentcore.testing.steps import DEFAULT_USAGE as DEFAULT_USAGE
    from agentcore.testing.steps import Step as Step
    from agentcore.testing.steps import StepLike as StepLike
    from agentcore.testing.steps import call as call
    from agentcore.testing.steps import call_raw as call_raw
    from agentcore.testing.steps import step as step

_LAZY = {
    "Aftermath": "agentcore.testing.crash",
    "CountingIds": "agentcore.testing.runtime",
    "CrashCase": "agentcore.testing.crash",
    "CrashTest": "agentcore.testing.crash",
    "Crashed": "agentcore.testing.faults",
    "DEFAULT_USAGE": "agentcore.testing.steps",
    "EffectLog": "agentcore.testing.effects",
    "FakeClock": "agentcore.testing.runtime",
    "FakeExecutor": "agentcore.testing.executor",
    "Fault": "agentcore.testing.faults",
    "FaultyStore": "agentcore.testing.faults",
    "FunctionModel": "agentcore.testing.function_model",
    "Gate": "agentcore.testing.gate",
    "ScriptExhausted": "agentcore.testing.scripted",
    "ScriptedModel": "agentcore.testing.scripted",
    "Step": "agentcore.testing.steps",
    "StepLike": "agentcore.testing.steps",
    "Torn": "agentcore.testing.faults",
    "Violation": "agentcore.journal.invariants",
    "assert_journal": "agentcore.testing.journals",
    "assert_valid": "agentcore.journal.invariants",
    "call": "agentcore.testing.steps",
    "call_raw": "agentcore.testing.steps",
    "check_digests": "agentcore.journal.digests",
    "check_effects": "agentcore.testing.journals",
    "check_journal": "agentcore.journal.invariants",
    "check_pairing": "agentcore.journal.pairing",
    "crashes": "agentcore.testing.faults",
    "delays": "agentcore.testing.faults",
    "effect_tools": "agentcore.testing._effect_tools",
    "fails": "agentcore.testing.faults",
    "forbid_model_requests": "agentcore._base.guard",
    "holds": "agentcore.testing.faults",
    "in_turn": "agentcore.testing.executor",
    "journal_lines": "agentcore.testing.journals",
    "kills": "agentcore.testing.faults",
    "step": "agentcore.testing.steps",
    "tool_spec": "agentcore.testing.executor",
    "turns_clock": "agentcore.testing.faults",
}

__all__ = [
    "DEFAULT_USAGE",
    "Aftermath",
    "CountingIds",
    "CrashCase",
    "CrashTest",
    "Crashed",
    "EffectLog",
    "FakeClock",
    "FakeExecutor",
    "Fault",
    "FaultyStore",
    "FunctionModel",
    "Gate",
    "ScriptExhausted",
    "ScriptedModel",
    "Step",
    "StepLike",
    "Torn",
    "Violation",
    "assert_journal",
    "assert_valid",
    "call",
    "call_raw",
    "check_digests",
    "check_effects",
    "check_journal",
    "check_pairing",
    "crashes",
    "delays",
    "effect_tools",
    "fails",
    "forbid_model_requests",
    "holds",
    "in_turn",
    "journal_lines",
    "kills",
    "step",
    "tool_spec",
    "turns_clock",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
