"""The server's process: started, waited for, explained when it dies, ended.

Everything blocks; who may start one and when is decided in `server.py`.
"""

import contextlib
import http.client
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import TypedDict

from agentcore.providers.local._errors import LocalModelError
from agentcore.providers.local._threads import Check

_POLL_S = 0.05
_LEAVE_S = 5.0
_TAIL_BYTES = 3000
_TAIL_LINES = 12


class Settings(TypedDict):
    """What `_serve.py` needs; sent to it as one line of JSON."""

    model: str
    alias: str
    template: str | None
    threads: int
    context: int
    site: str
    """Folder that `xllamacpp` is imported from."""


def site_of_xllamacpp() -> str:
    """Return the folder on `sys.path` that holds `xllamacpp`, without importing it.

    Raises:
        LocalModelError: it is not installed.
    """
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        raise LocalModelError(
            "The local model needs the package xllamacpp, which is not installed. "
            "Install the extra: pip install -e '.[local]' in the checkout."
        )
    return str(Path(spec.origin).parent.parent)


def new_log() -> Path:
    """Create an empty log that only this user can read."""
    handle, name = tempfile.mkstemp(prefix="agentcore-local-model-", suffix=".log")
    os.close(handle)
    return Path(name)


class Child:
    """One server process, from its start to its end.

    Raises:
        LocalModelError: the log cannot be written or the process not be started.
    """

    def __init__(self, settings: Settings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self.address = ""
        try:
            with log.open("ab") as output:
                self._log_start = output.tell()
                self._process = _spawn(output.fileno())
        except OSError as error:
            raise LocalModelError(
                f"The local model server could not be started with its log {log}: "
                f"{error.strerror or error}. Pass log= with a writable path."
            ) from error
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read_answer, daemon=True).start()
        # A child that died already is noticed while waiting for its answer.
        with contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None  # noqa: S101 - told to Popen
            self._process.stdin.write(json.dumps(settings).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def wait_until_ready(self, timeout_s: float, check: Check) -> None:
        """Return when the server answers, with `address` set.

        Raises:
            LocalModelError: it died, or did not answer within `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not self._ready():
            check()
            if self.dead:
                raise self.death()
            if time.monotonic() > deadline:
                raise LocalModelError(
                    f"The local model server did not answer within {timeout_s:g} s. "
                    f"{self._log_words()}Give it more time with "
                    "ServerLimits(start_timeout_s=...) or free some CPU and memory."
                )
            time.sleep(_POLL_S)

    def death(self) -> LocalModelError:
        """Return the error that explains why the process has ended."""
        code = self._process.poll()
        if code == -9:
            step = "It was killed, most likely for want of memory: free some."
        else:
            step = (
                f"Check that {self._settings['model']} is a whole GGUF model and "
                "that the template, if one was passed, is valid Jinja."
            )
        return LocalModelError(
            f"The local model server ended by itself (exit code {code}). "
            f"{self._log_words()}{step}"
        )

    def end(self) -> None:
        """End the process and wait until it is gone; harmless when it is already."""
        process = self._process
        # The end of its input is all the child needs, whatever it is doing.
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        for harder in (process.terminate, process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE_S)
                return
            harder()
        process.wait()

    def _read_answer(self) -> None:
        output = self._process.stdout
        if output is not None:
            with output:
                self._answers.put(output.readline())

    def _ready(self) -> bool:
        if not self.address:
            with contextlib.suppress(queue.Empty):
                self.address = self._answers.get_nowait().decode().strip()
        return bool(self.address) and _healthy(self.address)

    def _log_words(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, end - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
            if lines:
                tail = "\n  ".join(lines)
                return f"Its log {self._log} ends with:\n  {tail}\n"
        return f"Its log {self._log} is empty. "


def _spawn(output: int) -> "subprocess.Popen[bytes]":
    # -I: no module of the working folder or of PYTHONPATH gets into the process.
    script = Path(__file__).with_name("_serve.py")
    return subprocess.Popen(  # noqa: S603 - this Python with a script of ours
        [sys.executable, "-I", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
    )


def _healthy(address: str) -> bool:
    host = urllib.parse.urlsplit(address).netloc
    connection = http.client.HTTPConnection(host, timeout=2.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
