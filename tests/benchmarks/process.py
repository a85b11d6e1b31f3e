"""What this process uses: memory and collections, as Linux and the collector tell."""

import gc
import resource
from pathlib import Path

_PAGE = resource.getpagesize() // 1024


def settle() -> None:
    """Collect what is garbage by now."""
    gc.collect()
    gc.collect()


def rss_kib() -> int:
    """Resident memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def reset_peak() -> None:
    """Let `peak_kib` begin at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_kib() -> int:
    """Most memory resident since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("this kernel does not tell the peak of a process")


def full_collections() -> int:
    """Collections of the oldest generation so far."""
    return int(gc.get_stats()[2]["collections"])
