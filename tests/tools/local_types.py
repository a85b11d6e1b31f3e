"""Tools whose annotations are all strings, as under `from __future__`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from pydantic import BaseModel

from agentcore.tools import tool
from agentcore.types.context import ToolContext

if TYPE_CHECKING:
    from decimal import Decimal as Deps


class City(BaseModel):
    """A place."""

    name: str


async def with_context(city: City, ctx: ToolContext[Deps], days: int = 1) -> str:
    """Look it up."""
    return f"{city.name} {days} {ctx.deps}"


async def with_optional_context(
    ctx: Optional[ToolContext[Deps]] = None,  # noqa: UP045 - the old spelling is tested
) -> str:
    """Look it up."""
    return str(ctx is not None)


def of_a_local_type() -> Callable[..., Any]:
    """A function whose types only this function knows."""

    @dataclass
    class Point:
        x: int

    async def move(point: Point, twice: list[Point]) -> int:
        """Move it."""
        return point.x + sum(p.x for p in twice)

    return made_here(move)


def made_here(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the tool further down the stack than the types are defined."""
    return tool(function)


def of_a_closure_type() -> Callable[..., Any]:
    """A function that mentions its local type in its body, too."""

    class Point(BaseModel):
        x: int

    async def move(point: Point) -> str:
        """Move it."""
        return type(point).__name__ + str(isinstance(point, Point))

    return move


async def unresolvable(x: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Never made."""
    return str(x)
