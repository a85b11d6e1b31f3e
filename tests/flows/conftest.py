"""The kit, over a store that never lets go of the loop and one that always does."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.flows.kit import KeptStore, Kit, SuspendingStore


@pytest.fixture(params=[KeptStore, SuspendingStore], ids=["inline", "suspending"])
async def kit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kit]:
    """Checks at the end what must hold after every run (`Kit.verify`)."""
    kit = Kit(tmp_path, request.param())
    yield kit
    await kit.verify()
