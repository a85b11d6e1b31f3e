"""Sphinx configuration; built with `sphinx-build -n -W docs <out>`, without network."""

from importlib.metadata import version as installed
from typing import Any

project = "agentcore"
author = "The agentcore authors"
release = installed("agentcore")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = f"agentcore {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"

# In docstrings, `name` is code.
default_role = "code"

# Every reference must lead somewhere. Those to other projects cannot be checked,
# since fetching their inventories would make the build depend on a network.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(collections|contextlib|datetime|enum|os|pathlib|types|typing)\..+"),
    (r"py:.*", r"(anyio|httpx|mcp|opentelemetry|pydantic|pydantic_core|pytest)\..+"),
    (r"py:.*", r"typing_extensions\..+"),
    (r"py:(class|exc|data|obj)", r"[A-Za-z]+"),  # builtins, and type variables
    (r"py:(class|obj)", r"(.+\.|~)([A-Z][A-Za-z]*T(_co)?|[PRT])"),  # type variables
    (r"py:class", r"agentcore\.(.+\.)?_[a-z_]+\..+"),  # of private modules
    (r"py:class", r"i\.Input"),  # an alias in the constructor of `RunHandle`
    (r"py:class", r"agentcore\.testing\.(steps\.Waitable|executor\.Declarations)"),
]

# --- docstrings ---------------------------------------------------------------

_ATTRIBUTES = {"attribute", "data", "property"}
_kept: dict[str, list[str]] = {}


def _keep_attribute(_app: Any, what: str, name: str, *rest: Any) -> None:
    """Before napoleon, which takes an attribute's words up to a colon for its type."""
    if what in _ATTRIBUTES:
        _kept[name] = list(rest[-1])


def _restore_attribute(_app: Any, what: str, name: str, *rest: Any) -> None:
    if what in _ATTRIBUTES:
        rest[-1][:] = _kept.pop(name)


def _literal_blocks(_app: Any, what: str, _name: str, *rest: Any) -> None:
    """Indented blocks of a module's docstring are layouts and code, not quotations."""
    if what != "module":
        return
    lines, shown, inside = rest[-1], [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not inside:
            shown += ["::", ""]
        inside = indented or (inside and not line)
        shown.append(line)
    lines[:] = shown


def setup(app: Any) -> None:
    """Called by Sphinx; napoleon's own handler has the priority 500."""
    app.connect("autodoc-process-docstring", _keep_attribute, priority=400)
    app.connect("autodoc-process-docstring", _restore_attribute, priority=600)
    app.connect("autodoc-process-docstring", _literal_blocks, priority=600)
