"""The door of the kit: lazy, complete, and free of pytest."""

import os
import subprocess
import sys

import pytest

from agentcore import testing

LOADED = """
import sys
from agentcore import testing
for name in testing.__all__:
    getattr(testing, name)
print(sorted({"pytest", "httpx", "mcp", "sqlite3"} & sys.modules.keys()))
"""


def test_every_name_loads_without_pytest_or_anything_heavy() -> None:
    # Measuring coverage loads modules of its own.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    command = [sys.executable, "-c", LOADED]
    output = subprocess.check_output(command, text=True, env=clean)
    assert output == "[]\n"


def test_the_public_list_equals_the_lazy_table() -> None:
    assert sorted(testing.__all__) == sorted(testing._LAZY)
    assert dir(testing) == sorted(testing.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(testing, name)
