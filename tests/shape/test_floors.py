"""The floors hold, and each contract really breaks when it is violated."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).with_name("lint-imports")

pytestmark = pytest.mark.skipif(
    not LINTER.exists(), reason="import-linter is not installed (extra: lint)"
)

# contract -> the files, below src/agentcore, that must break it
VIOLATIONS = {
    "floors": {"types/zz.py": "import agentcore.providers\n"},
    "acyclic": {
        "types/zy.py": "import agentcore.types.zz\n",
        "types/zz.py": "import agentcore.types.zy\n",
    },
    "engine": {"testing/zz.py": "import agentcore._engine\n"},
    "mcp": {"tools/zz.py": "import mcp\n"},
    "pure": {"types/zz.py": "import yaml\n"},
}


def lint(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the copy of the project in `root`."""
    return subprocess.run(
        [str(LINTER), "--no-logo", "--no-cache", *options],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what import-linter reads, free to be spoilt."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def contracts() -> dict[str, dict[str, object]]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {c["id"]: c for c in config["tool"]["importlinter"]["contracts"]}


def test_the_package_keeps_every_contract() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_forbidden_import_breaks_its_contract_by_name(
    contract: str, project: Path
) -> None:
    for path, source in VIOLATIONS[contract].items():
        (project / "src/agentcore" / path).write_text(source, encoding="utf-8")

    result = lint(project, "--contract", contract)

    assert result.returncode != 0, result.stdout
    assert f"{contracts()[contract]['name']} BROKEN" in result.stdout


def test_a_package_without_a_floor_is_refused(project: Path) -> None:
    (project / "src/agentcore/attic.py").write_text("", encoding="utf-8")

    result = lint(project, "--contract", "floors")

    assert result.returncode != 0
    assert "attic" in result.stdout


def test_every_provider_folder_is_in_the_independence_contract() -> None:
    folders = (ROOT / "src/agentcore/providers").glob("*/__init__.py")
    names = {f"agentcore.providers.{init.parent.name}" for init in folders}
    assert contracts()["providers"]["modules"] == sorted(names)
