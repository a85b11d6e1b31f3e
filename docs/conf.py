"""Sphinx configuration; built with `sphinx-build -n -W docs <out>`, without network."""

from importlib.metadata import version as installed

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

# Every reference must lead somewhere. Those to other projects cannot be checked,
# since fetching their inventories would make the build depend on a network.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(collections|contextlib|datetime|enum|os|pathlib|types|typing)\..+"),
    (r"py:.*", r"(anyio|httpx|mcp|opentelemetry|pydantic|pydantic_core|pytest)\..+"),
    (r"py:(class|exc|data|obj)", r"[A-Za-z]+"),  # builtins, and type variables
]
