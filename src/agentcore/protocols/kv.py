"""The contract of small data that spans sessions: memory, grants, presets, prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentcore.types.json import JsonObject, JsonValue


class KeyValueStore(Protocol):
    """JSON objects by key, with queries by equality and by set."""

    async def get(self, key: str) -> JsonObject | None:
        """The value, or `None`."""
        ...

    async def set(self, key: str, value: JsonObject) -> None:
        """Put a value."""
        ...

    async def delete(self, key: str) -> bool:
        """Remove a key; tells whether it was there."""
        ...

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """The keys with a prefix, sorted."""
        ...

    async def query(
        self, where: Mapping[str, JsonValue | Sequence[JsonValue]]
    ) -> Sequence[tuple[str, JsonObject]]:
        """Entries whose fields equal a value, or are one of a list of values."""
        ...

    async def compare_and_set(
        self, key: str, expected: JsonObject | None, value: JsonObject
    ) -> bool:
        """Put `value` only while the key holds `expected` (`None`: is absent)."""
        ...
