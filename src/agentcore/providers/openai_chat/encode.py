"""From a `ModelRequest` to the bytes of a chat completions request. Pure: no I/O.

The messages of a conversation are encoded once each. An `Encoder` keeps, per session,
the encoded fragments of the history it was given last, and for the next request encodes
only what follows the common beginning: a step costs what it adds, plus joining bytes.
Messages are compared by identity first and by value where that fails, so a history that
was built anew, shortened or edited gives the same bytes as without the cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic_core import to_json

from agentcore.errors import BadRequest
from agentcore.providers._profiles import Profile
from agentcore.providers.openai_chat._messages import CallIds, Fragment, MessageEncoder
from agentcore.types.messages import Message
from agentcore.types.model import ModelCapabilities, ModelRequest, OutputSchema
from agentcore.types.options import (
    NO_OPTIONS,
    UNSET,
    NamedTool,
    Options,
    ToolChoice,
    merge,
)
from agentcore.types.tools import ToolSpec

CACHED_SESSIONS: Final = 128
CACHED_BYTES: Final = 64 * 1024 * 1024
"""How much an encoder remembers; the session not used for longest goes first."""

_NEAR: Final = 4
"""How many messages at the end may differ before the whole history is compared."""


class _Session:
    """The encoded history of one session, as of its last request."""

    __slots__ = ("body", "encoder", "ends", "ids", "instructions", "messages", "tools")

    def __init__(self, encoder: MessageEncoder) -> None:
        self.encoder = encoder
        self.messages: list[Message] = []
        # Each fragment with a comma before it, one behind the other: a request copies
        # them in one piece. `ends` are the offsets behind each message's fragment.
        self.body = bytearray()
        self.ends: list[int] = []
        self.ids: list[CallIds] = []
        self.instructions: tuple[str, bytes] = ("", b"")
        self.tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def update(self, messages: Sequence[Message]) -> None:
        """Make the body that of `messages`, encoding only what is new."""
        known = common_length(self.messages, messages)
        if known < len(self.messages):
            self._cut(known)
        for message in messages[known:]:
            fragment = self.encoder.encode(message)
            if fragment.json:
                self.body += b"," + fragment.json
            self.messages.append(message)
            self.ends.append(len(self.body))
            self.ids.append(fragment.ids)

    def joined(self, instructions: str) -> tuple[bytes | memoryview, ...]:
        """The pieces of the list of messages, the instructions first."""
        if not instructions:
            return (memoryview(self.body)[1:],)
        known, encoded = self.instructions
        if known != instructions:
            system = {"role": "system", "content": instructions}
            encoded = Fragment.of([system]).json
            self.instructions = (instructions, encoded)
        return encoded, memoryview(self.body)

    def _cut(self, length: int) -> None:
        for ids in reversed(self.ids[length:]):
            self.encoder.forget(ids)
        del self.messages[length:]
        del self.ids[length:]
        del self.ends[length:]
        del self.body[self.ends[-1] if self.ends else 0 :]


class Encoder:
    """Encodes the requests of one model. Safe to share between threads.

    Args:
        model: the model's name on the wire.
        profile: how the vendor differs from the format.
        capabilities: what the model takes; anything else is refused by name.
    """

    def __init__(
        self, model: str, profile: Profile, capabilities: ModelCapabilities
    ) -> None:
        self._model = to_json(model)
        self._profile = profile
        self._capabilities = capabilities
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def encode(self, request: ModelRequest, defaults: Options = NO_OPTIONS) -> bytes:
        """The request's body.

        Args:
            request: what to send; its options lie over `defaults`.
            defaults: the model's own options.

        Raises:
            BadRequest: the model or the format cannot take a part of it; the message
                names the part. Nothing was sent.
        """
        fields = self._fields(request.options.over(defaults), request)
        with self._lock:
            session = self._session(request.session_id)
            before = len(session.body)
            try:
                session.update(request.messages)
            finally:
                self._size += len(session.body) - before
            tools = self._tools(session, request.tools)
            if "tools" in fields:  # the provider block brings its own list
                tools = b""
            body = b"".join(
                (
                    b'{"model":',
                    self._model,
                    b',"messages":[',
                    *session.joined(request.instructions),
                    b"]",
                    *(b"," + part for part in (_json(fields)[1:-1], tools) if part),
                    b"}",
                )
            )
            self._shrink(request.session_id)
        return body

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            encoder = MessageEncoder(self._profile, self._capabilities)
            session = self._sessions[session_id] = _Session(encoder)
        else:
            self._sessions.move_to_end(session_id)
        return session

    def _shrink(self, current: str) -> None:
        sessions = self._sessions
        while len(sessions) > CACHED_SESSIONS or self._size > CACHED_BYTES:
            oldest = next(iter(sessions))
            self._size -= len(sessions.pop(oldest).body)
            if oldest == current:
                break  # larger than all that may be kept: encoded anew next time

    def _tools(self, session: _Session, tools: tuple[ToolSpec, ...]) -> bytes:
        if not tools:
            return b""
        known, encoded = session.tools
        if known is not tools and known != tools:
            encoded = b'"tools":' + _json([_tool(spec) for spec in tools])
            session.tools = (tools, encoded)
        return encoded

    def _fields(self, options: Options, request: ModelRequest) -> Mapping[str, Any]:
        """Everything beside model, messages and tools."""
        profile = self._profile
        fields: dict[str, Any] = {"stream": True}
        if profile.stream_options:
            fields["stream_options"] = {"include_usage": True}
        plain = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            profile.max_tokens_field: options.max_tokens,
            "stop": options.stop,
            "seed": options.seed,
        }
        fields.update({name: v for name, v in plain.items() if v is not UNSET})
        if request.tools:  # vendors refuse both where no tool is offered
            if options.parallel_tool_calls is not UNSET:
                fields["parallel_tool_calls"] = options.parallel_tool_calls
            if options.tool_choice is not UNSET:
                fields["tool_choice"] = _tool_choice(options.tool_choice)
        if request.output is not None:
            fields["response_format"] = self._response_format(request.output)
        block = options.provider.get(profile.name)
        if not block:
            return fields
        if taken := {"messages", "model"} & block.keys():
            raise BadRequest(
                f"the options block {profile.name!r} must not set "
                f"{' and '.join(sorted(taken))}; nothing was sent"
            )
        return merge(fields, block)

    def _response_format(self, output: OutputSchema) -> Mapping[str, Any]:
        if not self._capabilities.json_schema:
            raise BadRequest(
                f"{self._profile.name} models take no JSON Schema for the answer; use "
                "an output tool, or pass capabilities= if this model does"
            )
        described = {"description": output.description} if output.description else {}
        schema: dict[str, Any] = {
            "name": output.name,
            **described,
            "schema": output.json_schema,
        }
        if self._profile.strict_schema:
            schema["strict"] = output.strict and allows_strict(output.json_schema)
        return {"type": "json_schema", "json_schema": schema}


def common_length(old: Sequence[Message], new: Sequence[Message]) -> int:
    """How many messages both begin with.

    Nearly always all of `old`, or all but a note that stood at its end for one request
    only; comparing two lists of the same objects is one pass in C.
    """
    longest = min(len(old), len(new))
    for length in range(longest, max(longest - _NEAR, 0) - 1, -1):
        if _first(old, length) == _first(new, length):
            return length
    pairs = zip(old, new, strict=False)
    return next(n for n, (a, b) in enumerate(pairs) if a is not b and a != b)


def _first(messages: Sequence[Message], length: int) -> list[Message]:
    head = messages if length == len(messages) else messages[:length]
    return head if isinstance(head, list) else list(head)


def allows_strict(schema: object) -> bool:
    """Whether a schema obeys the rules under which vendors promise to follow it.

    Every object must list all its properties as required and forbid others; a vendor
    refuses a strict schema that does not, so it is then sent without the promise.
    """
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if isinstance(properties, Mapping) or schema.get("type") == "object":
            names = set(properties or ())
            if schema.get("additionalProperties") is not False:
                return False
            if names != set(schema.get("required") or ()):
                return False
        return all(allows_strict(value) for value in schema.values())
    if isinstance(schema, list | tuple):
        return all(allows_strict(value) for value in schema)
    return True


def _tool(spec: ToolSpec) -> Mapping[str, Any]:
    # Without `strict`: it changes what a schema means (nothing may be optional).
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice | Any) -> Any:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


def _json(value: Mapping[str, Any] | Iterable[Any]) -> bytes:
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError as error:
        raise BadRequest(
            f"an option or a schema is no JSON value; nothing was sent: {error}"
        ) from error
