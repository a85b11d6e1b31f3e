"""Files and functions stay small enough to be read in one go."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src/agentcore"
FILE_LINES = 400
FUNCTION_LINES = 60


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and length, from `def` to the last line, of every function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {name: len(source.splitlines()) for name, source in sources()}
    assert {n: size for n, size in lengths.items() if size > FILE_LINES} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{name}: {function} has {size} lines"
        for name, source in sources()
        for function, size in functions(source)
        if size > FUNCTION_LINES
    ]
    assert long == []
