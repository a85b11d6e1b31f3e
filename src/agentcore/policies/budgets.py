"""Limits of one run, counted from what the run has spent."""

from __future__ import annotations

from agentcore.types.policy import (
    Budget,
    BudgetKind,
    BudgetVerdict,
    Charge,
    Exhausted,
    Granted,
)
from agentcore.types.runs import RunView
from agentcore.types.usage import Usage


class RunLimits:
    """A `BudgetPolicy` that counts: the next charge is refused once a limit is met.

    What was spent is read from the run, which is a fold of the journal, so there is
    nothing here to save or restore.
    """

    __slots__ = ("_budget",)

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def reserve(self, charge: Charge, view: RunView) -> BudgetVerdict:
        """Grant the charge, or name the first limit it would overstep."""
        if charge.tool_calls:
            return self._reserve_call(charge, view)
        return self._reserve_request(charge, view)

    def settle(self, reservation_id: str, usage: Usage | None) -> None:
        """Nothing to do: the journal has the usage."""

    def _reserve_call(self, charge: Charge, view: RunView) -> BudgetVerdict:
        budget = self._budget
        limit = budget.tool_calls
        if limit is not None and view.usage.tool_calls + charge.tool_calls > limit:
            return Exhausted("tool_calls", f"the run may make {limit} tool calls")
        own = budget.per_tool.get(charge.tool or "")
        if own is not None and view.tool_uses.get(charge.tool or "", 0) >= own:
            detail = f"{charge.tool} may be called {own} times in a run"
            return Exhausted("tool_calls", detail)
        return Granted("")

    def _reserve_request(self, charge: Charge, view: RunView) -> BudgetVerdict:
        budget, spent = self._budget, view.usage
        used: tuple[tuple[BudgetKind, float | None, float], ...] = (
            ("requests", budget.requests, spent.requests),
            ("turns", budget.turns, spent.turns),
            ("tokens_in", budget.input_tokens, spent.input_tokens),
            ("tokens_out", budget.output_tokens, spent.output_tokens),
            ("tokens_total", budget.total_tokens, spent.total_tokens),
            ("cost", budget.cost_usd, spent.cost_usd),
            ("wall_time", budget.wall_time, view.running_seconds),
        )
        for kind, limit, amount in used:
            if limit is not None and amount >= limit:
                return Exhausted(kind, f"{amount:g} of {limit:g} used")
        return Granted("")
