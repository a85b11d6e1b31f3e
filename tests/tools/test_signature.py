"""A function's signature becomes a JSON Schema, and its arguments proper objects."""

import dataclasses
import enum
import functools
import gc
import inspect
import math
import weakref
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic_core import from_json, to_json
from tests.tools import local_types
from tests.tools.helpers import made, run, schema
from typing_extensions import TypedDict

from agentcore.errors import ConfigError, InvalidArguments
from agentcore.tools import _signature as signatures
from agentcore.types.context import ToolContext
from agentcore.types.json import EMPTY


class Colour(enum.Enum):
    RED = "red"


class Address(BaseModel):
    model_config = ConfigDict(strict=True)
    street: str
    since: date


@dataclasses.dataclass
class Point:
    x: int


class Box(TypedDict):
    width: int


class Plain:
    """A class pydantic knows nothing of."""


# --- schemas -------------------------------------------------------------------------


def test_the_schema_of_a_flat_function() -> None:
    def search(query: str, limit: int = 10, exact: bool = False) -> str:
        """Search.

        Args:
            query: What to look for.
            limit: How many.
            nobody: Not a parameter.
        """
        return ""

    assert schema(search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "description": "How many.", "default": 10},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> str:
        return ""

    assert schema(now) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_a_field_description_wins_over_the_docstring() -> None:
    def f(x: Annotated[int, Field(description="From the field.", ge=1)]) -> str:
        """F.

        Args:
            x: From the docstring.
        """
        return ""

    x = schema(f)["properties"]["x"]
    assert (x["description"], x["minimum"]) == ("From the field.", 1)


def test_nested_types_keep_their_definitions_and_lose_derived_titles() -> None:
    def f(a: Address, p: Point, b: Box, c: Colour, title: str) -> str:
        return ""

    found = schema(f)
    assert set(found["$defs"]) == {"Address", "Point", "Box", "Colour"}
    assert '"title":"' not in to_json(found).decode()
    assert found["properties"]["title"] == {"type": "string"}


def test_an_explicit_title_stays() -> None:
    def f(x: Annotated[int, Field(title="The X")]) -> str:
        return ""

    assert schema(f)["properties"]["x"]["title"] == "The X"


def test_a_default_without_json_form_is_left_out_of_the_schema() -> None:
    def f(x: float = math.nan, y: int = object()) -> str:  # type: ignore[assignment]
        return ""

    assert schema(f)["properties"] == {
        "x": {"type": "number"},
        "y": {"type": "integer"},
    }


def test_literals_and_optionals_are_spelled_out() -> None:
    def f(unit: Literal["c", "f"] = "c", city: str | None = None) -> str:
        return ""

    assert schema(f)["properties"] == {
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "city": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }


# --- arguments -----------------------------------------------------------------------


async def typed(function: Callable[..., Any], arguments: str) -> dict[str, Any]:
    """What the function is called with."""
    it = made(function)
    return it._arguments.validate_python(it.check(arguments))


async def test_arguments_arrive_as_the_annotated_types() -> None:
    def f(
        a: Address, p: Point, b: Box, c: Colour, d: datetime, u: UUID, n: Decimal
    ) -> str:
        return ""

    text = (
        '{"a": {"street": "S", "since": "2020-01-02"}, "p": {"x": 1}, '
        '"b": {"width": 2}, "c": "red", "d": "2020-01-02T03:04:05", "n": "1.10",'
        ' "u": "12345678-1234-5678-1234-567812345678"}'
    )
    assert await typed(f, text) == {
        "a": Address(street="S", since=date(2020, 1, 2)),
        "p": Point(1),
        "b": {"width": 2},
        "c": Colour.RED,
        "d": datetime(2020, 1, 2, 3, 4, 5),  # noqa: DTZ001 - as the text says
        "u": UUID("12345678-1234-5678-1234-567812345678"),
        "n": Decimal("1.10"),
    }


async def test_checking_gives_back_what_the_text_spells() -> None:
    def f(c: Colour, s: Annotated[str, AfterValidator(str.upper)]) -> str:
        return ""

    it = made(f)
    assert it.check('{"c": "red", "s": "a"}') == {"c": "red", "s": "a"}
    assert await typed(f, '{"c": "red", "s": "a"}') == {"c": Colour.RED, "s": "A"}


async def test_a_constraint_that_changes_text_changes_only_the_call() -> None:
    def f(s: Annotated[str, StringConstraints(strip_whitespace=True)]) -> str:
        return ""

    assert made(f).check('{"s": " a "}') == {"s": " a "}
    assert await typed(f, '{"s": " a "}') == {"s": "a"}


async def test_a_number_in_quotes_is_taken_for_the_number() -> None:
    def f(n: int) -> str:
        return ""

    assert made(f).check('{"n": "3"}') == {"n": "3"}
    assert await typed(f, '{"n": "3"}') == {"n": 3}


async def test_an_argument_left_out_is_the_functions_own_default() -> None:
    marker = object()

    def f(n: int = marker) -> str:  # type: ignore[assignment]
        return str(n is marker)

    assert (await run(f)).text == "True"


async def test_defaults_of_fields_are_filled_in() -> None:
    async def f(
        a: Annotated[int, Field(default=1)],
        b: int = Field(2, description="B."),
        c: list[int] = Field(default_factory=list),  # noqa: B008 - pydantic's way
        d: str = Field(alias="from", default="x"),
    ) -> str:
        return f"{a} {b} {c} {d}"

    assert (await run(f)).text == "1 2 [] x"
    assert (await run(f, '{"from": "y"}')).text == "1 2 [] y"
    assert schema(f)["properties"]["b"] == {
        "type": "integer",
        "description": "B.",
        "default": 2,
    }


async def test_a_required_field_default_is_required() -> None:
    def f(a: int = Field(description="A.")) -> str:
        return ""

    assert schema(f)["required"] == ["a"]


async def test_an_alias_takes_the_docstrings_description() -> None:
    async def f(from_: Annotated[str, Field(alias="from")]) -> str:
        """F.

        Args:
            from_: Where.
        """
        return from_

    assert schema(f)["properties"]["from"]["description"] == "Where."
    assert made(f).check('{"from": "x"}') == {"from": "x"}
    assert (await run(f, '{"from": "x"}')).text == "x"


async def test_any_mapping_is_taken_for_parsed_arguments() -> None:
    async def f(tags: dict[str, Any]) -> str:
        return str(tags)

    async def g(a: int = 1) -> str:
        return str(a)

    assert made(f)._arguments.validate_python({"tags": EMPTY}) == {"tags": {}}
    assert made(g)._arguments.validate_python(EMPTY) == {}


SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**70), 2**70),
    str: st.text(st.characters(exclude_categories=["Cs"])),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Optional[int]: st.none() | st.integers(-(2**63), 2**63),  # noqa: UP045
    list[str]: st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    dict[str, int]: st.dictionaries(
        st.sampled_from(["a", "b:", '"']), st.integers(0, 9)
    ),
    Union[int, str]: st.integers(0, 9) | st.sampled_from(["x", "1"]),  # noqa: UP007
}


@st.composite
def functions_and_arguments(
    draw: st.DrawFn,
) -> tuple[Callable[..., Any], dict[str, Any]]:
    types = draw(st.lists(st.sampled_from(list(SIMPLE)), max_size=5))
    names = [f"p{i}" for i in range(len(types))]

    def f(**kwargs: Any) -> str:
        return ""

    signed: Any = f
    signed.__signature__ = inspect.Signature(
        [
            inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, annotation=t)
            for n, t in zip(names, types, strict=True)
        ]
    )
    values = {n: draw(SIMPLE[t]) for n, t in zip(names, types, strict=True)}
    return f, values


@given(functions_and_arguments())
def test_arguments_of_simple_types_arrive_equal(
    drawn: tuple[Callable[..., Any], dict[str, Any]],
) -> None:
    function, values = drawn
    it = made(function)
    text = to_json(values).decode()

    assert it.check(text) == from_json(text) == values
    assert it._arguments.validate_python(values) == values
    assert set(it.spec.parameters["properties"]) == set(values)


# --- arguments that do not fit -------------------------------------------------------


def weather(city: str, days: int = 1) -> str:
    """Weather."""
    return city


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{}", "city: Field required (got {})"),
        ('{"citty": "x"}', "city: Field required (got {'citty': 'x'}); citty: "),
        ('{"city": "x", "days": "soon"}', "days: Input should be a valid integer"),
        ('{"city": 3}', "city: Input should be a valid string (got 3)"),
        ('{"city": "x", "city": "y"}', "city: the key is there twice"),
        ('{"city": "x", "cit\\u0079": "y"}', "city: the key is there twice"),
        ('{"city": "x"', "Invalid JSON: EOF while parsing an object"),
        ("", "Invalid JSON: EOF"),
        ("[]", "Input should be an object (got [])"),
        ("null", "Input should be an object (got None)"),
        ('{"city": "x"} {}', "Invalid JSON: trailing characters"),
    ],
)
def test_the_refusal_tells_the_model_what_to_change(
    arguments: str, message: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        made(weather).check(arguments)

    assert message in str(caught.value)


def test_a_colon_in_a_value_is_no_second_key() -> None:
    assert made(weather).check('{"city": "a: b"}') == {"city": "a: b"}


def test_a_duplicate_deep_inside_is_refused() -> None:
    def f(tags: dict[str, Any]) -> str:
        return ""

    with pytest.raises(InvalidArguments, match="b: the key is there twice"):
        made(f).check('{"tags": {"a": {"b": 1, "b": 2}}}')


def test_keys_are_checked_beside_a_number_of_many_digits() -> None:
    def f(tags: dict[str, Any]) -> str:
        return ""

    big = "1" * 4000
    assert made(f).check('{"tags": {"a": ' + big + "}}") == {"tags": {"a": int(big)}}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("kind", [float, Any, dict[str, Any]])
def test_numbers_json_does_not_have_are_refused(number: str, kind: Any) -> None:
    def f(x: Any) -> str:
        return ""

    f.__annotations__["x"] = kind
    text = f'{{"x": {{"y": {number}}}}}' if kind is not float else f'{{"x": {number}}}'
    with pytest.raises(InvalidArguments):
        made(f).check(text)


def test_the_refusal_is_bounded_however_much_is_wrong() -> None:
    def f(rows: list[int]) -> str:
        return ""

    rows = to_json({"rows": ["x" * 10_000] * 1000, "y" * 10_000: 1}).decode()
    with pytest.raises(InvalidArguments) as caught:
        made(f).check(rows)

    assert len(str(caught.value)) <= 1500
    assert str(caught.value).startswith("rows.0: ")


def test_a_host_validator_with_a_bug_is_a_refusal_too() -> None:
    def broken(value: str) -> str:
        return dict[str, str]()[value]

    def f(x: Annotated[str, AfterValidator(broken)]) -> str:
        return ""

    with pytest.raises(InvalidArguments, match="could not be checked: KeyError: 'a'"):
        made(f).check('{"x": "a"}')


def test_parsed_arguments_that_are_no_json_are_refused() -> None:
    def f(x: list[int]) -> str:
        return ""

    with pytest.raises(InvalidArguments, match="not JSON"):
        made(f)._arguments.validate_python({"x": object()})


async def test_parsed_arguments_are_checked_again_at_the_call() -> None:
    with pytest.raises(InvalidArguments, match="days"):
        made(weather)._arguments.validate_python({"city": "x", "days": "soon"})


# --- the injected context ------------------------------------------------------------


async def test_the_context_is_injected_wherever_it_stands() -> None:
    async def first(ctx: ToolContext[str], x: int) -> str:
        return f"{ctx.deps} {x}"

    async def last(x: int, *, ctx: ToolContext) -> str:
        return f"{ctx.deps} {x}"

    async def optional(
        x: int, ctx: Annotated[ToolContext[str] | None, "note"] = None
    ) -> str:
        return f"{ctx and ctx.deps} {x}"

    for function in (first, last, optional):
        assert list(schema(function)["properties"]) == ["x"]
        assert (await run(function, '{"x": 3}', "deps")).text == "deps 3"


async def test_the_context_cannot_be_passed_by_the_model() -> None:
    async def f(ctx: ToolContext) -> str:
        return ""

    with pytest.raises(InvalidArguments, match="ctx: Extra inputs are not permitted"):
        made(f).check('{"ctx": {}}')


async def test_string_annotations_resolve_even_where_deps_are_for_checkers_only() -> (
    None
):
    text = '{"city": {"name": "Paris"}}'

    result = await run(local_types.with_context, text, "deps")
    assert result.text == "Paris 1 deps"
    assert (await run(local_types.with_optional_context)).text == "True"


async def test_types_local_to_a_function_are_found() -> None:
    moved = await run(
        local_types.of_a_local_type(), '{"point": {"x": 1}, "twice": [{"x": 2}]}'
    )
    assert moved.text == "3"


async def test_types_in_the_closure_are_found_after_the_function_returned() -> None:
    moved = await run(local_types.of_a_closure_type(), '{"point": {"x": 1}}')

    assert moved.text == "PointTrue"


async def test_a_function_that_calls_itself_is_a_tool() -> None:
    async def countdown(n: "int") -> str:
        return await countdown(n - 1) if n else "done"

    assert (await run(countdown, '{"n": 3}')).text == "done"


def test_a_closure_name_without_a_value_yet_is_no_hindrance() -> None:
    def early(n: "int") -> str:
        return str(later)

    assert list(schema(early)["properties"]) == ["n"]
    later = 1
    assert early(1) == str(later)


async def test_a_return_annotation_nobody_can_resolve_is_left_alone() -> None:
    async def f() -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        return "fine"

    assert (await run(f)).text == "fine"


def test_an_explicit_class_title_stays() -> None:
    class Titled(BaseModel):
        model_config = ConfigDict(title="A Good Title")

    def f(x: Titled) -> str:
        return ""

    assert schema(f)["$defs"]["Titled"]["title"] == "A Good Title"


async def test_an_alias_of_several_names_takes_any_of_them() -> None:
    async def f(
        x: Annotated[int, Field(validation_alias=AliasChoices("a", "b"))],
    ) -> int:
        return x

    assert (await run(f, '{"b": 1}')).structured == 1


# --- functions that cannot be tools --------------------------------------------------


def starred(*args: int) -> str:
    raise NotImplementedError


def doubly_starred(**kwargs: int) -> str:
    raise NotImplementedError


def positional(a: int, /) -> str:
    raise NotImplementedError


def bare(a) -> str:  # type: ignore[no-untyped-def]
    raise NotImplementedError


def unbound(self, a: int) -> str:  # type: ignore[no-untyped-def]
    raise NotImplementedError


def foreign(ok: int, a: Plain) -> str:
    raise NotImplementedError


def nested(ok: int, a: list[Plain]) -> str:
    raise NotImplementedError


def uncallable(a: Callable[[int], int]) -> str:
    raise NotImplementedError


def two(a: ToolContext, b: ToolContext) -> str:
    raise NotImplementedError


def gives_bytes(a: int) -> bytes:
    raise NotImplementedError


def noted_bytes(a: int) -> Annotated[bytearray, "note"]:
    raise NotImplementedError


def maybe_bytes(a: int) -> bytes | None:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (starred, "'args' (*args) has no JSON form; take a list"),
        (doubly_starred, "'kwargs' (**kwargs) has no schema; name the parameters"),
        (positional, "'a' is positional-only; arguments come by name, remove the `/`"),
        (bare, "'a' has no annotation; add its type"),
        (unbound, "'self' is a method's own; make the tool of the bound method"),
        (foreign, "parameter 'a' (Unable to generate"),
        (nested, "parameter 'a' (Unable to generate"),
        (uncallable, "parameter 'a' (Cannot generate a JsonSchema"),
        (two, "'a' and 'b' both take the ToolContext; keep one"),
        (gives_bytes, "returns bytes, which no model reads: return a str"),
        (maybe_bytes, "returns bytes"),
        (noted_bytes, "returns bytes"),
        (local_types.unresolvable, "'Nowhere' of parameter 'x' cannot be resolved"),
        (len, "'obj' is positional-only"),
        (dict.fromkeys, "tool function"),
    ],
)
def test_the_refusal_names_function_parameter_and_fix(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        made(function)

    assert said in str(caught.value)
    assert getattr(function, "__qualname__", "?") in str(caught.value)


def test_a_callable_without_a_signature_is_refused() -> None:
    class Odd:
        __signature__ = "none"
        __name__ = "odd"

        def __call__(self) -> str:
            return ""

    with pytest.raises(ConfigError, match="no readable signature"):
        made(Odd())


# --- the cache -----------------------------------------------------------------------


def test_the_schema_is_built_once_per_function() -> None:
    assert made(weather).spec.parameters is made(weather).spec.parameters


def test_a_method_and_its_function_are_kept_apart() -> None:
    class Store:
        def find(self, key: str) -> str:
            return key

    first, second = made(Store().find), made(Store().find)
    assert first.spec.parameters is second.spec.parameters
    assert list(first.spec.parameters["properties"]) == ["key"]
    with pytest.raises(ConfigError, match="'self'"):
        made(Store.find)


def test_a_function_that_goes_takes_its_schema_along() -> None:
    def local(x: int) -> str:
        return ""

    gc.collect()  # what other tests left
    before = len(signatures._FUNCTIONS)
    made(local)
    assert len(signatures._FUNCTIONS) == before + 1
    gone = weakref.ref(local)
    del local
    gc.collect()
    assert gone() is None
    assert len(signatures._FUNCTIONS) == before


def test_what_a_partial_binds_is_hidden_from_the_model() -> None:
    def fetch(url: str, key: str, retries: int = 3) -> str:
        """Fetch it."""
        return f"{url} {key} {retries}"

    bound = made(functools.partial(fetch, key="secret"))
    assert list(bound.spec.parameters["properties"]) == ["url", "retries"]
    assert "secret" not in str(bound.spec)
    assert bound("u") == "u secret 3"
