"""What a docstring says: its prose, and what it says of each parameter.

Google, NumPy and Sphinx layouts are read, also mixed in one text. Sections about
parameters, return values and exceptions are taken out of the prose: the schema says
the first, and the others speak to programmers. Anything else stays, so an unknown
layout costs nothing but its parameter descriptions. No text whatsoever is an error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_PARAMETERS = frozenset(
    {
        "args",
        "arguments",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
    }
)
_DROPPED = frozenset({"raises", "return", "returns", "yield", "yields"})
_SECTIONS = _PARAMETERS | _DROPPED

_UNDERLINE = re.compile(r"-{3,}\s*$")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?$")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r":(\w+)(?:[ \t]+([^:]*))?:(?:\s+(.*))?$")
_SPHINX_PARAMETERS = frozenset({"arg", "argument", "key", "keyword", "param"})
_SPHINX_DROPPED = frozenset(
    {"except", "exception", "parameter", "raise", "raises", "return", "returns"}
    | {"rtype", "type", "yield", "yields"}
)


@dataclass(slots=True)
class Docstring:
    """The parts of a docstring a model is shown."""

    prose: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(text: str) -> Docstring:
    """Read a docstring; the worst that happens is that all of it is prose."""
    lines = inspect.cleandoc(text).split("\n")
    doc, prose, at = Docstring(), [], 0
    while at < len(lines):
        if name := _google_header(lines[at]):
            block, at = _indented(lines, at)
            read = _google_entries
        elif name := _numpy_header(lines, at):
            block, at = _underlined(lines, at)
            read = _numpy_entries
        elif _sphinx_field(lines[at]):
            at = _take_sphinx_field(lines, at, doc)
            continue
        else:
            prose.append(lines[at])
            at += 1
            continue
        if name in _PARAMETERS:
            doc.parameters.update(read(block))
    doc.prose = re.sub(r"\n\s*\n\s*\n", "\n\n", "\n".join(prose)).strip()
    return doc


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- finding sections -------------------------------------------------------------


def _google_header(line: str) -> str:
    head = line.strip()
    name = head[:-1].lower() if head.endswith(":") else ""
    return name if name in _SECTIONS else ""


def _numpy_header(lines: list[str], at: int) -> str:
    name = lines[at].strip().lower()
    underlined = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1].strip())
    return name if underlined and name in _SECTIONS else ""


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines below `at` that stand deeper than it, and where they end."""
    depth, end = _indent(lines[at]), at + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > depth):
        end += 1
    return lines[at + 1 : end], end


def _underlined(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines below an underlined header, and where the next one begins."""
    start = end = at + 2
    while end < len(lines):
        if end + 1 < len(lines) and _UNDERLINE.match(lines[end + 1].strip()):
            break
        end += 1
    return lines[start:end], end


def _sphinx_field(line: str) -> re.Match[str] | None:
    found = _SPHINX_FIELD.match(line.strip())
    if found and found[1].lower() in _SPHINX_PARAMETERS | _SPHINX_DROPPED:
        return found
    return None


# --- reading them -----------------------------------------------------------------


def _google_entries(block: list[str]) -> dict[str, str]:
    return _entries(block, _GOOGLE_ENTRY)


def _numpy_entries(block: list[str]) -> dict[str, str]:
    return _entries(block, _NUMPY_ENTRY)


def _entries(block: list[str], head: re.Pattern[str]) -> dict[str, str]:
    """Heads at the first line's depth, each with the deeper lines below it."""
    found: dict[str, list[str]] = {}
    filled = [line for line in block if line.strip()]
    depth = _indent(filled[0]) if filled else 0
    current: list[str] = []
    for line in filled:
        match = head.match(line.strip()) if _indent(line) <= depth else None
        if match is None:
            current.append(line)
            continue
        current = [match[2] or ""] if head.groups > 1 else []
        for name in match[1].split(","):
            found[name.strip(" *")] = current
    return {name: _joined(parts) for name, parts in found.items()}


def _take_sphinx_field(lines: list[str], at: int, doc: Docstring) -> int:
    """Read the field at `at` with its deeper lines; where the next thing begins."""
    match = _SPHINX_FIELD.match(lines[at].strip())
    block, end = _indented(lines, at)
    words = (match[2] or "").split() if match else []
    if match and words and match[1].lower() in _SPHINX_PARAMETERS:
        doc.parameters[words[-1].strip("*")] = _joined([match[3] or "", *block])
    return end


def _joined(parts: Iterable[str]) -> str:
    return " ".join(" ".join(parts).split())
