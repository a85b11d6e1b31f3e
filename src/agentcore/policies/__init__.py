"""Policies a host can use as they are: retries and limits."""

from agentcore.policies.budgets import RunLimits as RunLimits
from agentcore.policies.retry import RetryPolicy as RetryPolicy

__all__ = ["RetryPolicy", "RunLimits"]
