"""The front door: one public list, and everything that must agree with it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import agentcore

INIT = Path(agentcore.__file__)


def names_typed_for_checkers() -> list[str]:
    """What `if TYPE_CHECKING:` imports, so that type checkers see real names."""
    tree = ast.parse(INIT.read_text(encoding="utf-8"))
    return [
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]


def test_the_public_list_has_no_name_twice() -> None:
    assert len(agentcore.__all__) == len(set(agentcore.__all__)) > 0


def test_the_public_list_equals_the_lazy_table() -> None:
    assert sorted(agentcore.__all__) == sorted(agentcore._LAZY)


def test_the_public_list_equals_what_type_checkers_see() -> None:
    assert sorted(agentcore.__all__) == sorted(names_typed_for_checkers())


def test_every_public_name_resolves() -> None:
    assert [name for name in agentcore.__all__ if not hasattr(agentcore, name)] == []


def test_dir_shows_the_public_names_and_no_others() -> None:
    # In a fresh process: importing a submodule adds its name to the package.
    code = "import agentcore, json; print(json.dumps(dir(agentcore)))"
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    public = [name for name in json.loads(output) if not name.startswith("_")]
    assert public == sorted(agentcore.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(agentcore, name)
