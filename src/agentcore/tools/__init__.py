"""Tools made of functions, and collections of them.

`function.py` makes a tool (`_signature.py`: schema, `_arguments.py`: validation,
`_options.py`: declarations, `_results.py`: what it returned); `toolset.py` collects
them. Where tools run is the room `executors`.
"""

from agentcore.tools.function import FunctionTool as FunctionTool
from agentcore.tools.function import ToolOptions as ToolOptions
from agentcore.tools.function import as_tool as as_tool
from agentcore.tools.function import tool as tool
from agentcore.tools.toolset import Toolset as Toolset
from agentcore.tools.toolset import collect_tools as collect_tools

__all__ = [
    "FunctionTool",
    "ToolOptions",
    "Toolset",
    "as_tool",
    "collect_tools",
    "tool",
]
