"""What the tests of the JSONL store share: short writes, and real other processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from agentcore.stores.jsonl import JsonlRunStore
from agentcore.types.records import Record, StateChanged, StoredRecord
from agentcore.types.runs import Lease, SessionHeader

S = "session-1"
PATIENCE = 20.0

PRELUDE = """
import anyio, os, signal, sys
from agentcore.errors import *
from agentcore.stores.jsonl import JsonlRunStore
from agentcore.types.content import TextPart
from agentcore.types.inbox import Cancel, Input
from agentcore.types.records import StateChanged
from agentcore.types.runs import SessionHeader
path, S = sys.argv[1], "session-1"
def die(): os.kill(os.getpid(), signal.SIGKILL)
def say(word): print(word, flush=True)
"""


def values(*texts: str) -> Sequence[Record]:
    return [StateChanged("k", text) for text in texts]


def file_of(path: Path, name: str = "journal.jsonl") -> Path:
    return path / "sessions" / S / name


async def journal(store: JsonlRunStore, after: int = 0) -> list[StoredRecord]:
    return [stored async for stored in store.read(S, after)]


async def new_session(path: Path, **options: Any) -> tuple[JsonlRunStore, Lease]:
    store = JsonlRunStore(path, **options)
    await store.create(SessionHeader(S))
    return store, await store.acquire(S, "owner-1")


def child(path: Path, body: str) -> "subprocess.Popen[str]":
    """Another process; `body` is the inside of an async function."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    code = f"{PRELUDE}\nasync def main():\n{lines}\nanyio.run(main)\n"
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def run_child(path: Path, body: str, code: int = 0) -> str:
    """Run it to its end, and give what it printed."""
    process = child(path, body)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, err
    return out.strip()


def heard(process: "subprocess.Popen[str]", word: str) -> None:
    """Wait until the other process says a word."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline().strip()
    assert line == word, line + process.stderr.read()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=PATIENCE)


def below(path: Path, pattern: str = "*") -> list[Path]:
    """What lies in a folder, sorted."""
    return sorted(path.glob(pattern))


def open_files(path: Path) -> set[str]:
    """What this process holds open below a folder."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
        if target.startswith(str(path)):
            found.add(target)
    return found


async def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - it tells nobody when it is done
            await anyio.sleep(0.01)
