"""The process a `CrashTest` starts: `python -m agentcore.testing._crash_child {…}`."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio

from agentcore.testing.crash import CrashCase
from agentcore.types import codec
from agentcore.types.runs import SessionQuery

_PAGE = 100


def main(told: dict[str, Any]) -> None:
    """Do what the test asks for, and write down what is in the store then."""
    sys.path += [entry for entry in told["path"] if entry not in sys.path]
    folder = Path(told["folder"])
    case = CrashCase(_named(told["store"])(folder), folder, told["at"])
    lines = anyio.run(_work, case, told, backend=told["backend"])
    if told["found"]:
        Path(told["found"]).write_text("\n".join(lines), encoding="utf-8")


async def _work(case: CrashCase, told: dict[str, Any]) -> list[str]:
    if told["work"]:
        await _named(told["work"])(case)
    # By a handle of its own: not every store can be opened a second time.
    again = CrashCase(_named(told["store"])(case.folder), case.folder, "")
    return [line async for line in _lines(again)]


async def _lines(case: CrashCase) -> AsyncIterator[str]:
    """Every record of every session, as `crash.read_journals` reads it."""
    async with case.store as store:
        query = SessionQuery(limit=_PAGE)
        while page := await store.sessions(query):
            for session in [info.session_id for info in page]:
                async for stored in store.read(session):
                    record = json.loads(codec.dump_json(stored.record))
                    line = [session, stored.seq, stored.epoch, stored.at, record]
                    yield json.dumps(line)
            query = SessionQuery(limit=_PAGE, before=page[-1].session_id)


def _named(name: str) -> Any:
    module, _, function = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in function.split("."):
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
