"""A loopback server that answers with exactly the bytes it is told.

One connection may carry several requests, so that reuse can be seen.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import SocketAttribute, SocketStream

Answer = Callable[[SocketStream], Awaitable[bool | None]]
"""Writes one answer; `False` closes the connection behind it."""


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class RawServer:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0

    @property
    def last(self) -> Request:
        return self.requests[-1]


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[RawServer]:
    """Serve the answers one after the other, the last one for ever."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    server = RawServer(url=f"http://127.0.0.1:{port}/v1")

    async def handle(stream: SocketStream) -> None:
        server.connections += 1
        server.open += 1
        number = server.connections
        try:
            async with stream:
                while (request := await _read(stream, number)) is not None:
                    server.requests.append(request)
                    answer = answers[min(len(server.requests), len(answers)) - 1]
                    if await answer(stream) is False:
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the client left: what some tests are about
        finally:
            server.open -= 1

    failed: Exception | None = None
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        try:
            yield server
        except Exception as error:  # noqa: BLE001 - kept out of the task group's bundle
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed


async def _read(stream: SocketStream, connection: int) -> Request | None:
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            data += await stream.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        line, *rest = head.decode().split("\r\n")
        headers = {
            name.lower(): value for name, value in (h.split(": ", 1) for h in rest)
        }
        while len(body) < int(headers.get("content-length", 0)):
            body += await stream.receive()
    except anyio.EndOfStream:
        return None
    return Request(line, headers, body, connection)


def head(status: str, content_type: str, extra: Sequence[str] = ()) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", *extra]
    return "\r\n".join([*lines, "", ""]).encode()


def streaming(*pieces: bytes, extra: Sequence[str] = (), finish: bool = True) -> Answer:
    """A chunked event stream, a piece at a time; unfinished, it ends with a cut."""

    async def answer(stream: SocketStream) -> bool:
        lines = ["transfer-encoding: chunked", *extra]
        await stream.send(head("200 OK", "text/event-stream", lines))
        for piece in pieces:
            await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            await anyio.lowlevel.checkpoint()
        if finish:
            await stream.send(b"0\r\n\r\n")
        return finish

    return answer


def hanging(*pieces: bytes) -> Answer:
    """As `streaming`, but then nothing more comes and the connection stays."""

    async def answer(stream: SocketStream) -> bool:
        await streaming(*pieces, finish=False)(stream)
        with suppress(anyio.EndOfStream):  # until the client leaves
            await stream.receive()
        return False

    return answer


def plain(
    status: str,
    body: bytes,
    content_type: str = "application/json",
    extra: Sequence[str] = (),
) -> Answer:
    async def answer(stream: SocketStream) -> None:
        lines = [f"content-length: {len(body)}", *extra]
        await stream.send(head(status, content_type, lines) + body)

    return answer


def raw(data: bytes) -> Answer:
    """These bytes, then the end of the connection."""

    async def answer(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        return False

    return answer


def event(data: Any, end: bytes = b"\n\n") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return b"data: " + text.encode() + end


def said(text: str | None = None, finish: str | None = None, **delta: Any) -> bytes:
    content = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**content, **delta}, "finish_reason": finish}
    return event({"id": "chat-1", "model": "m-1", "choices": [choice]})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}})
DONE = event("[DONE]")
HELLO = (said("Hel"), said("lo"), said(finish="stop"), USAGE, DONE)
