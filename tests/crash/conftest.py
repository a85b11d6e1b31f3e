from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.crash.kit import Cell, WarmCrashTest, Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.end()


@pytest.fixture
def cell(zygote: Zygote, tmp_path: Path) -> Callable[[str], Cell]:
    """A cell of the matrix, on one of the stores."""

    def make(store: str) -> Cell:
        return Cell(WarmCrashTest(zygote, store, tmp_path))

    return make
