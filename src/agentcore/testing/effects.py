"""A log of effects that survives whatever happens to the session and the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


class EffectLog:
    """A file that gets one fsynced line per effect, so that a test can count them.

    Let a tool call `add` where its effect would be: after a kill the file tells what
    really happened, whatever the journal says. Any number of processes may add.

    Args:
        path: The file; made by the first `add`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path)

    def add(self, effect: str) -> None:
        """Append a line and wait until it is on the disk. It blocks, as effects do."""
        if "\n" in effect:
            raise ValueError("an effect is one line")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(self.path, flags, 0o600)
        try:
            # One write: lines of several processes never mix.
            os.write(file, f"{effect}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)

    def read(self) -> list[str]:
        """The effects so far, oldest first."""
        if not self.path.exists():
            return []
        return self.path.read_text(encoding="utf-8").split("\n")[:-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())
