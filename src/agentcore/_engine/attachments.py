"""Attachments: kept once by content, and put back in place for the model.

The bytes of an image, a sound or a file go into the store before the input or outcome
that names them, so they outlive whatever they were read from. The journal and the
history hold the reference; a request holds the bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

from typing_extensions import override

from agentcore.protocols.store import RunStore
from agentcore.types.content import AudioPart, FilePart, ImagePart
from agentcore.types.inbox import Input
from agentcore.types.messages import Message, ToolMessage, UserMessage

_INLINE_BYTES: Final = 1024
"""What is smaller costs less where it stands than as a blob of its own."""
_CARRIERS: Final = frozenset({ImagePart, AudioPart, FilePart})


async def stow(store: RunStore, item: Input) -> Input:
    """Put the bytes of an input into the store; durable before it is accepted."""
    if all(type(part) not in _CARRIERS for part in item.content):
        return item
    content = await stow_parts(store, item.content)
    return dataclasses.replace(item, content=content)


async def stow_parts(store: RunStore, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts with a reference in the place of all but the smallest bytes."""
    stowed: list[Any] = []
    for part in parts:
        if type(part) in _CARRIERS and len(part.data or b"") > _INLINE_BYTES:
            ref = await store.put_blob(part.data, media_type=part.media_type)
            part = dataclasses.replace(part, data=None, blob=ref)  # noqa: PLW2901
        stowed.append(part)
    return tuple(stowed)


class Attachments:
    """Puts bytes back into the messages of requests, each message looked at once."""

    __slots__ = ("_filled", "_missing", "_seen", "_store")

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._seen = 0
        self._missing: list[tuple[int, Message]] | None = None
        self._filled: dict[int, Message] | None = None
        """Messages that name blobs, with their bytes, by their place."""

    def needed(self, messages: Sequence[Message], first: int, end: int) -> bool:
        """Some message up to `end` names a blob; `first` is the place of the first."""
        for place in range(max(self._seen, first), end):
            message = messages[place - first]
            if _names_blobs(message):
                self._missing = [*(self._missing or ()), (place, message)]
        self._seen = max(self._seen, end)
        return self._missing is not None or self._filled is not None

    async def fill(self, messages: Sequence[Message], first: int) -> Sequence[Message]:
        """The messages as a model can take them.

        Raises:
            StoreError: a blob is gone.
        """
        filled = dict(self._filled or {})
        for place, message in self._missing or ():
            filled[place] = await self._fill_one(message)
        self._missing, self._filled = None, filled
        return _Filled(messages, first, filled)

    async def _fill_one(self, message: Message) -> Message:
        if isinstance(message, ToolMessage):
            results = [
                dataclasses.replace(one, content=await self._parts(one.content))
                for one in message.results
            ]
            return dataclasses.replace(message, results=tuple(results))
        content: Any = getattr(message, "content", ())
        filled: Any = await self._parts(content)
        return dataclasses.replace(message, content=filled)

    async def _parts(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        filled: list[Any] = []
        for part in parts:
            if type(part) in _CARRIERS and part.blob is not None:
                data = await self._store.get_blob(part.blob)
                part = dataclasses.replace(part, data=data, blob=None)  # noqa: PLW2901
            filled.append(part)
        return tuple(filled)


def _names_blobs(message: Message) -> bool:
    if isinstance(message, UserMessage):
        return _any_blob(message.content)
    if isinstance(message, ToolMessage):
        return any(_any_blob(result.content) for result in message.results)
    return False


def _any_blob(parts: tuple[Any, ...]) -> bool:
    return any(type(part) in _CARRIERS and part.blob is not None for part in parts)


class _Filled(Sequence[Message]):
    """A history with some messages in the place of others."""

    __slots__ = ("_filled", "_first", "_messages")

    def __init__(
        self, messages: Sequence[Message], first: int, filled: dict[int, Message]
    ) -> None:
        self._messages = messages
        self._first = first
        self._filled = filled

    @override
    def __len__(self) -> int:
        return len(self._messages)

    @override
    def __iter__(self) -> Iterator[Message]:
        for place, message in enumerate(self._messages, self._first):
            yield self._filled.get(place, message)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    @override
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return list(self)[index]
        place = self._first + (index if index >= 0 else len(self) + index)
        return self._filled.get(place) or self._messages[index]

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    @override
    def __hash__(self) -> int:
        return hash(tuple(self))
