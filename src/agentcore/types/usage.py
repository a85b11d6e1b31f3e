"""What requests and runs cost. Unknown is `None`, never zero."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.json import EMPTY, JsonObject


@frozen
class Usage:
    """Tokens and cost of one model request, as the vendor reported them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    """The part of `input_tokens` read from the vendor's prompt cache."""
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    """The part of `output_tokens` spent on reasoning."""
    cost_usd: float | None = None
    kind: Literal["usage"] = "usage"
    extra: JsonObject = EMPTY

    @property
    def total_tokens(self) -> int | None:
        """Input plus output, or `None` while either is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@frozen
class RunUsage:
    """The totals of a run. Sums hold what is known; `unknown_requests` what is not."""

    requests: int = 0
    """Model requests that left, failed attempts included."""
    turns: int = 0
    """Accepted main replies."""
    tool_calls: int = 0
    """Calls that were started."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unknown_requests: int = 0
    """Requests whose usage was never told (estimated where a budget needs a number)."""
    kind: Literal["run_usage"] = "run_usage"
    extra: JsonObject = EMPTY

    @property
    def total_tokens(self) -> int:
        """Input plus output, as far as known."""
        return self.input_tokens + self.output_tokens
