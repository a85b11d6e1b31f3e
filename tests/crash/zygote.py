"""Makes processes for a `CrashTest` in milliseconds: it has loaded everything.

It has opened no store on disk and has no thread and no event loop, so a child that it
forks is as fresh as one that was started; only its modules are there already.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

import anyio
from tests.crash import work

from agentcore.stores.memory import MemoryRunStore
from agentcore.testing import CrashCase
from agentcore.testing._crash_child import _lines, main


def serve() -> None:
    """Fork a child for every line that is told; answer with its process id."""
    _warm()
    for line in sys.stdin:
        told = json.loads(line)
        pid = os.fork()
        if not pid:
            _child(told)
        _say(pid)
        _say(_code(pid))


def _warm() -> None:
    """Do once what the children will do, so that all of it is loaded."""

    async def once(case: CrashCase) -> None:
        await work.go(case)
        assert [line async for line in _lines(case)]

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(once, CrashCase(MemoryRunStore(), Path(folder), ""))
    assert threading.active_count() == 1  # a thread would not be in the children


def _child(told: dict[str, Any]) -> NoReturn:
    os.setsid()
    output = os.open(told["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, stream in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(fd, stream)
    code = 1
    try:
        main(told)
        code = 0
    except BaseException:  # noqa: BLE001 - the test shows it
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)  # at once: taking the interpreter down costs as much as the work


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _code(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve()
