"""Measures agentcore against its floor and prints one table.

python tests/benchmarks/run.py            the table; about a minute
python tests/benchmarks/run.py --check    and fail if a ratio or a count is broken
python tests/benchmarks/run.py --only short
"""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that it runs by its path

from tests.benchmarks import measure
from tests.benchmarks.durable import durable
from tests.benchmarks.measure import FULL, QUICK, Row
from tests.benchmarks.promises import PROMISES

GROUPS = {**measure.GROUPS, "durable": durable}
HEAD = ("work", "floor", "agentcore", "ratio", "promise", "verdict")


def cells(row: Row, *, judged: bool) -> tuple[str, ...]:
    """A row as texts."""
    promise = PROMISES.get(row.key)
    return (
        row.work,
        _number(row.floor, row),
        _number(row.ours, row),
        "-" if row.ratio is None or row.unit == "x" else f"{row.ratio:.2f}",
        "-" if promise is None else promise.text,
        verdict(row) if judged else "not judged",
    )


def verdict(row: Row) -> str:
    """What became of the row's promise; `-` where there is none."""
    promise = PROMISES.get(row.key)
    if promise is None:
        return "-"
    measured = row.ours if promise.of == "value" else row.ratio
    return "-" if measured is None else promise.verdict(measured)


def _number(value: float | None, row: Row) -> str:
    return "-" if value is None else f"{value:,.{row.digits}f} {row.unit}".strip()


def table(rows: Sequence[Row], *, judged: bool = True) -> str:
    """The rows as a Markdown table."""
    lines = [HEAD, *(cells(row, judged=judged) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    marks = ["-" * width for width in widths]
    texts = [
        "| " + " | ".join(map(str.ljust, line, widths)) + " |"
        for line in (lines[0], marks, *lines[1:])
    ]
    return "\n".join(texts) + "\n"


async def measured(names: Sequence[str], *, quick: bool) -> list[Row]:
    """The rows of the groups named."""
    rows: list[Row] = []
    for name in names:
        rows += await GROUPS[name](QUICK if quick else FULL)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a promise that is checked is broken."""
    parser = argparse.ArgumentParser(description="agentcore against its floor")
    parser.add_argument("--check", action="store_true", help="fail on a broken gate")
    parser.add_argument("--only", choices=GROUPS, help="one group of rows")
    parser.add_argument("--quick", action="store_true", help="counts only, in seconds")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    options = parser.parse_args(arguments)
    logging.disable(logging.ERROR)
    names = [options.only] if options.only else list(GROUPS)
    rows = asyncio.run(measured(names, quick=options.quick))
    if options.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows]) + "\n")
    else:
        sys.stdout.write(table(rows, judged=not options.quick))
    broken = [row for row in rows if verdict(row).startswith("BROKEN")]
    return 1 if options.check and broken and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
