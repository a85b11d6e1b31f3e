"""The scripted model answers as told, and shows what it was asked."""

from collections.abc import Callable

import anyio
import pytest
from tests.testing.models import QUESTION, answer, deltas, read_into

from agentcore.errors import (
    BrokenStream,
    ConfigError,
    ProviderError,
    RateLimited,
    Unreachable,
)
from agentcore.protocols.model import Model
from agentcore.testing import (
    DEFAULT_USAGE,
    FunctionModel,
    Gate,
    ScriptedModel,
    ScriptExhausted,
    StepLike,
    call,
    call_raw,
    step,
)
from agentcore.types.content import (
    FilePart,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from agentcore.types.messages import Message, ToolMessage, user_text
from agentcore.types.model import (
    FileReady,
    ModelCapabilities,
    ModelDelta,
    ModelRequest,
    ModelResponse,
    ResponseDone,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolInputReady,
    ToolInputStarted,
)
from agentcore.types.usage import Usage


def texts(shown: list[ModelDelta]) -> list[str]:
    return [d.text for d in shown if isinstance(d, TextDelta)]


# --- what it answers -------------------------------------------------------------


async def test_a_text_streams_word_by_word_and_ends_with_the_whole_response() -> None:
    shown = await deltas(ScriptedModel(["It is sunny."]))

    whole = ModelResponse((TextPart("It is sunny."),), "stop", DEFAULT_USAGE, "model")
    assert shown == [
        TextDelta("It "),
        TextDelta("is "),
        TextDelta("sunny."),
        ResponseDone(whole),
    ]


async def test_a_call_starts_streams_its_arguments_and_is_ready() -> None:
    shown = await deltas(ScriptedModel([call("get_weather", city="Paris", _id="x")]))

    arguments = '{"city": "Paris"}'
    assert shown[:-1] == [
        ToolInputStarted(0, "get_weather", "x"),
        ToolInputDelta(0, '{"city":'),
        ToolInputDelta(0, ' "Paris"}'),
        ToolInputReady(0, "get_weather", arguments, "x"),
    ]
    assert isinstance(shown[-1], ResponseDone)
    assert shown[-1].response.tool_calls == (
        ToolCallPart("get_weather", arguments, provider_call_id="x"),
    )
    assert shown[-1].response.finish == "tool_calls"


async def test_thinking_comes_before_text_and_text_before_calls() -> None:
    model = ScriptedModel([step(calls=[call("a")], text="So", thinking="Hmm")])

    shown = await deltas(model)

    assert shown[:2] == [ThinkingDelta("Hmm"), TextDelta("So")]
    assert isinstance(shown[2], ToolInputStarted)
    assert isinstance(shown[-1], ResponseDone)
    assert shown[-1].response.content[0] == ThinkingPart("Hmm")


async def test_a_list_keeps_the_order_of_its_texts_and_calls() -> None:
    response = await answer(ScriptedModel([["One", call("a"), "two", call("b")]]))

    assert [p.kind for p in response.content] == [
        "text",
        "tool_call",
        "text",
        "tool_call",
    ]
    assert response.text == "Onetwo"


async def test_several_calls_count_their_index_within_the_reply() -> None:
    shown = await deltas(ScriptedModel([[call("a"), call("b")]]))

    started = [d for d in shown if isinstance(d, ToolInputStarted)]
    assert [(d.index, d.name) for d in started] == [(0, "a"), (1, "b")]


async def test_calls_without_a_vendor_id_are_numbered_across_requests() -> None:
    model = ScriptedModel([[call("a"), call("b", _id="mine")], call("c")])

    ids = [
        part.provider_call_id
        for _ in range(2)
        for part in (await answer(model)).tool_calls
    ]

    assert ids == ["scripted_1", "mine", "scripted_2"]


async def test_raw_arguments_arrive_as_they_are_written() -> None:
    response = await answer(ScriptedModel([call_raw("a", '{"x":'), call_raw("b", "")]))

    assert response.tool_calls[0].arguments == '{"x":'


async def test_a_call_with_empty_arguments_has_no_argument_deltas() -> None:
    shown = await deltas(ScriptedModel([call_raw("a", "")]))

    assert [d.kind for d in shown] == [
        "tool_input_started",
        "tool_input_ready",
        "response_done",
    ]


async def test_a_call_may_have_an_argument_called_tool() -> None:
    response = await answer(ScriptedModel([call("a", tool="hammer")]))

    assert response.tool_calls[0].arguments == '{"tool": "hammer"}'


async def test_chunks_say_how_the_text_is_cut_and_may_stand_for_it() -> None:
    model = ScriptedModel(
        [step(text="sunny", chunks=["su", "nny"]), step(chunks=["ra", "in"])]
    )

    assert texts(await deltas(model)) == ["su", "nny"]
    assert (await answer(model)).text == "rain"


async def test_usage_and_finish_are_what_the_step_says() -> None:
    model = ScriptedModel(
        [step(text="a", usage=Usage(1, 2), finish="length"), step(text="b", usage=None)]
    )

    first, second = await answer(model), await answer(model)

    assert (first.usage, first.finish) == (Usage(1, 2), "length")
    assert (second.usage, second.finish) == (None, "stop")


async def test_an_empty_text_is_an_answer_without_content() -> None:
    assert (await answer(ScriptedModel([""]))).content == ()


async def test_files_are_announced_and_images_come_with_the_response() -> None:
    file, image = FilePart("a.txt", "text/plain", b"a"), ImagePart("image/png", b"b")

    shown = await deltas(ScriptedModel([[file, image]]))

    assert shown[0] == FileReady(file)
    assert isinstance(shown[1], ResponseDone)
    assert shown[1].response.content == (file, image)


async def test_a_whole_response_is_handed_out_untouched() -> None:
    response = ModelResponse((TextPart("hi"), ToolCallPart("a", "{}")), model="gpt")

    assert await answer(ScriptedModel([response])) is response


async def test_a_lone_text_is_one_answer() -> None:
    assert (await answer(ScriptedModel("Hello you"))).text == "Hello you"


def test_it_is_a_model_with_an_id_and_capabilities() -> None:
    sees = ModelCapabilities(images=True)
    model: Model = ScriptedModel([], id="openai:gpt", capabilities=sees)

    assert (model.id, model.capabilities) == ("openai:gpt", sees)
    assert not ScriptedModel([]).capabilities.json_schema


# --- how it fails ----------------------------------------------------------------


async def test_an_error_is_raised_before_the_stream_opens() -> None:
    slow_down = RateLimited("slow down", retry_after=3)
    model = ScriptedModel([slow_down, Unreachable, "fine"])

    with pytest.raises(RateLimited) as caught:
        async with model.stream(QUESTION):
            pytest.fail("the stream opened")
    with pytest.raises(Unreachable) as made:
        await deltas(model)

    assert caught.value is slow_down
    assert not made.value.in_stream
    assert (await answer(model)).text == "fine"


async def test_an_error_after_output_says_that_output_was_shown() -> None:
    model = ScriptedModel([step(text="a b c", raise_=RateLimited, fail_after=2)])
    shown: list[ModelDelta] = []

    with pytest.raises(RateLimited) as caught:
        await read_into(shown, model)

    assert texts(shown) == ["a ", "b "]
    assert caught.value.in_stream


async def test_an_error_of_any_class_can_be_scripted() -> None:
    with pytest.raises(OSError, match="scripted OSError"):
        await deltas(ScriptedModel([OSError]))


async def test_a_cut_stream_breaks_in_place_of_its_end() -> None:
    model = ScriptedModel([step(text="abc", calls=[call("a")], cut=True)])
    shown: list[ModelDelta] = []

    with pytest.raises(BrokenStream) as caught:
        await read_into(shown, model)

    assert isinstance(shown[-1], ToolInputReady)
    assert caught.value.in_stream
    assert caught.value.retryable


async def test_a_stream_can_be_cut_in_the_middle_of_a_call() -> None:
    cut = step(text="abc", calls=[call("a", n=1)], cut=True, fail_after=3)
    shown: list[ModelDelta] = []

    with pytest.raises(BrokenStream):
        await read_into(shown, ScriptedModel([cut]))

    assert [d.kind for d in shown] == [
        "text_delta",
        "tool_input_started",
        "tool_input_delta",
    ]


async def test_a_stream_cut_before_any_output_opens_and_then_breaks() -> None:
    async with ScriptedModel([step(cut=True)]).stream(QUESTION) as stream:
        with pytest.raises(BrokenStream) as caught:
            await anext(stream)

    assert not caught.value.in_stream


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: step(text="abc", chunks=["a"]), "do not add up"),
        (lambda: step(cut=True, raise_=OSError), "not both"),
        (lambda: step(text="a", fail_after=1), "fail_after needs"),
        (lambda: ScriptedModel([3]), "3 is no step"),  # type: ignore[list-item]
        (lambda: ScriptedModel([int]), "is no step"),  # type: ignore[list-item]
    ],
)
def test_a_step_that_makes_no_sense_is_refused_when_it_is_written(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


# --- where it waits --------------------------------------------------------------


async def test_a_gate_holds_the_answer_back_until_it_is_opened() -> None:
    gate, shown = Gate(), list[ModelDelta]()
    model = ScriptedModel([step(text="now", gate=gate)])

    async with anyio.create_task_group() as group:
        group.start_soon(read_into, shown, model)
        await gate.reached()
        assert shown == []
        gate.open()

    assert texts(shown) == ["now"]


async def test_a_gate_may_stand_behind_the_first_deltas() -> None:
    gate, shown = Gate(), list[ModelDelta]()
    model = ScriptedModel([step(text="a b c", gate=gate, gate_after=2)])

    async with anyio.create_task_group() as group:
        group.start_soon(read_into, shown, model)
        await gate.reached()
        assert texts(shown) == ["a ", "b "]
        gate.open()

    assert texts(shown) == ["a ", "b ", "c"]


async def test_a_gate_behind_everything_holds_the_end_back() -> None:
    gate, shown = Gate(), list[ModelDelta]()
    model = ScriptedModel([step(text="a b", gate=gate, gate_after=99)])

    async with anyio.create_task_group() as group:
        group.start_soon(read_into, shown, model)
        await gate.reached()
        assert [d.kind for d in shown] == ["text_delta", "text_delta"]
        gate.open()

    assert isinstance(shown[-1], ResponseDone)


async def test_an_event_of_the_loop_serves_as_a_gate() -> None:
    event = anyio.Event()
    model = ScriptedModel([step(text="now", gate=event)])

    async with anyio.create_task_group() as group:
        group.start_soon(deltas, model)
        await anyio.wait_all_tasks_blocked()
        event.set()


async def test_leaving_a_stream_early_closes_it_also_at_a_gate() -> None:
    gate = Gate()
    model = ScriptedModel([step(text="a b", gate=gate, gate_after=1), "c d"])

    async with anyio.create_task_group() as group:
        group.start_soon(deltas, model)
        await gate.reached()
        assert model.active == 1
        group.cancel_scope.cancel()
    async with model.stream(QUESTION) as stream:
        assert await anext(stream) == TextDelta("c ")

    assert model.active == 0


# --- what it was asked -----------------------------------------------------------


async def test_a_captured_request_does_not_grow_with_the_history() -> None:
    history: list[Message] = [user_text("one")]
    model = ScriptedModel(["a", "b"])

    await deltas(model, ModelRequest(history))
    history.append(user_text("two"))
    await deltas(model, ModelRequest(history))

    first, second = model.requests
    assert first.messages == (user_text("one"),)
    assert second.messages == (user_text("one"), user_text("two"))


async def test_captured_requests_cannot_be_changed_from_outside() -> None:
    model = ScriptedModel(["a"])
    await deltas(model)

    assert isinstance(model.requests, tuple)
    with pytest.raises(AttributeError):
        model.requests[0].instructions = "other"  # type: ignore[misc]


async def test_requests_that_fail_are_captured_too() -> None:
    model = ScriptedModel([Unreachable])

    with pytest.raises(ProviderError):
        await deltas(model)

    assert len(model.requests) == 1


async def test_a_request_beyond_the_script_fails_and_is_told_once_more() -> None:
    model = ScriptedModel(["a"])
    await deltas(model)

    with pytest.raises(ScriptExhausted, match="request 2 is not in the script of 1"):
        await deltas(model)
    with pytest.raises(ScriptExhausted, match="a user message: 'Weather in Paris"):
        model.assert_exhausted()


async def test_a_request_beyond_the_script_names_a_result_or_the_lack_of_any() -> None:
    result = ToolResultPart("call_1", "get_weather", (TextPart("sunny " * 99),))

    with pytest.raises(ScriptExhausted, match=r"a tool message: 'sunny .*…'"):
        await deltas(ScriptedModel([]), ModelRequest((ToolMessage((result,)),)))
    with pytest.raises(ScriptExhausted, match="no message at all"):
        await deltas(ScriptedModel([]), ModelRequest(()))


async def test_an_exhausted_script_is_no_provider_error() -> None:
    assert not issubclass(ScriptExhausted, ProviderError)
    assert issubclass(ScriptExhausted, AssertionError)


async def test_a_lenient_script_repeats_its_last_step() -> None:
    model = ScriptedModel(["a", "b"], strict=False)

    assert [(await answer(model)).text for _ in range(4)] == ["a", "b", "b", "b"]
    model.assert_exhausted()


async def test_a_used_up_script_satisfies_the_check() -> None:
    model = ScriptedModel(["a"])
    await deltas(model)
    model.assert_exhausted()


async def test_steps_that_are_left_are_listed_with_number_and_content() -> None:
    model = ScriptedModel(
        [
            "a",
            call("pay", eur=5),
            step(text="half", cut=True),
            OSError("disk"),
            "",
            ModelResponse((TextPart("whole"),)),
        ]
    )
    await deltas(model)

    with pytest.raises(AssertionError) as caught:
        model.assert_exhausted()

    assert str(caught.value).splitlines() == [
        "5 of 6 scripted steps were never asked for:",
        '  2: call pay({"eur": 5})',
        "  3: 'half' (cut)",
        "  4: raise OSError('disk')",
        "  5: an empty answer",
        "  6: 'whole'",
    ]


async def test_concurrent_requests_share_the_script_in_order_of_arrival() -> None:
    model = ScriptedModel(["a", "b", "c"])
    got: list[str] = []

    async def ask() -> None:
        got.append((await answer(model)).text)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask)

    assert sorted(got) == ["a", "b", "c"]
    model.assert_exhausted()


# --- a function instead of a script ----------------------------------------------


async def test_a_function_answers_from_the_request_it_is_given() -> None:
    def echo(request: ModelRequest) -> StepLike:
        last = request.messages[-1]
        return f"{request.instructions} {getattr(last, 'text', '')}"

    model = FunctionModel(echo)
    request = ModelRequest((user_text("you"),), instructions="Hello")

    assert (await answer(model, request)).text == "Hello you"
    assert model.requests == (request,)
    assert model.id == "function:model"


async def test_an_async_function_may_return_any_form_of_a_step() -> None:
    async def ask_a_tool(request: ModelRequest) -> StepLike:
        await anyio.lowlevel.checkpoint()
        return [call("a")]

    assert (await answer(FunctionModel(ask_a_tool))).tool_calls[0].name == "a"


async def test_what_a_function_raises_reaches_the_caller() -> None:
    def broken(request: ModelRequest) -> StepLike:
        raise Unreachable("no line")

    with pytest.raises(Unreachable, match="no line"):
        await deltas(FunctionModel(broken))
