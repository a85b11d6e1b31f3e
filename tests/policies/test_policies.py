"""What the shipped policies answer, and what they refuse to be made of."""

from typing import Any

import pytest

from agentcore.errors import ConfigError
from agentcore.policies.budgets import RunLimits
from agentcore.policies.retry import RetryPolicy
from agentcore.types.policy import Budget


@pytest.mark.parametrize("attempts", [0, -1, 1.5, "3", None], ids=repr)
def test_a_number_of_attempts_that_means_nothing_is_refused(attempts: Any) -> None:
    with pytest.raises(ConfigError, match="max_attempts must be an int of at least 1"):
        RetryPolicy(max_attempts=attempts)


@pytest.mark.parametrize("name", ["base", "cap", "max_retry_after"])
@pytest.mark.parametrize("seconds", [-0.1, "1", None], ids=repr)
def test_a_wait_that_means_nothing_is_refused_by_name(name: str, seconds: Any) -> None:
    settings: dict[str, Any] = {name: seconds}
    with pytest.raises(ConfigError, match=f"RetryPolicy.{name} must be seconds"):
        RetryPolicy(**settings)


def test_waits_double_up_to_the_cap_and_jitter_only_shortens_them() -> None:
    whole = RetryPolicy(base=1.0, cap=4.0, random=lambda: 1.0)
    none = RetryPolicy(base=1.0, cap=4.0, random=lambda: 0.0)
    assert [whole.delay(None, n) for n in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 4.0]
    assert none.delay(None, 3) == 0.0


def test_a_vendors_wait_is_kept_to_up_to_the_most_one_waits() -> None:
    policy = RetryPolicy(max_retry_after=10.0)
    assert policy.delay(10.0, 1) == 10.0
    assert policy.delay(10.1, 1) is None


def test_limits_keep_nothing_of_their_own() -> None:
    limits = RunLimits(Budget(requests=1))
    limits.settle("reservation", None)
    assert not hasattr(limits, "__dict__")
