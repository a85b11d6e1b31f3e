"""What a field may hold in JSON terms, read once from its type hint.

The one description both directions are built from, so that they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from agentcore.types.json import EMPTY, Unknown
from agentcore.types.options import Unset

SCALARS = frozenset({str, bytes, int, float, bool})
_ARRAYS: dict[Any, type] = {tuple: tuple, frozenset: frozenset, Sequence: tuple}


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything a place may hold; JSON's own types tell the choices apart."""

    null: bool = False
    words: tuple[str, ...] = ()
    """Fixed strings (`Literal`)."""
    scalars: frozenset[type] = frozenset()
    array: type | None = None
    """`tuple` or `frozenset`, of `items`."""
    items: Shape | None = None
    values: Shape | None = None
    """Of a mapping from strings."""
    classes: Mapping[str, type] = EMPTY
    """Our own classes by their kind; one without a kind stands under `""`."""
    unknown: bool = False
    """An `Unknown` may stand here."""
    free: bool = False
    """Any JSON."""

    def joined(self, other: Shape) -> Shape:
        """What may hold either."""
        if same := self.classes.keys() & other.classes.keys():
            raise TypeError(f"two classes of one union share the kind {same}")
        return Shape(
            self.null or other.null,
            self.words + other.words,
            self.scalars | other.scalars,
            self.array or other.array,
            self.items or other.items,
            self.values or other.values,
            {**self.classes, **other.classes},
            self.unknown or other.unknown,
            self.free or other.free,
        )


NOTHING = Shape()
_SIMPLE: dict[Any, Shape] = {
    Any: Shape(free=True),
    type(None): Shape(null=True),
    Unset: NOTHING,  # only ever a default, so it is never written
    Unknown: Shape(unknown=True),
}


def shape_of(hint: Any) -> Shape:
    """The shape of a type hint.

    Raises:
        TypeError: JSON has no place for such a type.
    """
    if hint in SCALARS:
        return Shape(scalars=frozenset({hint}))
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return Shape(classes={_kind(hint): hint})
    return _generic(hint, get_origin(hint), get_args(hint))


def _generic(hint: Any, origin: Any, args: tuple[Any, ...]) -> Shape:
    if origin is Literal:
        return Shape(words=args)
    if origin in (Union, types.UnionType):
        return functools.reduce(Shape.joined, map(shape_of, args), NOTHING)
    if origin in _ARRAYS:
        return Shape(array=_ARRAYS[origin], items=shape_of(args[0]))
    if origin is Mapping:
        return Shape(values=shape_of(args[1]))
    raise TypeError(f"{hint!r} has no place in JSON")


def _kind(cls: Any) -> str:
    field = cls.__dataclass_fields__.get("kind")
    return str(field.default) if field else ""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a class; `kind` and `extra` are none."""

    name: str
    shape: Shape
    default: Any
    """`dataclasses.MISSING` where it must be given."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A class as JSON sees it."""

    cls: type
    kind: str
    fields: tuple[Field, ...]
    has_extra: bool


@functools.cache
def plan_of(cls: Any) -> Plan:
    """The plan of a frozen class of the vocabulary."""
    hints = get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return Plan(
        cls,
        _kind(cls),
        tuple(
            Field(f.name, shape_of(hints[f.name]), f.default)
            for f in fields
            if f.name not in ("kind", "extra")
        ),
        any(f.name == "extra" for f in fields),
    )
