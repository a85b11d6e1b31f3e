"""When a failed model attempt is tried again: exponential back-off with full jitter."""

from __future__ import annotations

import random
from collections.abc import Callable

from agentcore._base.describe import type_name
from agentcore._base.frozen import frozen
from agentcore.errors import ConfigError


@frozen
class RetryPolicy:
    """Pure: the same inputs and the same `random` give the same delay.

    Full jitter (requirements E8): the delay is drawn from 0 to `base * 2**(n-1)`,
    capped. A `retry-after` of the vendor is honoured exactly, up to `max_retry_after`;
    beyond that waiting is pointless and the run fails instead.

    Raises:
        ConfigError: a field is not a number, or out of range.
    """

    max_attempts: int = 5
    """Attempts in all, the first one included."""
    base: float = 0.5
    """Seconds."""
    cap: float = 30.0
    """Seconds."""
    max_retry_after: float = 60.0
    """Seconds."""
    random: Callable[[], float] = random.random
    """Gives numbers from 0 to below 1."""

    def __post_init__(self) -> None:
        if not isinstance(self.max_attempts, int) or self.max_attempts < 1:
            raise ConfigError(
                "RetryPolicy.max_attempts must be an int of at least 1, "
                f"not {type_name(self.max_attempts)} {self.max_attempts!r}"
            )
        for name in ("base", "cap", "max_retry_after"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or value < 0:
                raise ConfigError(
                    f"RetryPolicy.{name} must be seconds of at least 0, "
                    f"not {type_name(value)} {value!r}"
                )

    def delay(self, retry_after: float | None, attempt: int) -> float | None:
        """Seconds to wait after failed attempt `attempt` (from 1); `None`: give up."""
        if retry_after is not None:
            return retry_after if retry_after <= self.max_retry_after else None
        ceiling = min(self.cap, self.base * 2 ** (attempt - 1))
        return float(ceiling * self.random())
