"""Tool calls in pieces, in every way that servers were seen to cut them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.errors import BadResponse
from agentcore.providers._toolcalls import ToolCallAssembler
from agentcore.types.content import ToolCallPart
from agentcore.types.model import (
    ModelDelta,
    ToolInputDelta,
    ToolInputReady,
    ToolInputStarted,
)


def piece(
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    arguments: Any = None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    return entry


def assemble(*pieces: dict[str, Any]) -> tuple[list[tuple[str, str, str]], list[Any]]:
    """Calls as (id, name, arguments), and the deltas."""
    assembler = ToolCallAssembler()
    out: list[ModelDelta] = []
    for entry in pieces:
        assembler.add(entry, out)
    parts = assembler.finish(out)
    return [(p.provider_call_id, p.name, p.arguments) for p in parts], out


A = ("a", "go", '{"x":1}')
B = ("b", "go", '{"x":2}')

SHAPES = {
    "as the format says": [
        piece(0, "a", "go", ""), piece(0, arguments='{"x"'), piece(0, arguments=":1}"),
        piece(1, "b", "go", ""), piece(1, arguments='{"x":2}'),
    ],
    "whole calls": [piece(0, "a", "go", '{"x":1}'), piece(1, "b", "go", '{"x":2}')],
    "whole calls without index": [
        piece(None, "a", "go", '{"x":1}'), piece(None, "b", "go", '{"x":2}'),
    ],
    "index 0 for each call": [
        piece(0, "a", "go", '{"x":1}'), piece(0, "b", "go", '{"x":2}'),
    ],
    "interleaved": [
        piece(0, "a", "go", '{"x"'), piece(1, "b", "go", '{"x"'),
        piece(0, arguments=":1}"), piece(1, arguments=":2}"),
    ],
    "interleaved, by id only": [
        piece(None, "a", "go", '{"x"'), piece(None, "b", "go", '{"x"'),
        piece(None, "a", arguments=":1}"), piece(None, "b", arguments=":2}"),
    ],
    "id and name in each piece": [
        piece(0, "a", "go", '{"x"'), piece(0, "a", "go", ":1}"),
        piece(1, "b", "go", '{"x"'), piece(1, "b", "go", ":2}"),
    ],
    "another id in each piece": [
        piece(0, "a", "go", '{"x"'), piece(0, "zz", None, ":1}"),
        piece(1, "b", "go", '{"x"'), piece(1, "yy", None, ":2}"),
    ],
    "the name in pieces": [
        piece(0, "a", "g", ""), piece(0, None, "o", '{"x":1}'),
        piece(1, "b", "g"), piece(1, None, "o"), piece(1, arguments='{"x":2}'),
    ],
    "arguments before the name": [
        piece(0, "a", None, '{"x"'), piece(0, None, "go", ":1}"),
        piece(1, "b", None, '{"x":2}'), piece(1, None, "go"),
    ],
    "arguments as an object": [
        piece(0, "a", "go", {"x": 1}), piece(1, "b", "go", {"x": 2}),
    ],
    "the id comes late": [
        piece(None, None, "go", '{"x"'), piece(None, "a", None, ":1}"),
        piece(None, "b", "go", '{"x":2}'),
    ],
    "no index, continued without id": [
        piece(None, "a", "go", ""), piece(arguments='{"x":1}'),
        piece(None, "b", "go", ""), piece(arguments='{"x":2}'),
    ],
    "an empty entry first, a high index": [
        {}, piece(3, "a", "go", '{"x":1}'), piece(7, "b", "go", '{"x":2}'),
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_two_calls_are_put_together_from(shape: str) -> None:
    calls, _ = assemble(*SHAPES[shape])
    assert calls == [A, B]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_deltas_of_each_call_add_up_to_its_arguments(shape: str) -> None:
    calls, deltas = assemble(*SHAPES[shape])
    for number, (call_id, name, arguments) in enumerate(calls):
        mine = [d for d in deltas if d.index == number]
        assert type(mine[0]) is ToolInputStarted
        assert mine[0].name == name
        assert mine[-1] == ToolInputReady(number, name, arguments, call_id)
        assert "".join(d.text for d in mine[1:-1]) == arguments
        assert {type(d) for d in mine[1:-1]} == {ToolInputDelta}


def test_calls_without_id_or_index_are_told_apart_by_their_names() -> None:
    calls, _ = assemble(
        piece(name="go", arguments='{"x":1}'), piece(name="go", arguments='{"x":2}'),
        piece(name="stay", arguments="{"), piece(name="run", arguments="{}"),
    )  # fmt: skip
    assert calls == [
        ("", "go", '{"x":1}'),
        ("", "go", '{"x":2}'),
        ("", "stay", "{"),
        ("", "run", "{}"),
    ]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert assemble(piece(0, "a", "go"))[0] == [("a", "go", "{}")]


def test_arguments_that_are_no_json_stay_as_they_came() -> None:
    assert assemble(piece(0, "a", "go", '{"x": oops'))[0] == [("a", "go", '{"x": oops')]


def test_the_same_id_twice_stays_so() -> None:
    calls, _ = assemble(piece(0, "a", "go", "{}"), piece(1, "a", "go", "{}"))
    assert calls == [("a", "go", "{}"), ("a", "go", "{}")]


def test_a_signature_beside_the_call_is_kept() -> None:
    assembler = ToolCallAssembler()
    signature = {"google": {"thought_signature": "abc"}}
    assembler.add({**piece(0, "a", "go", "{}"), "extra_content": signature}, [])
    assert assembler.finish([]) == (
        ToolCallPart(
            "go", "{}", provider_call_id="a", extra={"extra_content": signature}
        ),
    )


def test_a_call_without_a_name_is_a_bad_response_that_may_be_asked_again() -> None:
    with pytest.raises(BadResponse, match="no name") as caught:
        assemble(piece(0, "a", None, "{}"))
    assert caught.value.retryable


@settings(deadline=None)  # a busy machine is no failure
@given(
    calls=st.lists(
        st.tuples(
            st.sampled_from(["go", "stay", "run"]),
            st.lists(st.text(min_size=1, max_size=5), max_size=5),
        ),
        max_size=5,
    ),
    order=st.randoms(use_true_random=False),
)
def test_with_an_index_any_interleaving_gives_the_same_calls(
    calls: list[tuple[str, list[str]]], order: Any
) -> None:
    queues = [
        [piece(n, f"id{n}", name, ""), *(piece(n, arguments=text) for text in texts)]
        for n, (name, texts) in enumerate(calls)
    ]
    pieces = [queue.pop(0) for queue in queues]  # the calls begin in their order
    while any(queues):
        pieces.append(order.choice([q for q in queues if q]).pop(0))
    expected = [
        (f"id{n}", name, "".join(texts) or "{}")
        for n, (name, texts) in enumerate(calls)
    ]
    assert assemble(*pieces)[0] == expected
