"""Importing costs little and does nothing."""

import json
import os
import subprocess
import sys

HEAVY = {"httpx", "httpx2", "mcp", "opentelemetry", "sqlite3", "tenacity", "yaml"}
MODULES = 300


def modules_after(statement: str) -> set[str]:
    """The modules loaded once a fresh interpreter has run `statement`."""
    code = f"{statement}\nimport json, sys; print(json.dumps(list(sys.modules)))"
    # Coverage would load modules of its own into the process that is counted.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    loaded: list[str] = json.loads(result.stdout)  # fails if the import printed
    return set(loaded)


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert modules_after("import agentcore") & HEAVY == set()


def test_naming_the_agent_loads_nothing_heavy() -> None:
    loaded = modules_after("from agentcore import ToolLoopAgent, tool")
    assert loaded & HEAVY == set()


def test_naming_the_agent_loads_at_most_300_modules() -> None:
    loaded = modules_after("from agentcore import ToolLoopAgent, tool")
    assert len(loaded) <= MODULES
