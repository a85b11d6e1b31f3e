"""`@tool`: a function as a tool.

A `FunctionTool` holds a function, its `ToolSpec` and the reader of its arguments. It
maps no exceptions and knows no deadline: that is the engine's, for every executor.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

import anyio.to_thread
from typing_extensions import override

from agentcore.errors import (
    ConfigError,
    InvalidArguments,
    NotFound,
    ToolError,
    Unavailable,
)
from agentcore.tools._annotations import plain_function
from agentcore.tools._options import ToolOptions, check_name, make_spec
from agentcore.tools._results import to_result
from agentcore.tools._signature import Signature, owner_name, signature_of
from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import ToolResult, ToolSpec

P = ParamSpec("P")
R = TypeVar("R")


# They say "this call never ran". Out of a function that runs they are not true of it.
_REFUSALS = (InvalidArguments, NotFound, Unavailable)


def _as_failure(error: ToolError) -> ToolError:
    return ToolError(f"{type(error).__name__}: {error}", category=error.category)


class FunctionTool(Generic[P, R]):
    """A tool made of an async function; calling it calls the function.

    Made by `tool`, `as_tool` and `renamed`; it looks like the function (`__name__`,
    `__doc__`, `__wrapped__`).
    """

    spec: ToolSpec
    """What it declares."""
    __name__: str

    def __init__(
        self, function: Callable[P, R], spec: ToolSpec, signature: Signature
    ) -> None:
        # Without the function's own attributes, whose names may be those of a tool.
        functools.update_wrapper(self, function, updated=())
        self.spec = spec
        self._function = function
        self._signature = signature
        self._arguments = signature.arguments
        self._context_name = signature.context_name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: nothing is checked or converted."""
        return self._function(*args, **kwargs)

    @override
    def __repr__(self) -> str:
        return f"<tool {self.spec.name!r}: {owner_name(self._function)}>"

    def check(self, arguments: str) -> JsonObject:
        """Parse and validate the model's JSON text, without running anything.

        Keys that are unknown or stand there twice are refused.

        Raises:
            InvalidArguments: it does not fit; the message is for the model.
        """
        return self._arguments.check(arguments)

    async def call(
        self, arguments: JsonObject, context: ToolContext[Any]
    ) -> ToolResult:
        """Validate the arguments again, run the function, make a result of its value.

        Raises:
            InvalidArguments: the arguments do not fit; the function did not run.
            Exception: whatever the function raises, as it is.
        """
        bound = self._bind(arguments, context)
        try:
            value: Any = self._run(bound)
            if hasattr(value, "__await__"):  # a wrapper may have awaited it already
                value = await value
        except _REFUSALS as error:
            raise _as_failure(error) from error
        return to_result(value, self.spec)

    def renamed(self, name: str) -> FunctionTool[P, R]:
        """The same tool under another name.

        Raises:
            ConfigError: the name is not legal.
        """
        check_name(name, owner_name(self._function))
        spec = dataclasses.replace(cast("Any", self.spec), name=name)
        return type(self)(self._function, spec, self._signature)

    def _bind(self, arguments: JsonObject, context: ToolContext[Any]) -> dict[str, Any]:
        values = self._arguments.validate_python(arguments)
        if self._context_name is not None:
            values[self._context_name] = context
        return values

    def _run(self, bound: dict[str, Any]) -> Any:
        return cast("Callable[..., Any]", self._function)(**bound)


class SyncFunctionTool(FunctionTool[P, R]):
    """A tool made of a plain `def`: it may block, so it runs in a thread."""

    def call_sync(self, arguments: JsonObject, context: ToolContext[Any]) -> ToolResult:
        """As `call`, in the calling thread, which must not be an event loop's."""
        bound = self._bind(arguments, context)
        try:
            value: Any = self._run(bound)
        except _REFUSALS as error:
            raise _as_failure(error) from error
        return to_result(value, self.spec)

    @override
    async def call(
        self, arguments: JsonObject, context: ToolContext[Any]
    ) -> ToolResult:
        """Run in a thread of anyio's; `LocalToolExecutor` has its own for `call_sync`.

        Cancellation waits for the function: nobody here counts abandoned threads.
        """
        return await anyio.to_thread.run_sync(self.call_sync, arguments, context)


@overload
def tool(
    function: Callable[P, R], /, **options: Unpack[ToolOptions]
) -> FunctionTool[P, R]: ...


@overload
def tool(
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Any:
    """Make a tool of a function: bare, with keywords, or called.

    The schema comes from the annotations, descriptions of parameters from
    `Annotated[…, Field(description=…)]` or else from the docstring (Google, NumPy or
    Sphinx), the tool's description from the docstring's prose. A parameter annotated
    `ToolContext` or `ToolContext[Deps]` is injected and no part of the schema.

    An `async def` runs on the event loop; a plain `def` runs in a worker thread. Also
    taken: bound methods, `functools.partial` (what it binds by keyword is hidden from
    the model) and objects with `__call__`.

    What the function returns is told to the model: a `str` as it stands, parts as
    content, a `ToolResult` as it is, anything else as JSON; a set becomes an array, in
    no particular order. Bytes are refused, at once where the annotation says so.

    Args:
        function: The function; left out when keywords come first (`@tool(…)`).
        options: See `ToolOptions`; what is not declared is taken for the riskier case.

    Raises:
        ConfigError: no tool can be made of it as written; the message names the
            function, the parameter or option, and the fix.
    """
    if function is None:
        return functools.partial(_make, options=options)
    return _make(function, options=options)


def as_tool(function: Callable[P, R] | FunctionTool[P, R]) -> FunctionTool[P, R]:
    """A tool as it is, or a plain typed function as a tool with default declarations.

    Cheap to repeat: the schema is built once per function.

    Raises:
        ConfigError: as for `tool`.
    """
    return function if isinstance(function, FunctionTool) else tool(function)


def _make(function: Any, *, options: ToolOptions) -> FunctionTool[Any, Any]:
    if isinstance(function, staticmethod):
        function = function.__func__
    _refuse_kind(function)
    signature = signature_of(function)
    target = plain_function(function)
    name = getattr(target, "__name__", "")
    if name == "__call__":  # of an object: its class names it
        name = type(function).__name__
    spec = make_spec(
        owner_name(function), name, signature.prose, signature.parameters, options
    )
    kind = FunctionTool if inspect.iscoroutinefunction(target) else SyncFunctionTool
    return kind(function, spec, signature)


def _refuse_kind(function: Any) -> None:
    target = plain_function(function)
    if isinstance(function, FunctionTool):
        raise ConfigError(
            f"{function!r} is a tool already; decorate the function once, or use "
            "tool(its.__wrapped__, …) to declare it differently"
        )
    if isinstance(function, type) or not callable(function):
        raise ConfigError(
            f"@tool takes a function, not {function!r}; pass a function, a bound "
            "method or an object with __call__"
        )
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ConfigError(
            f"{owner_name(function)} is a generator; a tool returns once: collect the "
            "items in a list, and report steps with ToolContext.progress"
        )


__all__ = ["FunctionTool", "SyncFunctionTool", "ToolOptions", "as_tool", "tool"]
