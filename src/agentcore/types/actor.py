"""Who speaks: every input, decision and cancel carries an actor."""

from __future__ import annotations

from typing import Literal

from agentcore._base.describe import type_name
from agentcore._base.frozen import frozen
from agentcore.errors import ConfigError
from agentcore.types.json import EMPTY, JsonObject


@frozen
class Actor:
    """A person or system as the host knows it; it belongs to the input.

    Raises:
        ConfigError: `user_id` is not a non-empty str.
    """

    user_id: str
    group_id: str | None = None
    roles: tuple[str, ...] = ()
    tags: JsonObject = EMPTY
    kind: Literal["actor"] = "actor"
    extra: JsonObject = EMPTY

    def __post_init__(self) -> None:
        if not isinstance(self.user_id, str) or not self.user_id:
            raise ConfigError(
                "Actor.user_id must be a non-empty str, "
                f"not {type_name(self.user_id)} {self.user_id!r}"
            )
