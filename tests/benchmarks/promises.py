"""What agentcore promises of its speed, and where the gate of each promise stands.

A gate stands at its promise. Where a promise is not kept yet, the gate stands at what
was measured plus a margin for a noisy machine, so that nothing gets worse unseen; the
table then says "not kept". Only ratios and counts have gates: an absolute time says
more about the machine than about the code.
"""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Promise:
    """A bound on one row."""

    of: Literal["ratio", "value"]
    promise: float
    gate: float | None
    """`None`: told, never enforced."""
    unit: str = ""

    def verdict(self, measured: float) -> str:
        """`kept`, `not kept`, or `BROKEN` where the gate was passed."""
        if self.gate is not None and measured > self.gate:
            return f"BROKEN: over {self.gate:g}"
        if measured <= self.promise:
            return "kept"
        return "not kept" if self.gate is None else f"not kept, gate {self.gate:g}"

    @property
    def text(self) -> str:
        """As the table shows it."""
        return f"≤ {self.promise:g} {'x' if self.of == 'ratio' else self.unit}".strip()


def _ratio(promise: float, gate: float = 0.0) -> Promise:
    return Promise("ratio", promise, gate or promise)


def _count(promise: float, gate: float = 0.0, unit: str = "") -> Promise:
    return Promise("value", promise, gate or promise, unit)


def _told(promise: float, unit: str) -> Promise:
    return Promise("value", promise, None, unit)


PROMISES: Final = {
    "import_cpu": _ratio(1.25, gate=1.5),
    "import_rss": _told(33, "MB"),
    "import_modules": _count(300),
    "build": _told(20, "µs"),
    "short": _ratio(6.0),
    "long": _ratio(3.3, gate=3.5),
    "growth_200": _count(1.15),
    "growth_2000": _count(1.15, gate=1.2),
    "blocks": _count(1.15),
    "delta": _ratio(4.0),
    "parallel": _ratio(1.17, gate=1.4),
    "flight_cpu": _ratio(2.0, gate=3.6),
    "flight_wall": _told(300, "ms"),
    "flight_peak": _count(12, gate=13.5, unit="KiB"),
    "flight_objects": _count(90, gate=95),
    "flight_gc": _count(2),
    "idle": _count(3, unit="KiB"),
    "sqlite_step": _ratio(3.5, gate=7.0),
    "sqlite_appends": _told(2.2, ""),
    "sqlite_bytes": _told(9_000, "B"),
    "sqlite_size": _told(2.2, "x"),
    "sqlite_syncs": _told(1, ""),
}
