"""The pytest plugin: no test sends a real model request by accident.

It is active wherever agentcore and pytest are installed (`-p no:agentcore` turns it
off). From configuration to the end of the session a request through one of
agentcore's providers is refused, also during collection, in fixtures of any scope, in
threads and on every event loop. Two ways lift the guard on purpose:

- `@pytest.mark.live` on a test, a class or a module;
- the fixture `allow_model_requests`, for one test or as a module's `usefixtures`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack

import pytest

from agentcore._base.guard import REAL_REQUESTS_ALLOWED

LIVE = "live: may send real model requests (agentcore refuses them elsewhere)"


def pytest_configure(config: pytest.Config) -> None:
    """Raise the guard, and know the marker under `--strict-markers`."""
    config.addinivalue_line("markers", LIVE)
    guard = ExitStack()
    guard.enter_context(REAL_REQUESTS_ALLOWED.process(allowed=False))
    config.add_cleanup(guard.close)


# Around the whole protocol, so that the fixtures a live test asks for may send too.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lift the guard while a test marked `live` is set up, run and torn down."""
    if item.get_closest_marker("live") is None:
        return (yield)
    with REAL_REQUESTS_ALLOWED.process(allowed=True):
        return (yield)


@pytest.fixture
def allow_model_requests() -> Iterator[None]:
    """Lift the guard for one test."""
    with REAL_REQUESTS_ALLOWED.process(allowed=True):
        yield
