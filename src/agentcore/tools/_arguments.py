"""From a model's JSON text to checked arguments, and to the objects a call takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from agentcore._base.describe import error_text
from agentcore.errors import InvalidArguments
from agentcore.types.json import JsonObject

_EXACT: Final = frozenset({"bool", "int", "literal", "none", "nullable", "str"})
_CHANGES_TEXT: Final = ("strip_whitespace", "to_lower", "to_upper")
_SHOWN_ERRORS = 8
_SHOWN_INPUT = 80
_ERROR_LIMIT = 1500


class ArgumentReader:
    """Reads a model's arguments, as JSON and as the objects a call takes."""

    __slots__ = ("_exact", "_from_json", "_from_python")

    def __init__(self, adapter: TypeAdapter[dict[str, Any]]) -> None:
        self._from_json = adapter.validator.validate_json
        self._from_python = adapter.validator.validate_python
        self._exact = _all_exact(cast("Any", adapter.core_schema))

    def check(self, text: str) -> JsonObject:
        """Validate a model's JSON text and give back the object it spells.

        Raises:
            InvalidArguments: it does not fit; the message is for the model.
        """
        parsed = self._parse(text)
        # Each key has its colon, so an equal count rules out duplicates; strings and
        # nested objects with colons take the long way to the same answer.
        if text.count(":") != len(parsed):
            _refuse_duplicates(text)
        return parsed

    def _parse(self, text: str) -> JsonObject:
        if self._exact:
            try:  # what fits these types strictly *is* what the text spells
                found: JsonObject = self._from_json(text, strict=True)
            except ValidationError:
                pass  # "3" for 3 may still do
            else:
                return found
        self.validate_json(text)
        try:
            spelled: JsonObject = from_json(text, allow_inf_nan=False)
        except ValueError as error:
            raise InvalidArguments(f"not valid JSON: {error}") from None
        return spelled

    def validate_json(self, text: str | bytes) -> dict[str, Any]:
        """The keyword arguments of the call, from JSON text.

        Raises:
            InvalidArguments: it does not fit.
        """
        return _read(self._from_json, text)

    def validate_python(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of the call, from parsed JSON.

        Flat arguments are validated as they are. Others go through text once more,
        because only pydantic's JSON mode reads dates, enums or tuples the same way as
        `check` did, strict models included.

        Raises:
            InvalidArguments: they do not fit.
        """
        if self._exact:
            return _read(self._from_python, arguments)
        try:
            text = to_json(arguments, fallback=_as_dict)
        except ValueError as error:
            raise InvalidArguments(f"not JSON: {error}") from None
        return _read(self._from_json, text)


def _read(validate: Callable[[Any], Any], data: Any) -> dict[str, Any]:
    try:
        arguments: dict[str, Any] = validate(data)
    except ValidationError as error:
        raise InvalidArguments(_readable(error)) from None
    except Exception as error:  # a host's validator with a bug: not the loop's end
        raise InvalidArguments(
            f"the arguments could not be checked: {error_text(error)}"
        ) from error
    return arguments


def _all_exact(core: Mapping[str, Any]) -> bool:
    """Whether strict validation gives back exactly what the JSON text spells."""
    fields = core.get("fields")
    if core["type"] != "typed-dict" or fields is None:
        return False
    for field in fields.values():
        schema = field["schema"]
        while schema["type"] == "nullable":
            schema = schema["schema"]
        changes = any(schema.get(option) for option in _CHANGES_TEXT)
        values = schema.get("expected", ())
        plain = all(type(value) in (str, int, bool) for value in values)
        if schema["type"] not in _EXACT or changes or not plain:
            return False
        if "validation_alias" in field:
            return False
    return True


# --- refusing ---------------------------------------------------------------------


def _readable(error: ValidationError) -> str:
    """`city: Field required (got {…}); …`: what to change, bounded in length."""
    count, lines = error.error_count(), []
    for item in error.errors(include_url=False, include_context=False)[:_SHOWN_ERRORS]:
        path = ".".join(map(str, item["loc"]))
        where = f"{path}: " if path else ""
        lines.append(f"{where}{item['msg']} (got {_shown(item['input'])})")
    if count > _SHOWN_ERRORS:
        lines.append(f"and {count - _SHOWN_ERRORS} more")
    return "; ".join(lines)[:_ERROR_LIMIT]


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN_INPUT else text[: _SHOWN_INPUT - 1] + "…"
    return repr(short) if isinstance(value, str) else short


def _refuse_duplicates(text: str) -> None:
    # Numbers stay text: only keys matter, and Python limits the digits of an int.
    json.loads(text, object_pairs_hook=_unique, parse_int=str, parse_float=str)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArguments(f"{twice[:_SHOWN_INPUT]}: the key is there twice")
    return found


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f"{type(value).__name__} has no JSON form")
