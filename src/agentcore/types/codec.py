"""Any value of the vocabulary as JSON, and back, without loss.

Writing needs no family, reading does: `RECORDS.load_json(dump_json(record))`. In JSON

- an object carries its `kind`, then the fields that differ from their defaults;
- what stands in `extra` stands beside the other fields, where it came from;
- an `Unknown` is its raw object again;
- bytes are base64, tuples are lists, sets are sorted lists.

In the fields of free JSON (`settings`, `meta`, `structured` …) a tuple is written, and
so read back, as a list; what JSON cannot hold is refused.

Readers are built when first used; the fast way is all in pydantic-core.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from pydantic_core import (
    PydanticSerializationError,
    SchemaValidator,
    ValidationError,
    core_schema,
    from_json,
    to_json,
)

from agentcore._base.describe import type_name
from agentcore.errors import ConfigError, CorruptRecord
from agentcore.types._codec_read import CONFIG, read, schema_of
from agentcore.types._codec_shapes import Shape, shape_of
from agentcore.types._codec_write import ByType, Writer, fault
from agentcore.types.content import Part, ResultPart
from agentcore.types.events import RunEvent
from agentcore.types.inbox import InboxItem
from agentcore.types.messages import Message
from agentcore.types.records import Record

T = TypeVar("T")

# --- writing ----------------------------------------------------------------------


class _Roots(dict[type, Writer]):
    """What turns a value of a type into a dict, made when first needed."""

    def __missing__(self, cls: type) -> Writer:
        if not dataclasses.is_dataclass(cls):
            raise ConfigError(f"{cls.__name__} is no value of the vocabulary")
        writer = self[cls] = ByType(shape_of(cls), cls.__name__)[cls]
        return writer


_roots = _Roots()


def dump(value: Any) -> dict[str, Any]:
    """The value as a new JSON-able dict.

    Raises:
        ConfigError: a field holds what JSON cannot, or the reader would refuse.
    """
    made: dict[str, Any] = _roots[value.__class__](value)
    return made


def dump_json(value: Any) -> bytes:
    """The value as JSON.

    Raises:
        ConfigError: as `dump`; also text that is no valid Unicode.
    """
    return _encode(_roots[value.__class__](value), value)


def dump_many(values: Iterable[Any]) -> bytes:
    """The values as one JSON array.

    Raises:
        ConfigError: as `dump_json`.
    """
    return _encode([_roots[v.__class__](v) for v in values], values)


def _encode(made: Any, value: object) -> bytes:
    try:
        return to_json(made)
    except PydanticSerializationError:
        raise ConfigError(fault(made, type_name(value))) from None


# --- reading ----------------------------------------------------------------------


class Family(Generic[T]):
    """Reads one family of values: a class, or a union of classes told by their kind.

    What a newer version wrote is kept: an unknown field in `extra`, an unknown kind as
    the smallest `Unknown` its place allows, in the last resort the whole value.
    """

    __slots__ = ("_fast", "_fast_many", "_hint", "_name", "_shape")

    def __init__(self, hint: Any, name: str = "") -> None:
        self._hint = hint
        self._name = name or getattr(hint, "__name__", "value")
        self._shape: Shape | None = None
        self._fast: SchemaValidator | None = None
        self._fast_many: SchemaValidator | None = None

    def load(self, data: Mapping[str, Any]) -> T:
        """The value of parsed JSON; for bytes, `load_json` is ten times faster.

        Raises:
            CorruptRecord: the data are of a known kind and do not fit it.
        """
        if self._shape is None:
            self._shape = shape_of(self._hint)
        value: T = read(self._shape, data, self._name)
        return value

    def load_json(self, data: bytes) -> T:
        """The value of one JSON object.

        Raises:
            CorruptRecord: no JSON, or of a known kind that it does not fit.
        """
        fast = self._fast
        if fast is None:
            fast = self._fast = SchemaValidator(self._schema(), CONFIG)
        try:
            value: T = fast.validate_json(data)
        except (ValidationError, ConfigError):
            return self.load(_parsed(data, self._name))
        return value

    def load_many(self, data: bytes) -> list[T]:
        """The values of a JSON array; only those that need it take the tolerant way.

        Raises:
            CorruptRecord: as `load_json`, or no array.
        """
        fast = self._fast_many
        if fast is None:
            fast = self._fast_many = SchemaValidator(self._many_schema(), CONFIG)
        try:
            values: list[T] = fast.validate_json(data)
        except (ValidationError, ConfigError):
            items = _parsed(data, self._name)
            if not isinstance(items, list):
                raise CorruptRecord(f"{self._name}: no JSON array") from None
            return [self.load(item) for item in items]
        return values

    def _schema(self) -> core_schema.CoreSchema:
        self._shape = shape_of(self._hint)
        return schema_of(self._shape)

    def _many_schema(self) -> core_schema.CoreSchema:
        tolerant = core_schema.no_info_plain_validator_function(self.load)
        item = core_schema.union_schema(
            [self._schema(), tolerant], mode="left_to_right"
        )
        return core_schema.list_schema(item)


def _parsed(data: bytes, name: str) -> Any:
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise CorruptRecord(f"{name}: no valid JSON: {error}") from error


RECORDS: Final = Family[Record](Record, "record")
INBOX_ITEMS: Final = Family[InboxItem](InboxItem, "inbox item")
MESSAGES: Final = Family[Message](Message, "message")
EVENTS: Final = Family[RunEvent](RunEvent, "event")
PARTS: Final = Family[Part](Part, "part")
RESULT_PARTS: Final = Family[ResultPart](ResultPart, "result part")
