"""The contracts of permissions and budgets."""

from __future__ import annotations

from typing import Protocol

from agentcore.types.policy import BudgetVerdict, Charge, Verdict
from agentcore.types.runs import RunView
from agentcore.types.tools import ToolCall, ToolSpec
from agentcore.types.usage import Usage


class PermissionPolicy(Protocol):
    """Decides once per call, before its intent is journaled."""

    def decide(self, call: ToolCall, spec: ToolSpec, view: RunView) -> Verdict:
        """Allow, forbid or ask. An exception counts as forbidden."""
        ...


class BudgetPolicy(Protocol):
    """A ledger: reserve before, settle after. Its state is a fold of the journal."""

    def reserve(self, charge: Charge, view: RunView) -> BudgetVerdict:
        """Hold what a request or call will use, or say which limit forbids it."""
        ...

    def settle(self, reservation_id: str, usage: Usage | None) -> None:
        """Replace the reservation by what was used; `None`: keep the estimate."""
        ...
