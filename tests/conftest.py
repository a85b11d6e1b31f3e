"""What every test shares: both event loops, and the count of covered scenarios."""

from collections.abc import Iterator
from pathlib import Path

import pytest

SCENARIOS = Path(__file__).with_name("scenarios.txt")
MARKED = pytest.StashKey[frozenset[str]]()


# Session scope, so that an async fixture of any scope may build on it.
@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop an async test runs on: each test runs once on both."""
    backend: str = request.param
    return backend


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scenarios",
        action="store_true",
        help="run nothing; list which of tests/scenarios.txt a marked test covers",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--scenarios"):
        config.option.collectonly = True


# First, so that tests which -m or -k leave out of this run still count as written.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    marked = frozenset(_marked(items))
    if unknown := sorted(marked - set(_promised())):
        raise pytest.UsageError(f"not in tests/scenarios.txt: {', '.join(unknown)}")
    config.stash[MARKED] = marked
    if config.getoption("--scenarios"):
        items.clear()  # the list is the output, not every test's name


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("--scenarios"):
        return
    promised, marked = _promised(), config.stash.get(MARKED, frozenset())
    covered = [name for name in promised if name in marked]
    terminalreporter.section("scenarios")
    terminalreporter.line(f"covered {len(covered)} of {len(promised)}")
    terminalreporter.line("covered: " + " ".join(covered))
    terminalreporter.line(
        "missing: " + " ".join(name for name in promised if name not in marked)
    )


def _promised() -> list[str]:
    lines = SCENARIOS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _marked(items: list[pytest.Item]) -> Iterator[str]:
    for item in items:
        for mark in item.iter_markers("scenario"):
            yield from mark.args
