"""The repository as a newcomer finds it: its files, its commands, its words."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = {
    ".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "docs", "examples",
    "pyproject.toml", "src", "tests",
}  # fmt: skip

# Written in pieces, so that this file does not name them itself. Each ties the
# project to one machine or one index: it must build wherever packages can be had.
FORBIDDEN = re.compile(
    "|".join(
        [
            re.escape(".." + "/shared"),
            r"(?<![\w.-])/(work|root|home)" + r"/(?=\w)",
            *(
                re.escape(host + "." + domain)
                for host, domain in (
                    ("pypi", "org"),
                    ("pythonhosted", "org"),
                    ("npmjs", "org"),
                    ("npmjs", "com"),
                    ("deb.debian", "org"),
                )
            ),
        ]
    )
)


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def tracked_files() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so nothing says which files belong to it")
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def readme_command(name: str) -> str:
    """The one line of the README's code block marked `<!-- command: name -->`."""
    block = rf"<!-- command: {name} -->\n```sh\n(.+)\n```\n"
    found = re.search(block, text("README.md"))
    assert found, f"README.md has no block marked with command: {name}"
    return found.group(1)


def released_versions() -> list[str]:
    return re.findall(r"^## \[(\d[^\]]*)\]", text("CHANGELOG.md"), re.MULTILINE)


def test_the_top_folder_holds_only_what_it_should() -> None:
    assert {name.split("/")[0] for name in tracked_files()} == TOP


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert readme_command("tests") in text(".ci/run").splitlines()


def test_the_main_job_of_the_readme_names_a_script_that_exists() -> None:
    script = readme_command("main job").split()[-1]
    assert (ROOT / script).is_file()


def test_the_changelog_opens_with_what_is_not_released_yet() -> None:
    headings = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"


def test_the_changelog_and_the_package_agree_on_the_version() -> None:
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    release, dev, _ = version.partition(".dev")
    if dev:  # on the way to `release`, which therefore cannot be listed yet
        assert release not in released_versions()
    else:
        assert released_versions()[0] == version


def test_no_file_names_a_machine_or_a_package_index() -> None:
    hits = []
    for name in tracked_files():
        content = (ROOT / name).read_bytes().decode("utf-8", errors="ignore")
        hits += [f"{name}: {hit.group()}" for hit in FORBIDDEN.finditer(content)]
    assert hits == []
