"""Starts the measurements that need a process of their own: import, memory, idle."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_IMPORT = """
import sys, time
start = time.process_time()
{statement}
cpu = time.process_time() - start
modules = len(sys.modules)
import resource
pages = int(open("/proc/self/statm").read().split()[1])
print([cpu * 1e3, pages * resource.getpagesize() / 2**20, modules])
"""


def imported(statement: str) -> list[float]:
    """CPU ms, resident MB and modules of a process that runs `statement` first."""
    found: list[float] = json.loads(_python("-c", _IMPORT.format(statement=statement)))
    return found


def measured(what: str, side: str, number: int) -> dict[str, float]:
    """What `child.py` finds for `floor` or `agentcore`."""
    printed = _python("-m", "tests.benchmarks.child", what, side, str(number))
    found: dict[str, float] = json.loads(printed)
    return found


def _python(*arguments: str) -> str:
    # Without coverage and with cached bytecode: neither is part of what is measured.
    unwanted = ("COVERAGE_", "PYTHONDONTWRITEBYTECODE")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=clean,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
