"""Helpers of the model tests."""

from agentcore.protocols.model import Model
from agentcore.types.messages import user_text
from agentcore.types.model import ModelDelta, ModelRequest, ModelResponse, ResponseDone

QUESTION = ModelRequest((user_text("Weather in Paris?"),))


async def deltas(model: Model, request: ModelRequest = QUESTION) -> list[ModelDelta]:
    """Everything the model streams for one request."""
    async with model.stream(request) as stream:
        return [delta async for delta in stream]


async def answer(model: Model, request: ModelRequest = QUESTION) -> ModelResponse:
    """The response the stream ends with."""
    last = (await deltas(model, request))[-1]
    assert isinstance(last, ResponseDone)
    return last.response


async def read_into(
    shown: list[ModelDelta], model: Model, request: ModelRequest = QUESTION
) -> None:
    """Read the stream delta by delta, so that a broken one leaves what it showed."""
    async with model.stream(request) as stream:
        async for delta in stream:
            shown.append(delta)  # noqa: PERF401 - one by one is the point
