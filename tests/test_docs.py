"""Every Python snippet of the README and the docs runs, top to bottom, page by page.

A comment that no reader of the rendered page sees runs as well: it stands a model in
where a snippet needs one, or calls what a snippet defines:

    <!-- test
    agent = agent.with_(model=ScriptedModel(["Hello."]))
    -->
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import anyio
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(
    r"^(?:```python\n(?P<code>.*?)^```|<!-- test\n(?P<hidden>.*?)^-->)$",
    re.MULTILINE | re.DOTALL,
)
FENCE = re.compile(r"^ *(?:```|:::)\{?([\w-]+)\}?(.*)$", re.MULTILINE)
KNOWN_FENCES = {"python", "sh", "text", "toml", "toctree", "literalinclude", "eval-rst"}
INCLUDED = re.compile(r"^```\{literalinclude\} (.+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def snippets(page: Path) -> Iterator[tuple[int, str]]:
    """Line and code of every snippet, hidden ones included."""
    text = page.read_text(encoding="utf-8")
    for found in SNIPPET.finditer(text):
        yield text.count("\n", 0, found.start()) + 2, found["code"] or found["hidden"]


def compiled(page: Path, line: int, code: str) -> CodeType:
    # Blank lines first, so that a traceback shows the line of the page.
    padded = "\n" * (line - 1) + code
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    made: CodeType = compile(padded, str(page), "exec", flags=flags)
    return made


def execute(page: Path, module: ModuleType) -> None:
    for line, code in snippets(page):
        result: Any = eval(compiled(page, line, code), vars(module))
        if result is not None:  # it awaits at its top

            async def main(coroutine: Any = result) -> None:
                await coroutine

            anyio.run(main)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if list(snippets(page))], ids=name_of
)
def test_the_snippets_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("snippets")
    monkeypatch.setitem(sys.modules, "snippets", module)  # pydantic looks names up
    monkeypatch.chdir(tmp_path)
    execute(page, module)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_code_hides_in_another_kind_of_fence(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = {found[0] for found in FENCE.findall(text)}
    assert fences <= KNOWN_FENCES
    shown = [found for found in SNIPPET.finditer(text) if found["code"]]
    assert text.count("```python\n") == len(shown)


def test_every_file_that_a_page_includes_is_an_example() -> None:
    included = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in INCLUDED.findall(page.read_text(encoding="utf-8"))
    }
    assert included
    assert {path.parent for path in included} == {ROOT / "examples"}
    assert [path for path in included if not path.is_file()] == []


def test_the_first_agent_of_the_readme_is_the_example_that_the_tests_run() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## First agent\n")[2]
    found = SNIPPET.search(section)
    assert found is not None
    example = (ROOT / "examples/first_agent.py").read_text(encoding="utf-8")
    assert found["code"] == example
