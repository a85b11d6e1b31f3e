"""Docstrings of three layouts give prose and parameter descriptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.tools._docstring import parse_docstring

GOOGLE = """Current weather in a city.

    Asks the nearest station.

    Args:
        city: Name of the city,
            without the country.
        days (int, optional): How far ahead: at most 7.
        *flags: Others.
        unit (Literal["c", "f"]): Scale
            of it.

    Returns:
        The weather.

    Raises:
        ValueError: no such city.

    Example:
        weather("Paris")
    """

NUMPY = """Current weather in a city.

    Asks the nearest station.

    Parameters
    ----------
    city : str
        Name of the city,
        without the country.
    days : int, optional
        How far ahead: at most 7.
    low, high
        Bounds.

    Returns
    -------
    str
        The weather.

    Notes
    -----
    Slow at night.
    """

SPHINX = """Current weather in a city.

    Asks the nearest station.

    :param city: Name of the city,
        without the country.
    :param int days: How far ahead: at most 7.
    :type city: str
    :returns: The weather.
    :raises ValueError: no such city.

    Slow at night.
    """

CITY = "Name of the city, without the country."
DAYS = "How far ahead: at most 7."


def test_a_google_docstring_gives_prose_and_parameters() -> None:
    doc = parse_docstring(GOOGLE)

    assert doc.prose == (
        "Current weather in a city.\n\nAsks the nearest station.\n\n"
        'Example:\n    weather("Paris")'
    )
    assert doc.parameters == {
        "city": CITY,
        "days": DAYS,
        "flags": "Others.",
        "unit": "Scale of it.",
    }


def test_a_numpy_docstring_gives_prose_and_parameters() -> None:
    doc = parse_docstring(NUMPY)

    assert doc.prose == (
        "Current weather in a city.\n\nAsks the nearest station.\n\n"
        "Notes\n-----\nSlow at night."
    )
    assert doc.parameters == {
        "city": CITY,
        "days": DAYS,
        "low": "Bounds.",
        "high": "Bounds.",
    }


def test_a_sphinx_docstring_gives_prose_and_parameters() -> None:
    doc = parse_docstring(SPHINX)

    assert doc.prose == (
        "Current weather in a city.\n\nAsks the nearest station.\n\nSlow at night."
    )
    assert doc.parameters == {"city": CITY, "days": DAYS}


def test_prose_that_looks_like_a_section_stays_prose() -> None:
    text = "Note: read me.\n\nBeware:\n    of dogs\n\n:ref:`this` and args: none."

    assert parse_docstring(text).prose == text


def test_an_empty_docstring_is_empty() -> None:
    doc = parse_docstring("")

    assert (doc.prose, doc.parameters) == ("", {})


@pytest.mark.parametrize("head", ["Args:", "Parameters\n----------", ":param"])
def test_a_header_without_entries_gives_none(head: str) -> None:
    assert parse_docstring(f"Prose.\n\n{head}").parameters == {}


PIECES = st.sampled_from(
    [
        "Args:",
        "Returns:",
        "Parameters",
        "-----",
        "x: y",
        "x : int",
        ":param x: y",
        ":type x:",
        "    ",
        "\t",
        "\n",
        "\r",
        ":",
        "*",
        "**kw: z",
        "a, b",
        "\x0c",
    ]
)


@given(st.text() | st.lists(PIECES | st.text(max_size=5)).map("\n".join))
def test_no_text_makes_parsing_fail(text: str) -> None:
    doc = parse_docstring(text)

    assert all(name and isinstance(t, str) for name, t in doc.parameters.items())


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True),
        st.from_regex(r"[A-Z][a-z]{0,9}( [a-z:()]{1,9}){0,5}", fullmatch=True),
        min_size=1,
    )
)
def test_what_is_written_in_each_layout_is_read_back(names: dict[str, str]) -> None:
    google = "\n".join(f"    {name}: {text}" for name, text in names.items())
    numpy = "\n".join(f"{name} : int\n    {text}" for name, text in names.items())
    sphinx = "\n".join(f":param {name}: {text}" for name, text in names.items())

    for written in (
        f"It.\n\nArgs:\n{google}",
        f"It.\n\nParameters\n----------\n{numpy}",
        f"It.\n\n{sphinx}",
    ):
        doc = parse_docstring(written)
        assert (doc.prose, doc.parameters) == ("It.", names)
