"""`@tool` makes a tool that is still the function, and refuses what cannot be one."""

import dataclasses
import enum
import functools
import inspect
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from tests.tools.helpers import context, made, run

from agentcore.errors import ConfigError, InvalidArguments, Retryable
from agentcore.protocols.tools import SyncTool, Tool
from agentcore.tools import FunctionTool, as_tool, tool
from agentcore.types.content import FilePart, ImagePart, TextPart
from agentcore.types.context import ToolContext
from agentcore.types.tools import ToolResult, ToolSpec


class Weather(BaseModel):
    degrees: float


@dataclasses.dataclass
class Point:
    x: int


class Colour(enum.StrEnum):
    RED = "red"


class Opaque:
    pass


# --- declaring -----------------------------------------------------------------------


@tool
async def bare(city: str) -> str:
    """Current weather in a city.

    Args:
        city: Its name.
    """
    return f"{city} is sunny"


@tool(
    effects="none",
    replay="safe",
    parallel=True,
    timeout=5,
    output_cap=100,
    approval="ask",
    uses={"network"},
    on_fatal="end",
    polling=True,
    name="other",
    description=" Another text. ",
    version="2",
    available_in_plan_mode=False,
    risk="high",
)
def declared(city: str) -> str:
    """Never read."""
    return city


def test_a_bare_decorator_declares_the_riskier_case() -> None:
    expected = ToolSpec("bare", "Current weather in a city.", bare.spec.parameters)

    assert bare.spec == expected
    assert (bare.spec.effects, bare.spec.replay) == ("external", "never")


def test_every_keyword_arrives_in_the_spec() -> None:
    assert declared.spec == ToolSpec(
        "other",
        "Another text.",
        declared.spec.parameters,
        effects="none",
        replay="safe",
        parallel=True,
        timeout=5,
        output_cap=100,
        approval="ask",
        uses=frozenset({"network"}),
        on_fatal="end",
        polling=True,
        version="2",
        available_in_plan_mode=False,
        risk="high",
    )


async def test_the_tool_is_still_the_function() -> None:
    assert await bare("Paris") == "Paris is sunny"
    assert declared("Paris") == "Paris"
    assert (bare.__name__, bare.__module__) == ("bare", __name__)
    assert str(inspect.signature(declared)) == "(city: str) -> str"
    assert "test_function.bare" in repr(bare)


def test_a_function_attribute_never_replaces_one_of_the_tool() -> None:
    def f() -> str:
        return ""

    f.spec = f.check = "mine"  # type: ignore[attr-defined]
    assert made(f).spec.name == "f"
    assert made(f).check("{}") == {}


def test_it_has_the_protocol_and_says_whether_it_blocks() -> None:
    assert isinstance(bare, Tool)
    assert not isinstance(bare, SyncTool)
    assert isinstance(declared, SyncTool)


def test_a_tool_passes_through_as_tool_and_a_function_becomes_one() -> None:
    def f() -> str:
        """Does it."""
        return ""

    assert as_tool(bare) is bare
    assert as_tool(f).spec == tool(f).spec


def test_a_renamed_tool_differs_in_its_name_only() -> None:
    renamed = declared.renamed("third")

    assert renamed.spec == dataclasses.replace(declared.spec, name="third")
    assert renamed("x") == "x"
    assert isinstance(renamed, SyncTool)
    with pytest.raises(ConfigError, match="no legal tool name"):
        declared.renamed("no name")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"effects": "nothing"}, "use one of 'none', 'local', 'external'"),
        ({"replay": True}, "use one of 'safe', 'never'"),
        ({"approval": "yes"}, "use one of 'auto', 'ask'"),
        ({"on_fatal": "stop"}, "use one of 'continue', 'end'"),
        ({"risk": ["low"]}, "use one of 'low', 'medium', 'high'"),
        ({"parallel": "yes"}, "use a bool"),
        ({"fallback": 1}, "use a bool"),
        ({"polling": None}, "use a bool"),
        ({"available_in_plan_mode": 0}, "use a bool"),
        ({"version": 2}, "use a str"),
        ({"name": 3}, "use a str"),
        ({"description": None}, "use a str"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": -1.5}, "seconds above 0"),
        ({"timeout": math.inf}, "finite number of seconds"),
        ({"timeout": math.nan}, "finite number of seconds"),
        ({"timeout": "5"}, "seconds above 0"),
        ({"timeout": True}, "seconds above 0"),
        ({"output_cap": 0}, "characters above 0"),
        ({"output_cap": 1.5}, "characters above 0"),
        ({"uses": "network"}, "use a set of 'fs_read'"),
        ({"uses": {"disk"}}, "use a set of 'fs_read'"),
        ({"uses": 3}, "use a set of 'fs_read'"),
        ({"colour": "red"}, "no such option, only approval, "),
        ({"name": "get weather"}, "'get weather' is no legal tool name"),
        ({"name": "1st"}, "use a letter"),
        ({"name": "größe"}, "use a letter"),
        ({"name": "a" * 65}, "at most 63"),
        ({"name": "a\n"}, "use a letter"),
        ({"name": ""}, "use a letter"),
        ({"description": "  "}, "no description: write a docstring"),
        ({"fallback": True}, "needs effects='none' and empty uses"),
        ({"fallback": True, "effects": "none", "uses": ["exec"]}, "drop fallback"),
    ],
)
def test_a_wrong_option_is_refused_with_the_fix(
    options: dict[str, Any], said: str
) -> None:
    def lookup(x: int) -> str:
        return ""

    with pytest.raises(ConfigError) as caught:
        made(lookup, **options)

    assert said in str(caught.value)
    assert "lookup" in str(caught.value)


def test_fallback_is_allowed_where_nothing_is_touched() -> None:
    def lookup(x: int) -> str:
        return ""

    assert made(lookup, fallback=True, effects="none", uses=()).spec.fallback


def test_a_function_without_description_is_refused() -> None:
    def undocumented(x: int) -> str:
        return ""

    def only_sections(x: int) -> str:
        """
        Args:
            x: X.
        """
        return ""

    for function in (undocumented, only_sections):
        with pytest.raises(ConfigError, match="has no description"):
            tool(function)


def generates(x: int) -> Iterator[int]:
    """Not a tool."""
    yield x


async def generates_async(x: int) -> AsyncIterator[int]:
    """Not a tool."""
    yield x


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (generates, "is a generator; a tool returns once"),
        (generates_async, "is a generator; a tool returns once"),
        (Opaque, "takes a function, not <class"),
        (Opaque(), "takes a function"),
        ("text", "takes a function, not 'text'"),
        (bare, "is a tool already"),
        (lambda: "", "'<lambda>' is no legal tool name"),
    ],
)
def test_what_is_no_function_is_refused(thing: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(thing)

    assert said in str(caught.value)


# --- other callables -----------------------------------------------------------------


class Shop:
    """A shop."""

    def __init__(self, stock: int) -> None:
        self.stock = stock

    async def count(self, extra: int = 0) -> int:
        """How many there are."""
        return self.stock + extra

    @staticmethod
    @tool
    def help() -> str:
        """How to use it."""
        return "ask"


class Adder:
    """Adds one."""

    async def __call__(self, x: int) -> int:
        return x + 1


@dataclasses.dataclass
class Undocumented:
    by: int

    def __call__(self, x: int) -> int:
        return x + self.by


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def test_bound_methods_partials_objects_and_wrappers_are_tools() -> None:
    async def plus(x: int, y: int) -> int:
        """Add."""
        return x + y

    count = tool(Shop(2).count)
    assert (count.spec.name, count.spec.description) == ("count", "How many there are.")
    assert (await run(count, '{"extra": 1}')).structured == 3
    assert (await run(Shop.help)).text == "ask"
    partial = tool(functools.partial(plus, y=2))
    assert (partial.spec.name, partial.spec.description) == ("plus", "Add.")
    assert (await run(partial, '{"x": 1}')).structured == 3
    adder = tool(Adder())
    assert (adder.spec.name, adder.spec.description) == ("Adder", "Adds one.")
    assert (await run(adder, '{"x": 1}')).structured == 2
    wrapped = tool(traced(plus))
    assert not isinstance(wrapped, SyncTool)
    assert (await run(wrapped, '{"x": 1, "y": 4}')).structured == 5


async def test_a_wrapper_that_has_awaited_already_is_no_hindrance() -> None:
    async def inner(x: int) -> int:
        """Never awaited by the tool."""
        raise NotImplementedError

    @functools.wraps(inner)
    def cached(x: int) -> int:
        return x

    assert (await run(tool(cached), '{"x": 1}')).structured == 1


def test_what_a_dataclass_says_of_itself_is_no_description() -> None:
    with pytest.raises(ConfigError, match="has no description"):
        tool(Undocumented(1))


def test_a_static_method_object_is_unwrapped() -> None:
    assert made(staticmethod(plain)).spec.name == "plain"


def plain(x: int = 1) -> str:
    """Plain."""
    return str(x)


# --- results -------------------------------------------------------------------------


async def returned(value: Any, **options: Any) -> ToolResult:
    async def give() -> Any:
        return value

    return await run(made(give, **options))


IMAGE = ImagePart("image/png", url="https://example.org/x.png")
FILE = FilePart("a.txt", "text/plain", data=b"a")


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("text", "text", None),
        ("", "", None),
        (Colour.RED, "red", None),
        ("caf\udce9", "caf\\udce9", None),
        (3, "3", 3),
        (True, "true", True),
        (None, "null", None),
        (1.5, "1.5", 1.5),
        ([1, "a"], '[1,"a"]', [1, "a"]),
        ((1, 2), "[1,2]", [1, 2]),
        ({"a": {"b": 1}}, '{"a":{"b":1}}', {"a": {"b": 1}}),
        ({7}, "[7]", [7]),
        (Weather(degrees=2), '{"degrees":2.0}', {"degrees": 2.0}),
        ([Weather(degrees=2)], '[{"degrees":2.0}]', [{"degrees": 2.0}]),
        (Point(1), '{"x":1}', {"x": 1}),
        (date(2020, 1, 2), '"2020-01-02"', "2020-01-02"),
        ([], "[]", []),
    ],
)
async def test_a_value_is_told_as_text_and_kept_as_json(
    value: Any, text: str, structured: Any
) -> None:
    result = await returned(value)

    assert (result.status, result.text, result.structured) == ("ok", text, structured)


async def test_parts_become_content_and_a_result_passes_through() -> None:
    result = ToolResult.failed("no", effect="none")

    assert await returned(result) is result
    assert (await returned(IMAGE)).content == (IMAGE,)
    assert (await returned([IMAGE, FILE])).content == (IMAGE, FILE)
    mixed = await returned(("see", IMAGE))
    assert mixed.content == (TextPart("see"), IMAGE)


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "value",
    [
        b"x",
        bytearray(b"x"),
        math.nan,
        {"x": [math.inf]},
        Opaque(),
        {"x": Opaque()},
        {"x": b"\xff"},
        LOOP,
        [IMAGE, 3],
    ],
)
async def test_what_json_cannot_hold_is_a_failed_result_with_the_fix(
    value: Any,
) -> None:
    result = await returned(value)

    assert (result.status, result.effect) == ("error", "done")
    assert result.error is not None
    assert "tool 'give' ran, but returned " in result.text
    assert "return a str, a JSON-able value, parts, or a ToolResult" in result.text
    assert len(result.text) < 500


async def test_an_unusable_value_of_a_tool_without_effects_did_nothing() -> None:
    assert (await returned(b"x", effects="none")).effect == "none"


def test_a_sync_function_that_returns_a_coroutine_is_told_to_be_async() -> None:
    async def later() -> str:
        return ""

    def forgot() -> Any:
        return later()

    it: Any = made(forgot)
    assert "declare the function `async def`" in it.call_sync({}, context()).text


async def test_exceptions_of_the_function_come_out_as_they_are() -> None:
    async def fails(error: str) -> str:
        raise Retryable(error)

    with pytest.raises(Retryable, match="later"):
        await run(fails, '{"error": "later"}')


async def test_bad_arguments_never_reach_the_function() -> None:
    reached = []

    async def f(x: Annotated[int, "note"]) -> str:
        reached.append(x)
        return ""

    with pytest.raises(InvalidArguments):
        await made(f).call({"x": "no"}, context())
    assert reached == []


async def test_a_sync_tool_on_its_own_runs_off_the_loop() -> None:
    def where(ctx: ToolContext[Any]) -> str:
        return f"{ctx.deps} {threading.current_thread() is threading.main_thread()}"

    assert (await run(where, deps="d")).text == "d False"
    assert isinstance(made(where), FunctionTool)
