"""Records of the budget ledger."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.policy import Charge
from agentcore.types.usage import Usage


@frozen
class UsageReserved:
    """Held before a request or call starts; settled by `usage.recorded`."""

    reservation_id: str
    charge: Charge
    session_id: str = ""
    """The session that draws on the ledger; empty for the ledger's own."""
    kind: Literal["usage.reserved"] = "usage.reserved"
    extra: JsonObject = EMPTY


@frozen
class UsageRecorded:
    """What the reservation came to; `estimated` where the vendor did not tell."""

    reservation_id: str
    usage: Usage | None = None
    estimated: bool = False
    released: bool = False
    """Nothing was used: what was reserved for never started."""
    kind: Literal["usage.recorded"] = "usage.recorded"
    extra: JsonObject = EMPTY
