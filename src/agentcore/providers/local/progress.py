"""Progress of a download: the callback's shape, a terminal bar, and silence."""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called as `progress(done, total, source)`, both in bytes, from the working thread.

`done` does not fall while `source` stays the same, unless that source cannot resume and
starts again at 0. It may be called many times with the same numbers. An exception it
raises ends the download and reaches the caller; what was downloaded is kept.
"""

_REDRAW_S = 0.2
_LINE_EVERY_S = 10.0
_WIDTH = 24


def silent(done: int, total: int, source: str) -> None:
    """Be the `Progress` that shows nothing."""


class TerminalProgress:
    """A bar that is redrawn on a terminal; in a log file a line every ten seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._source: str | None = None
        self._ended = False
        self._next = 0.0

    def __call__(self, done: int, total: int, source: str) -> None:
        """Show the state, if it is time to."""
        stream = self._stream or sys.stderr
        if stream is None:  # a program without a console (pythonw)
            return
        bar = stream.isatty()
        if source != self._source:
            if bar and self._source is not None and not self._ended:
                stream.write("\n")
            self._source, self._ended, self._next = source, False, 0.0
        complete = done >= total
        now = time.monotonic()
        if self._ended or (now < self._next and not complete):
            return
        self._next = now + (_REDRAW_S if bar else _LINE_EVERY_S)
        self._ended = complete
        # A terminal that went away is no reason to end a download.
        with contextlib.suppress(OSError):
            stream.write(_line(done, total, source, bar=bar, last=complete))
            stream.flush()


def _line(done: int, total: int, source: str, *, bar: bool, last: bool) -> str:
    share = done / total if total else 1.0
    text = f"{share:4.0%} {done / 1e6:,.0f} of {total / 1e6:,.0f} MB  {source}"
    if not bar:
        return f"model weights: {text}\n"
    full = int(share * _WIDTH)
    drawn = "#" * full + "." * (_WIDTH - full)
    return f"\r\x1b[K[{drawn}] {text}" + ("\n" if last else "")
