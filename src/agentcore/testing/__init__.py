"""Stand-ins for what an agent talks to, so that its tests need no network.

    ScriptedModel, call, call_raw, step   a model that answers from a script
    FunctionModel                         a model that answers from a function
    FakeExecutor, tool_spec, in_turn      an executor that only pretends
    Gate                                  where a fake waits for the test
    FakeClock, CountingIds                time and identifiers
    EffectLog                             effects, countable after a kill
    check_journal, assert_valid           the rules every journal keeps
    check_digests                         every prompt can be made again
    check_pairing                         every call has its one result

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
    from agentcore.testing.effects import EffectLog as EffectLog
    from agentcore.testing.executor import FakeExecutor as FakeExecutor
    from agentcore.testing.executor import in_turn as in_turn
    from agentcore.testing.executor import tool_spec as tool_spec
    from agentcore.testing.function_model import FunctionModel as FunctionModel
    from agentcore.testing.gate import Gate as Gate
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
    "CountingIds": "agentcore.testing.runtime",
    "DEFAULT_USAGE": "agentcore.testing.steps",
    "EffectLog": "agentcore.testing.effects",
    "FakeClock": "agentcore.testing.runtime",
    "FakeExecutor": "agentcore.testing.executor",
    "FunctionModel": "agentcore.testing.function_model",
    "Gate": "agentcore.testing.gate",
    "ScriptExhausted": "agentcore.testing.scripted",
    "ScriptedModel": "agentcore.testing.scripted",
    "Step": "agentcore.testing.steps",
    "StepLike": "agentcore.testing.steps",
    "Violation": "agentcore.journal.invariants",
    "assert_valid": "agentcore.journal.invariants",
    "call": "agentcore.testing.steps",
    "call_raw": "agentcore.testing.steps",
    "check_digests": "agentcore.journal.digests",
    "check_journal": "agentcore.journal.invariants",
    "check_pairing": "agentcore.journal.pairing",
    "forbid_model_requests": "agentcore._base.guard",
    "in_turn": "agentcore.testing.executor",
    "step": "agentcore.testing.steps",
    "tool_spec": "agentcore.testing.executor",
}

__all__ = [
    "DEFAULT_USAGE",
    "CountingIds",
    "EffectLog",
    "FakeClock",
    "FakeExecutor",
    "FunctionModel",
    "Gate",
    "ScriptExhausted",
    "ScriptedModel",
    "Step",
    "StepLike",
    "Violation",
    "assert_valid",
    "call",
    "call_raw",
    "check_digests",
    "check_journal",
    "check_pairing",
    "forbid_model_requests",
    "in_turn",
    "step",
    "tool_spec",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
