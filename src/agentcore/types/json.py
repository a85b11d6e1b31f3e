"""JSON values, and the one shape unknown things take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from typing_extensions import override

from agentcore._base.frozen import frozen

JsonValue: TypeAlias = Any
"""str, int, float, bool, None, or lists and string-keyed mappings of them."""

JsonObject: TypeAlias = Mapping[str, JsonValue]


class EmptyObject(Mapping[str, Any]):
    """An empty mapping nobody can fill. One instance serves every default."""

    __slots__ = ()

    @override
    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(())

    @override
    def __len__(self) -> int:
        return 0

    @override
    def __hash__(self) -> int:
        return hash(EmptyObject)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and not other

    @override
    def __repr__(self) -> str:
        return "{}"

    @override
    def __reduce__(self) -> str:
        return "EMPTY"  # pickles and copies as the one shared instance


EMPTY: Final = EmptyObject()
"""The shared empty object: the default of every `extra` and `meta`."""


@frozen
class Unknown:
    """Something of a kind this version does not know, kept exactly as it came."""

    kind: str
    raw: JsonObject
