"""Puts tool calls together that arrive in pieces.

The wire format says: `index` names the call, `id` and `name` come once, `arguments` in
pieces. Servers that call themselves compatible leave out the index, send index 0 for
every call, repeat id and name in each piece, cut the name, send arguments before the
name or as an object. Each is understood here; nothing is repaired beyond that: argument
text stays as it came, valid JSON or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from agentcore.errors import BadResponse
from agentcore.types.content import ToolCallPart
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.model import (
    ModelDelta,
    ToolInputDelta,
    ToolInputReady,
    ToolInputStarted,
)


class _Call:
    """One call while it is being put together."""

    __slots__ = ("announced", "extra", "id", "name", "number", "pieces")

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.announced = False
        self.extra: JsonObject = EMPTY

    def is_complete(self) -> bool:
        """Its arguments are a whole JSON object already."""
        try:
            return isinstance(from_json("".join(self.pieces)), dict)
        except ValueError:
            return False


class ToolCallAssembler:
    """Collects the calls of one reply; deltas go to the list the caller passes."""

    __slots__ = ("_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def add(self, fragment: Mapping[str, Any], out: list[ModelDelta]) -> None:
        """Take one entry of `delta.tool_calls`; its deltas are appended to `out`."""
        function = fragment.get("function")
        if not isinstance(function, Mapping):
            function = {}
        index = fragment.get("index")
        call_id = _text(fragment.get("id"))
        name = _text(function.get("name"))
        arguments = _argument_text(function.get("arguments"))
        if not (call_id or name or arguments or self._calls):
            return  # an empty entry before any call says nothing
        call = self._find(index if type(index) is int else None, call_id, name)
        call.id = call.id or call_id
        if extra := fragment.get("extra_content"):
            # Gemini's signature of a thought: data to be sent back as it came.
            call.extra = {"extra_content": extra}
        if name and name != call.name:
            call.name += name
        self._take(call, arguments, out)

    def finish(self, out: list[ModelDelta]) -> tuple[ToolCallPart, ...]:
        """The complete calls, in the order in which they began.

        Raises:
            BadResponse: a call has no name. Retryable: the next answer is another one.
        """
        for call in self._calls:
            if not call.name:
                raise BadResponse(
                    f"tool call {call.number} of the reply has no name",
                    in_stream=True,
                    retryable=True,
                )
            self._announce(call, out)
        return tuple(self._settle(call, out) for call in self._calls)

    def _find(self, index: int | None, call_id: str, name: str) -> _Call:
        """The call that a piece belongs to, or a new one."""
        if index is None:
            return self._find_without_index(call_id, name)
        call = self._by_index.get(index)
        # One index for every call, and a new id and name: another call begins.
        reused = (
            call is not None and call_id and call.id not in ("", call_id) and name
        ) and call.name
        if call is None or reused:
            call = self._begin()
            self._by_index[index] = call
        return call

    def _find_without_index(self, call_id: str, name: str) -> _Call:
        current = self._calls[-1] if self._calls else None
        if call_id:
            for call in self._calls:
                if call.id == call_id:
                    return call
            # An id that comes late, after the call's first piece.
            late = current is not None and not (current.id or (current.name and name))
            return current if late and current is not None else self._begin()
        if current is None:
            return self._begin()
        if name and current.name:  # a new call, or the name said again?
            other = name != current.name and current.pieces
            if other or current.is_complete():
                return self._begin()
        return current

    def _begin(self) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        return call

    def _take(self, call: _Call, arguments: str, out: list[ModelDelta]) -> None:
        if not arguments:
            return
        call.pieces.append(arguments)
        if not call.name:
            return  # arguments before the name: told as soon as the call has one
        if call.announced:
            out.append(ToolInputDelta(call.number, arguments))
        else:
            self._announce(call, out)

    def _announce(self, call: _Call, out: list[ModelDelta]) -> None:
        """Tell of the call, once its name is complete: when its arguments begin."""
        if call.announced:
            return
        call.announced = True
        out.append(ToolInputStarted(call.number, call.name, call.id))
        if call.pieces:
            out.append(ToolInputDelta(call.number, "".join(call.pieces)))

    def _settle(self, call: _Call, out: list[ModelDelta]) -> ToolCallPart:
        # Servers send nothing at all for a tool without parameters.
        arguments = "".join(call.pieces) or "{}"
        out.append(ToolInputReady(call.number, call.name, arguments, call.id))
        return ToolCallPart(
            call.name, arguments, provider_call_id=call.id, extra=call.extra
        )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _argument_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return to_json(value).decode() if isinstance(value, Mapping) else ""
