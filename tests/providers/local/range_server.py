"""A real HTTP server on loopback that serves one file, with the faults of real ones."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from typing_extensions import override


@dataclasses.dataclass
class FileServer:
    content: bytes
    cut_after: list[int] = dataclasses.field(default_factory=list)
    """Bytes after which one request each is cut off; later requests are whole."""
    status: int | None = None
    """Answer every request with this status and nothing else."""
    ranges: bool = True
    silent: bool = False
    """Accept requests and never answer."""
    chunk: int = 65536
    chunk_pause_s: float = 0.0
    asked: list[str | None] = dataclasses.field(default_factory=list)
    """The Range header of each request."""
    url: str = ""
    closing: threading.Event = dataclasses.field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator["FileServer"]:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.file = self
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/model.gguf"
        try:
            yield self
        finally:
            self.closing.set()
            server.shutdown()
            thread.join()
            server.server_close()


class _Server(ThreadingHTTPServer):
    file: FileServer


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        file = cast("_Server", self.server).file
        asked = self.headers.get("Range")
        file.asked.append(asked)
        if file.silent:
            file.closing.wait(30)
            return
        if file.status is not None:
            self.send_error(file.status)
            return
        begin = int(asked[len("bytes=") : -1]) if asked and file.ranges else 0
        total = len(file.content)
        if begin >= total:
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{total - 1}/{total}")
        self.send_header("Content-Length", str(total - begin))
        self.end_headers()
        end = begin + file.cut_after.pop(0) if file.cut_after else total
        self._send(file, begin, min(end, total))

    def _send(self, file: FileServer, begin: int, end: int) -> None:
        with contextlib.suppress(OSError):  # the client may be killed
            for at in range(begin, end, file.chunk):
                self.wfile.write(file.content[at : min(at + file.chunk, end)])
                self.wfile.flush()
                if file.chunk_pause_s and not file.closing.is_set():
                    time.sleep(file.chunk_pause_s)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass
