"""The benchmarks run, and what they count rather than time keeps its promises."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.promises import PROMISES, Promise

RUN = Path(__file__).with_name("run.py")


@cache
def quick_rows() -> dict[str, dict[str, Any]]:
    printed = subprocess.check_output([sys.executable, RUN, "--quick", "--json"])
    rows: list[dict[str, Any]] = json.loads(printed)
    return {row["key"]: row for row in rows}


def test_every_promise_has_a_row_that_was_measured() -> None:
    rows = quick_rows()
    assert PROMISES.keys() <= rows.keys()
    assert [key for key, row in rows.items() if row["ours"] < 0] == []


@pytest.mark.parametrize("key", ["import_modules", "blocks", "flight_objects"])
def test_a_count_passes_its_gate(key: str) -> None:
    """Modules loaded, what a late step keeps in memory, objects of a run in flight."""
    assert not PROMISES[key].verdict(quick_rows()[key]["ours"]).startswith("BROKEN")


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [(2.0, "kept"), (2.5, "not kept, gate 3"), (3.5, "BROKEN: over 3")],
)
def test_a_verdict_tells_a_missed_promise_from_a_broken_gate(
    measured: float, verdict: str
) -> None:
    assert Promise("ratio", promise=2.0, gate=3.0).verdict(measured) == verdict


def test_no_gate_stands_below_its_promise() -> None:
    gates = {key: p for key, p in PROMISES.items() if p.gate is not None}
    assert [key for key, p in gates.items() if (p.gate or 0.0) < p.promise] == []
