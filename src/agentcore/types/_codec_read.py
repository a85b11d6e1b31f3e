"""From JSON to values: a fast way in pydantic-core, and a tolerant one in Python.

The fast way is strict: an unknown kind or field fails it. Whatever fails is read again
the tolerant way, which keeps what a newer version added: an unknown field in `extra`,
an unknown kind in the smallest `Unknown` its place allows. Damage is neither, and is
refused.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import cache
from typing import Any

from pydantic_core import CoreSchema, core_schema

from agentcore._base.describe import type_name
from agentcore.errors import ConfigError, CorruptRecord
from agentcore.types._codec_shapes import Shape, plan_of
from agentcore.types.json import EMPTY, Unknown

CONFIG = core_schema.CoreConfig(
    strict=True, allow_inf_nan=False, val_json_bytes="base64"
)

# --- the fast way: a schema for pydantic-core -------------------------------------

_SCALAR_SCHEMAS: dict[type, Callable[[], CoreSchema]] = {
    str: core_schema.str_schema,
    bytes: core_schema.bytes_schema,
    int: core_schema.int_schema,
    float: core_schema.float_schema,
    bool: core_schema.bool_schema,
}


def schema_of(shape: Shape) -> CoreSchema:
    """The schema of a shape; it knows no `Unknown`, so that newer things fail it."""
    if shape.free:
        return core_schema.any_schema()
    choices = [_SCALAR_SCHEMAS[s]() for s in shape.scalars]
    if shape.words:
        choices.append(core_schema.literal_schema(list(shape.words)))
    if shape.items:
        choices.append(_array_schema(shape, schema_of(shape.items)))
    if shape.classes:
        choices.append(_classes_schema(shape))
    if shape.values:
        choices.append(_object_schema(shape, schema_of(shape.values)))
    one = choices[0] if len(choices) == 1 else _first_of(choices)
    return core_schema.nullable_schema(one) if shape.null else one


def _first_of(choices: list[CoreSchema]) -> CoreSchema:
    return core_schema.union_schema(list(choices), mode="left_to_right")


def _object_schema(shape: Shape, values: CoreSchema) -> CoreSchema:
    if not shape.classes:
        return core_schema.dict_schema(core_schema.str_schema(), values)
    # Beside our own classes an object that has a kind takes the tolerant way: it may be
    # one of them with a field this version does not know.
    no_kind = core_schema.typed_dict_field(
        core_schema.literal_schema([""]), required=False
    )
    return core_schema.typed_dict_schema({"kind": no_kind}, extra_behavior="allow")


def _array_schema(shape: Shape, items: CoreSchema) -> CoreSchema:
    if shape.array is frozenset:
        return core_schema.frozenset_schema(items)
    return core_schema.tuple_schema([items], variadic_item_index=0)


def _classes_schema(shape: Shape) -> CoreSchema:
    if len(shape.classes) == 1 and not shape.unknown:
        (cls,) = shape.classes.values()
        return _class_schema(cls)
    schemas = {kind: _class_schema(cls) for kind, cls in shape.classes.items()}
    return core_schema.tagged_union_schema(schemas, "kind")


@cache
def _class_schema(cls: type) -> CoreSchema:
    plan = plan_of(cls)
    fields = [_field_schema(f.name, schema_of(f.shape), f.default) for f in plan.fields]
    if plan.kind:
        kind = core_schema.literal_schema([plan.kind])
        fields.append(_field_schema("kind", kind, plan.kind))
    if plan.has_extra:  # `init=False`: an "extra" in the JSON is an unknown field
        anything = core_schema.any_schema()
        fields.append(_field_schema("extra", anything, EMPTY, init=False))
    arguments = core_schema.dataclass_args_schema(cls.__name__, fields)
    return core_schema.dataclass_schema(
        cls,
        arguments,
        [f["name"] for f in fields],
        slots=True,
        post_init=hasattr(cls, "__post_init__"),
        config=core_schema.CoreConfig(**CONFIG, extra_fields_behavior="forbid"),
    )


def _field_schema(
    name: str, schema: CoreSchema, default: Any, *, init: bool = True
) -> core_schema.DataclassField:
    if default is not MISSING:
        schema = core_schema.with_default_schema(schema, default=default)
    return core_schema.dataclass_field(name, schema, init=init)


# --- the tolerant way -------------------------------------------------------------


class _Foreign(Exception):  # noqa: N818 - a signal, caught where an Unknown fits
    """Something of a newer version stands where no `Unknown` may."""


def read(shape: Shape, data: Any, where: str) -> Any:
    """The value of a shape; the outermost object may always become an `Unknown`.

    Raises:
        CorruptRecord: the data are of a known kind and do not fit it.
    """
    try:
        return _read(shape, data, where)
    except _Foreign:
        return _unknown(data, where)


def _read(shape: Shape, data: Any, where: str) -> Any:
    if shape.free or (data is None and shape.null):
        return data
    if isinstance(data, Mapping):
        return _read_object(shape, data, where)
    if isinstance(data, list) and shape.items:
        items = [_read(shape.items, v, f"{where}[{i}]") for i, v in enumerate(data)]
        return shape.array(items) if shape.array else items
    if isinstance(data, str):
        return _read_text(shape, data, where)
    return _read_scalar(shape, data, where)


def _read_object(shape: Shape, data: Mapping[str, Any], where: str) -> Any:
    cls = _class_of(shape, data)
    if cls is None and shape.values:
        return {k: _read(shape.values, v, f"{where}.{k}") for k, v in data.items()}
    if cls is None and not shape.classes and not shape.unknown:
        raise _refusal(data, where)
    try:
        return _read_class(cls, data)
    except _Foreign:
        if not shape.unknown:
            raise
        return _unknown(data, where)


def _class_of(shape: Shape, data: Mapping[str, Any]) -> type | None:
    if len(shape.classes) == 1 and not shape.unknown and not shape.values:
        ((only, cls),) = shape.classes.items()
        return cls if data.get("kind", only) == only or not only else None
    kind = data.get("kind")
    return shape.classes.get(kind) if isinstance(kind, str) else None


def _unknown(data: Any, where: str) -> Unknown:
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str):
        raise CorruptRecord(f"{where} has no kind")
    return Unknown(kind, dict(data))


def _read_class(cls: type | None, data: Mapping[str, Any]) -> Any:
    if cls is None:  # of a kind its place does not know
        raise _Foreign
    plan = plan_of(cls)
    rest = dict(data)
    if plan.kind:
        rest.pop("kind", None)
    values = {}
    for f in plan.fields:
        if f.name in rest:
            where = f"{plan.cls.__name__}.{f.name}"
            values[f.name] = _read(f.shape, rest.pop(f.name), where)
        elif f.default is MISSING:
            raise CorruptRecord(f"{plan.cls.__name__} lacks the field {f.name!r}")
    if rest:
        if not plan.has_extra:
            raise _Foreign
        values["extra"] = rest
    try:
        return plan.cls(**values)
    except ConfigError as error:  # the class checks itself
        raise CorruptRecord(str(error)) from error


def _read_text(shape: Shape, data: str, where: str) -> Any:
    if data in shape.words or str in shape.scalars:
        return data
    if bytes in shape.scalars:
        try:
            return base64.b64decode(data, validate=True)
        except ValueError as error:
            raise CorruptRecord(f"{where} is no base64") from error
    if shape.words:
        raise CorruptRecord(f"{where} cannot be {data!r}, only {shape.words}")
    raise _refusal(data, where)


def _read_scalar(shape: Shape, data: Any, where: str) -> Any:
    if isinstance(data, bool):
        if bool in shape.scalars:
            return data
    elif isinstance(data, int) and int in shape.scalars:
        return data
    elif (
        isinstance(data, (int, float))
        and float in shape.scalars
        and math.isfinite(data)
    ):
        return float(data)
    raise _refusal(data, where)


def _refusal(data: Any, where: str) -> CorruptRecord:
    return CorruptRecord(f"{where} cannot hold {type_name(data)} {str(data)[:80]}")
