"""Hypothesis strategies for any value of the vocabulary, from its type hints."""

import dataclasses
import functools
from typing import Any

from hypothesis import strategies as st

from agentcore.types._codec_shapes import Plan, Shape, plan_of
from agentcore.types.json import Unknown

FUTURE = "future.kind"

text = st.text(st.characters(codec="utf-8"), max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | floats | text
free_json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=5,
)
_SCALARS: dict[type, st.SearchStrategy[Any]] = {
    str: text,
    bytes: st.binary(max_size=8),
    int: st.integers(0),
    float: st.floats(0, 1, allow_nan=False),
    bool: st.booleans(),
}


def of_shape(shape: Shape) -> st.SearchStrategy[Any]:
    """Everything a shape may hold; an `Unknown` where one may stand."""
    if shape.free:
        return free_json
    choices = [_SCALARS[scalar] for scalar in shape.scalars]
    choices += [st.none()] * shape.null
    choices += [st.sampled_from(shape.words)] if shape.words else []
    choices += [of_class(cls) for cls in shape.classes.values()]
    if shape.items and shape.array:
        choices.append(st.lists(of_shape(shape.items), max_size=3).map(shape.array))
    if shape.values:
        values = st.dictionaries(text, of_shape(shape.values), max_size=3)
        choices.append(values)
    if shape.unknown:
        raw = st.dictionaries(text, free_json, max_size=2)
        choices.append(raw.map(lambda r: Unknown(FUTURE, {**r, "kind": FUTURE})))
    return st.one_of(choices)


@functools.cache
def of_class(cls: Any) -> st.SearchStrategy[Any]:
    """Values of a class: every field at its default or at anything it may hold."""
    return st.deferred(lambda: _built(plan_of(cls)))


def _built(plan: Plan) -> st.SearchStrategy[Any]:
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for field in plan.fields:
        anything = of_shape(field.shape)
        if plan.cls.__name__ == "Actor" and field.name == "user_id":
            anything = text.filter(bool)
        if plan.cls.__name__ == "Options" and field.name == "max_tokens":
            anything = st.integers(1)
        if field.default is not dataclasses.MISSING:
            anything = st.just(field.default) | anything
        fields[field.name] = anything
    if plan.has_extra:
        known = {"kind", *fields}
        unknown = st.dictionaries(text.filter(lambda k: k not in known), free_json)
        fields["extra"] = st.just({}) | unknown
    return st.builds(plan.cls, **fields)


__all__ = ["free_json", "of_class", "of_shape"]
