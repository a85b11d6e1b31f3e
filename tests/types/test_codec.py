"""Whatever is written comes back equal; what a newer version wrote is kept."""

import dataclasses
import enum
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.types.values import of_class, of_shape

from agentcore.errors import ConfigError, CorruptRecord
from agentcore.types import codec
from agentcore.types._codec_shapes import plan_of, shape_of
from agentcore.types.actor import Actor
from agentcore.types.codec import Family, dump, dump_json, dump_many
from agentcore.types.content import BlobRef, ImagePart, TextPart, ToolResultPart
from agentcore.types.events import Committed, RunEvent
from agentcore.types.inbox import Input
from agentcore.types.json import EMPTY, Unknown
from agentcore.types.messages import AssistantMessage, UserMessage
from agentcore.types.model import ModelDelta, ModelRequest
from agentcore.types.options import NamedTool, Options
from agentcore.types.policy import Allow, Approve, Budget, Question
from agentcore.types.records import (
    ApprovalDecided,
    InputPlaced,
    ModelIntent,
    ModelOutcome,
    Record,
    RunStarted,
    StateChanged,
    StoredRecord,
    ToolOutcome,
    UsageRecorded,
)
from agentcore.types.runs import RunSnapshot, SessionHeader
from agentcore.types.tools import ToolCall, ToolResult, ToolSpec
from agentcore.types.usage import Usage

GOLDEN = Path(__file__).parents[1] / "golden/v1"

FAMILIES: dict[str, Family[Any]] = {
    "records": codec.RECORDS,
    "inbox items": codec.INBOX_ITEMS,
    "messages": codec.MESSAGES,
    "events": codec.EVENTS,
    "parts": codec.PARTS,
    "result parts": codec.RESULT_PARTS,
    "deltas": Family[ModelDelta](ModelDelta),
}
SINGLE = (
    Budget, Options, RunSnapshot, SessionHeader, StoredRecord, ToolCall, ToolResult,
    ToolSpec,
)  # fmt: skip


def classes(family: Family[Any]) -> list[type]:
    return list(shape_of(family._hint).classes.values())


EVERY = [
    pytest.param(family, cls, id=f"{name}: {cls.__name__}")
    for name, family in FAMILIES.items()
    for cls in classes(family)
] + [pytest.param(Family[Any](cls), cls, id=cls.__name__) for cls in SINGLE]


# --- the round trip ------------------------------------------------------------------


@pytest.mark.parametrize(("family", "cls"), EVERY)
@given(data=st.data())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_every_value_comes_back_equal_by_every_way(
    family: Family[Any], cls: type, data: st.DataObject
) -> None:
    value = data.draw(of_class(cls))
    written = dump(value)
    encoded = dump_json(value)
    assert json.loads(encoded) == written
    back = family.load_json(encoded)
    for read in (back, family.load(written), *family.load_many(dump_many([value]))):
        assert read == value
        assert same_types(read, value)
    assert dump_json(back) == encoded


def same_types(one: Any, other: Any) -> bool:
    """Equal is not enough: `(1,)` for a set, or a list for a tuple, is lost."""
    if dataclasses.is_dataclass(one):
        names = [f.name for f in dataclasses.fields(one) if f.name != "extra"]
        return all(same_types(getattr(one, n), getattr(other, n)) for n in names)
    if isinstance(one, tuple):
        pairs = zip(one, other, strict=True)
        return type(other) is tuple and all(same_types(a, b) for a, b in pairs)
    return not isinstance(one, frozenset) or type(other) is frozenset


@given(st.lists(of_shape(shape_of(Record)), max_size=5))
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_many_records_come_back_in_order(records: list[Record]) -> None:
    assert codec.RECORDS.load_many(dump_many(records)) == records


def test_a_field_at_its_default_is_left_out_and_the_kind_stays_first() -> None:
    assert dump_json(TextPart("a")) == b'{"kind":"text","text":"a"}'
    assert dump_json(RunStarted("r")) == b'{"kind":"run.started","run_id":"r"}'
    assert dump(Usage(1, None)) == {"kind": "usage", "input_tokens": 1}


def test_equal_sets_give_equal_json() -> None:
    spec = ToolSpec("t", "d", {}, uses=frozenset({"network", "exec", "fs_read"}))
    assert dump(spec)["uses"] == ["exec", "fs_read", "network"]


def test_a_default_is_shared_not_copied() -> None:
    part = codec.PARTS.load_json(b'{"kind":"text","text":"a"}')
    assert isinstance(part, TextPart)
    assert part.extra is EMPTY


def test_a_dump_shares_nothing_mutable_with_its_value() -> None:
    value = {"a": [1]}
    dump(StateChanged("k", value))["value"]["a"].append(2)
    assert value == {"a": [1]}


def test_a_request_reads_its_messages_as_a_tuple() -> None:
    request = ModelRequest(
        [UserMessage((TextPart("hi"),))], options=Options(stop=("x",))
    )
    back = Family[ModelRequest](ModelRequest).load_json(dump_json(request))
    assert back == dataclasses.replace(request, messages=tuple(request.messages))


# --- what a newer version wrote ------------------------------------------------------


def both_ways(family: Family[Any], data: Any) -> Any:
    """The value, which is the same from bytes, from an array, and from a dict."""
    encoded = json.dumps(data).encode()
    value = family.load_json(encoded)
    assert [value, value] == family.load_many(b"[" + encoded + b"," + encoded + b"]")
    assert value == family.load(data)
    assert dump(value) == data  # nothing is lost
    return value


def test_an_unknown_kind_is_kept_as_it_came() -> None:
    raw = {"kind": "future.kind", "a": [1, {"b": None}], "extra": {"c": 1}}
    assert both_ways(codec.RECORDS, raw) == Unknown("future.kind", raw)


def test_unknown_fields_are_kept_where_they_stood() -> None:
    raw = {
        "kind": "usage.recorded",
        "reservation_id": "r",
        "usage": {"kind": "usage", "input_tokens": 1, "joules": 2.5},
        "who": {"x": [1]},
        "extra": 7,
    }
    recorded = both_ways(codec.RECORDS, raw)
    assert recorded == UsageRecorded(
        "r", Usage(1, extra={"joules": 2.5}), extra={"who": {"x": [1]}, "extra": 7}
    )


def test_an_unknown_part_is_the_smallest_unknown() -> None:
    hologram = {"kind": "hologram", "depth": 3}
    message = {
        "kind": "assistant",
        "content": [{"kind": "text", "text": "a"}, hologram],
    }
    assert both_ways(codec.MESSAGES, message) == AssistantMessage(
        (TextPart("a"), Unknown("hologram", hologram))
    )


def test_where_no_unknown_fits_what_is_around_it_becomes_one() -> None:
    raw = {
        "kind": "approval.decided",
        "call_id": "c",
        "args_hash": "h",
        "decision": {"kind": "ask_my_manager"},
    }
    assert both_ways(codec.RECORDS, raw) == Unknown("approval.decided", raw)
    event = {"kind": "committed", "seq": 2, "record": raw}
    committed = both_ways(codec.EVENTS, event)
    assert committed == Committed(2, Unknown("approval.decided", raw))


def test_a_class_without_extra_and_a_family_without_unknown_lose_nothing() -> None:
    raw = {"kind": "text_delta", "text": "a", "logprob": -1.5}
    assert both_ways(codec.EVENTS, raw) == Unknown("text_delta", raw)
    raw = {"kind": "smell_delta"}
    assert both_ways(codec.EVENTS, raw) == Unknown("smell_delta", raw)
    assert both_ways(Family[Allow](Allow), {"kind": "allow", "n": 1}).kind == "allow"
    assert both_ways(Family[Allow](Allow), {"kind": "perhaps"}).kind == "perhaps"


def test_one_newer_record_does_not_disturb_its_neighbours() -> None:
    known, foreign = InputPlaced("i", "r"), Unknown("x", {"kind": "x"})
    assert codec.RECORDS.load_many(dump_many([known, foreign, known])) == [
        known,
        foreign,
        known,
    ]


def test_an_object_or_a_blob_is_told_by_its_kind() -> None:
    def intent(prepared: Any) -> ModelIntent:
        return ModelIntent("r", 1, 1, "d", "m", prepared=prepared)

    for prepared in (BlobRef("h", 1), {"kind": "note"}, {"a": 1}, None):
        assert codec.RECORDS.load(dump(intent(prepared))) == intent(prepared)
        loaded = codec.RECORDS.load_json(dump_json(intent(prepared)))
        assert loaded == intent(prepared)
    with pytest.raises(ConfigError, match=r"ModelIntent\.prepared.*read as BlobRef"):
        dump(intent({"kind": "blob", "hash": "h"}))


# --- what is refused when written ----------------------------------------------------

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (float("nan"), r"StateChanged\.value is no JSON value: float nan"),
        ({"a": [0, {1, 2}]}, r"StateChanged\.value\.a\[1\] is no JSON value: set"),
        ([object()], r"StateChanged\.value\[0\] is no JSON value: object"),
        ({"b": b"x"}, r"StateChanged\.value\.b is no JSON value: bytes"),
        ({"c": {1: 2}}, r"StateChanged\.value\.c has the key 1"),
        ({"d": 1 + 2j}, r"StateChanged\.value\.d is no JSON value: complex"),
        (CYCLE, r"StateChanged\.value.*nested more than 100 levels"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_place(value: Any, place: str) -> None:
    with pytest.raises(ConfigError, match=place):
        dump(StateChanged("k", value))


def test_half_a_surrogate_pair_is_refused_by_its_place() -> None:
    with pytest.raises(
        ConfigError, match=r"UserMessage\.content\[1\]\.text is no JSON"
    ):
        dump_json(UserMessage((TextPart("né"), TextPart("\ud83d"))))
    with pytest.raises(ConfigError, match="has the key"):
        dump_json(StateChanged("k", {"é": "é", "\ud83d": 1}))


def made(cls: Any, *args: Any, **fields: Any) -> Callable[[], Any]:
    """Builds what a type checker would not let pass."""
    return lambda: cls(*args, **fields)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (made(TextPart, 3), r"TextPart\.text cannot hold int 3"),
        (
            made(ToolOutcome, "c", "fine"),
            r"ToolOutcome\.status cannot hold str 'fine'",
        ),
        (made(ToolOutcome, "c", 4), r"ToolOutcome\.status cannot hold int"),
        (made(Usage, 1.5), r"Usage\.input_tokens cannot hold float"),
        (made(Usage, cost_usd=float("inf")), r"Usage\.cost_usd is no JSON value"),
        (made(UserMessage, ("hi",)), r"UserMessage\.content cannot hold str"),
        (
            made(UserMessage, (ToolResultPart("c", "n", ()),)),
            r"UserMessage\.content cannot hold ToolResultPart",
        ),
        (made(ImagePart, "image/png", data="x"), r"ImagePart\.data cannot hold str"),
        (made(ApprovalDecided, "c", "h", None), r"decision cannot hold None"),
        (made(UsageRecorded, "r", estimated="no"), r"estimated cannot hold str"),
        (made(RunStarted, "r", input_ids="ab"), r"input_ids cannot hold str"),
        (made(Usage, True), r"Usage\.input_tokens cannot hold bool"),
        (made(TextPart, "a", extra={"text": "b"}), r"TextPart\.extra may not hold"),
        (made(TextPart, "a", extra={"kind": "b"}), r"may not hold the field 'kind'"),
        (made(TextPart, "a", extra={"x": {1}}), r"TextPart\.extra\.x is no JSON"),
        (made(Unknown, "a", {"kind": "b"}), r"must carry its kind 'a', not 'b'"),
        (lambda: "text", "str is no value of the vocabulary"),
    ],
)
def test_what_would_not_be_read_is_not_written(value: Any, place: str) -> None:
    with pytest.raises(ConfigError, match=place):
        dump(value())


def test_plain_relatives_of_json_values_are_written_as_json() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        LOW = 1

    class Real(float):
        pass

    value = {"t": (1, Colour.RED), "m": EMPTY, "l": Level.LOW, "r": Real(0.5)}
    assert dump(StateChanged(Colour.RED, value)) == {
        "kind": "state.changed",
        "key": "red",
        "value": {"t": [1, "red"], "m": {}, "l": 1, "r": 0.5},
    }
    assert type(dump(StateChanged(Colour.RED))["key"]) is str
    assert type(dump(Usage(Level.LOW))["input_tokens"]) is int
    assert dump(Usage(cost_usd=1))["cost_usd"] == 1

    class Status(enum.StrEnum):
        OK = "ok"

    assert dump(ModelOutcome("r", 1, Status.OK))["status"] == "ok"  # type: ignore[arg-type]


# --- what is refused when read -------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"kind": "input.placed", "run_id": "r"}, "InputPlaced lacks the field 'input"),
        ({"kind": "input.placed", "input_id": 3, "run_id": "r"}, r"\.input_id cannot"),
        ({"kind": "model.outcome", "req_id": "r", "attempt": 1, "status": "fine"},
         r"ModelOutcome\.status cannot be 'fine'"),
        ({"kind": "usage.recorded", "reservation_id": "r", "estimated": 1},
         r"estimated cannot hold int"),
        ({"kind": "usage.recorded", "reservation_id": "r", "usage": {
            "kind": "usage", "input_tokens": True}}, r"input_tokens cannot hold bool"),
        ({"kind": "usage.recorded", "reservation_id": "r", "usage": []},
         r"UsageRecorded\.usage cannot hold list"),
        ({"kind": "run.started", "run_id": {}}, r"run_id cannot hold dict"),
        ({"kind": "run.started", "run_id": "r", "settings": "x"}, r"settings cannot"),
        ({"kind": "run.unpaused", "run_id": "r", "actor": {"kind": "actor",
          "user_id": ""}}, r"Actor\.user_id must be a non-empty str"),
        ({"kind": "input.accepted", "input_id": "i", "position": 1, "content": [
            {"kind": "image", "media_type": "m", "data": "%"}]}, r"data is no base64"),
        ({"no": "kind"}, "record has no kind"),
        ({"kind": 3}, "record has no kind"),
        (["list"], "record cannot hold list"),
        ("text", "record cannot hold str"),
        (3, "record cannot hold int"),
    ],
)  # fmt: skip
def test_damage_is_refused_by_its_place(data: Any, place: str) -> None:
    encoded = json.dumps(data).encode()
    with pytest.raises(CorruptRecord, match=place):
        codec.RECORDS.load(data)
    with pytest.raises(CorruptRecord, match=place):
        codec.RECORDS.load_json(encoded)
    with pytest.raises(CorruptRecord, match=place):
        codec.RECORDS.load_many(b"[" + encoded + b"]")


@pytest.mark.parametrize("data", [b"{", b"", b"\xff", b'{"kind":"x","a":NaN}'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptRecord, match="no valid JSON"):
        codec.RECORDS.load_json(data)
    with pytest.raises(CorruptRecord, match="no valid JSON"):
        codec.RECORDS.load_many(data)


def test_many_needs_an_array() -> None:
    with pytest.raises(CorruptRecord, match="no JSON array"):
        codec.RECORDS.load_many(b"{}")


def test_words_and_classes_of_one_field_are_told_apart() -> None:
    options = Family[Options](Options)
    choice: Any
    for choice in ("none", NamedTool("t")):
        value = Options(tool_choice=choice, temperature=None)
        assert options.load(dump(value)) == options.load_json(dump_json(value)) == value
    with pytest.raises(CorruptRecord, match=r"Options\.temperature cannot hold list"):
        options.load({"kind": "options", "temperature": []})


def test_a_type_without_a_place_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="no place in JSON"):
        shape_of(complex)
    with pytest.raises(TypeError, match="share the kind"):
        shape_of(Actor | dataclasses.make_dataclass("Other", [("kind", str, "actor")]))


def test_values_outside_a_union_are_written_too() -> None:
    for value in (Approve({"a": 1}), Question("q", "?"), Input("i", ())):
        assert Family[Any](type(value)).load_json(dump_json(value)) == value


# --- golden files --------------------------------------------------------------------


def golden_lines(name: str) -> list[str]:
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "family"),
    [("records.jsonl", codec.RECORDS), ("inbox.jsonl", codec.INBOX_ITEMS)],
)
def test_golden_files_load_and_are_written_the_same(
    name: str, family: Family[Any]
) -> None:
    kinds = set()
    for line in golden_lines(name):
        value = family.load_json(line.encode())
        assert not isinstance(value, Unknown), line
        assert dump_json(value).decode() == line
        assert family.load(json.loads(line)) == value
        kinds.add(type(value))
    assert kinds == set(classes(family))


def test_every_event_kind_is_read_by_its_family() -> None:
    assert {plan_of(c).kind for c in classes(codec.EVENTS)} == set(
        shape_of(RunEvent).classes
    )
