"""Annotations as objects: strings resolved, the injected context recognised."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from agentcore.types.context import ToolContext

# Read off the text, for names that exist for type checkers only: under
# `if TYPE_CHECKING:` neither the dependencies nor ToolContext itself need be there.
_CONTEXT_TEXT = re.compile(r"(?:[\w.]*\bOptional\[)?\s*(?:\w+\.)*ToolContext\b")


def plain_function(function: Any) -> Any:
    """The function at the bottom: below partials, methods, wrappers and `__call__`."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.FunctionType) or not callable(function):
            return function
        elif isinstance(type(function).__call__, types.FunctionType):
            function = type(function).__call__
        else:
            return function


def resolve(annotation: Any, function: Callable[..., Any]) -> Any:
    """Evaluate strings in an annotation, at any depth.

    Names are looked up in the module, in the closure, and last in the running
    functions around the definition, where a local type that only annotations mention
    is still to be found.

    Raises:
        NameError, AttributeError, SyntaxError, TypeError: it cannot be evaluated.
    """
    module = getattr(function, "__globals__", {})
    names = _closure(function)
    try:
        return _evaluate(annotation, module, names)
    except NameError:
        return _evaluate(annotation, module, _enclosing(function) | names)


def _evaluate(annotation: Any, module: Any, names: dict[str, Any]) -> Any:
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return get_type_hints(holder, module, names, include_extras=True)["it"]


def _closure(function: Any) -> dict[str, Any]:
    found = {p.__name__: p for p in getattr(function, "__type_params__", ())}
    free = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(
        free, getattr(function, "__closure__", None) or (), strict=True
    ):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet, as the function's own name
            continue
    return found


def _enclosing(function: Any) -> dict[str, Any]:
    """The locals of the callers that contain the definition, inner ones first."""
    found: dict[str, Any] = {}
    code = getattr(function, "__code__", None)
    frame = inspect.currentframe()
    while frame is not None:
        if code in frame.f_code.co_consts:
            found = {**frame.f_locals, **found}
            code = frame.f_code
        frame = frame.f_back
    return found


def is_context(annotation: Any) -> bool:
    """Whether it is `ToolContext`, `ToolContext[X]`, or either of them or `None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_context(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [a for a in get_args(annotation) if a is not types.NoneType]
        return bool(members) and all(is_context(member) for member in members)
    kind = origin or annotation
    return isinstance(kind, type) and issubclass(kind, ToolContext)


def reads_as_context(annotation: Any) -> bool:
    """Whether the text of an annotation nobody can resolve names a `ToolContext`."""
    return isinstance(annotation, str) and bool(_CONTEXT_TEXT.match(annotation.strip()))
