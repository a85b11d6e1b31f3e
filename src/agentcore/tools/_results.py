"""From what a function returns to a `ToolResult`."""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic_core import from_json, to_json

from agentcore._base.describe import type_name
from agentcore.types.content import AudioPart, Effect, FilePart, ImagePart, TextPart
from agentcore.types.tools import ToolResult, ToolSpec

_PARTS = (TextPart, ImagePart, AudioPart, FilePart)
_LISTS = (list, tuple)  # as a tuple: `isinstance` of a union is five times slower
_SELF_JSON = frozenset({int, bool, types.NoneType})
_BYTES = (bytes, bytearray, memoryview)
_FIX = "return a str, a JSON-able value, parts, or a ToolResult"


def to_result(value: Any, spec: ToolSpec) -> ToolResult:
    """Make a result of a function's value.

    A `str` is the text as it stands. Parts, alone or in a list beside strings, become
    the content. A `ToolResult` passes through. Everything else is shown as JSON and
    kept as `structured`: pydantic models, dataclasses, lists, dicts, numbers, `None`,
    dates and enums; a set becomes an array.

    Bytes and what JSON cannot hold, NaN included, make a failed result that names the
    tool and the fix: the call has happened, so raising would hide its effect.
    """
    if isinstance(value, str):
        return ToolResult.of_text(_encodable(value))
    if type(value) in _SELF_JSON:
        return ToolResult((TextPart(to_json(value).decode()),), structured=value)
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, _PARTS):
        value = (value,)
    if isinstance(value, _LISTS) and any(isinstance(v, _PARTS) for v in value):
        return _of_parts(value, spec)
    if isinstance(value, _BYTES):
        return _unusable(value, "bytes are no text", spec)
    return _of_json(value, spec)


def _of_json(value: Any, spec: ToolSpec) -> ToolResult:
    try:
        data = to_json(value)
        # Read back for two reasons: `structured` holds plain JSON whatever the type
        # was, and the parser refuses the NaN that the writer lets through.
        structured = from_json(data, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        return _unusable(value, str(error), spec)
    return ToolResult((TextPart(data.decode()),), structured=structured)


def _of_parts(values: list[Any] | tuple[Any, ...], spec: ToolSpec) -> ToolResult:
    content: list[Any] = []
    for item in values:
        if isinstance(item, str):
            content.append(TextPart(_encodable(item)))
        elif isinstance(item, _PARTS):
            content.append(item)
        else:
            return _unusable(item, "a list of parts holds parts and str only", spec)
    return ToolResult(tuple(content))


def _unusable(value: Any, reason: str, spec: ToolSpec) -> ToolResult:
    if hasattr(value, "__await__"):
        reason = "nothing awaited it: declare the function `async def`"
        close = getattr(value, "close", None)  # or Python warns about the coroutine
        if close is not None:
            close()
    short = " ".join(reason.split())[:200]
    message = (
        f"tool {spec.name!r} ran, but returned {type_name(value)}, which is no result "
        f"({short}): {_FIX}"
    )
    effect: Effect = "none" if spec.effects == "none" else "done"
    return ToolResult.failed(message, effect=effect)


def _encodable(text: str) -> str:
    """The exact `str`, with lone surrogates (odd file names) spelled out as escapes."""
    if type(text) is not str:
        text = str.__str__(text)
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


# --- at definition time -----------------------------------------------------------


def never_json(annotation: Any) -> bool:
    """Whether a return annotation promises what can never be a result.

    Only bytes are decided here, alone or in a union of nothing else: a class may have
    subclasses that are fine, and a set is written as an array.
    """
    if get_origin(annotation) is Annotated:
        return never_json(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        members = [a for a in get_args(annotation) if a is not types.NoneType]
        return all(never_json(member) for member in members)
    return annotation in _BYTES
