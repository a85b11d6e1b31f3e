"""Attachments are kept once by content, and the model gets their bytes."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.flows.kit import Kit

from agentcore import MemoryRunStore, tool
from agentcore._engine.attachments import Attachments
from agentcore.errors import InputConflict
from agentcore.testing import call
from agentcore.types import records as r
from agentcore.types.content import BlobRef, FilePart, ImagePart, TextPart
from agentcore.types.context import ToolContext
from agentcore.types.messages import ToolMessage, UserMessage, user_text
from agentcore.types.tools import ToolResult

SCENARIO = pytest.mark.scenario
PICTURE = bytes(range(256)) * 8


def images(kit: Kit, request: int = -1) -> list[ImagePart]:
    found: list[ImagePart] = []
    for message in kit.requests()[request].messages:
        if isinstance(message, UserMessage):
            found += [part for part in message.content if isinstance(part, ImagePart)]
    return found


async def kept(kit: Kit) -> ImagePart:
    """The image as the journal has it."""
    for stored in await kit.records():
        if isinstance(stored.record, r.InputAccepted):
            (part,) = [p for p in stored.record.content if isinstance(p, ImagePart)]
            return part
    raise AssertionError("no input")


@SCENARIO("run-21")
async def test_an_image_outlives_its_file_and_its_process(
    kit: Kit, tmp_path: Path
) -> None:
    source = anyio.Path(tmp_path / "picture.png")
    await source.write_bytes(PICTURE)
    parts: list[Any] = ["look", ImagePart("image/png", data=await source.read_bytes())]
    await kit.agent(["one"]).run(parts, session="s")
    await source.unlink()
    await kit.agent(["two"]).run("and again", session="s")

    for number in (0, 1):
        assert [image.data for image in images(kit, number)] == [PICTURE]
    part = await kept(kit)
    assert part.data is None
    assert part.blob is not None
    assert await kit.store.get_blob(part.blob) == PICTURE


async def test_the_same_bytes_are_kept_once_and_accepted_once(kit: Kit) -> None:
    agent = kit.agent(["one", "two"])
    parts: list[Any] = [ImagePart("image/png", data=PICTURE)]
    first = await agent.run(parts, session="s", input_id="i")
    again = await agent.run(parts, session="s", input_id="i")
    assert again.output == first.output
    other: list[Any] = [ImagePart("image/png", data=PICTURE[::-1])]
    with pytest.raises(InputConflict):
        await agent.run(other, session="s", input_id="i")


async def test_small_bytes_stay_where_they_are(kit: Kit) -> None:
    parts: list[Any] = [ImagePart("image/png", data=b"tiny")]
    await kit.agent(["one"]).run(parts, session="s")
    assert (await kept(kit)).data == b"tiny"
    assert images(kit)[0].data == b"tiny"


@pytest.mark.parametrize("how", ["submit", "steer", "follow_up", "attach"])
async def test_whichever_way_it_comes_the_bytes_are_stowed(kit: Kit, how: str) -> None:
    gate = kit.gate("x")
    agent = kit.agent([call("ro", text="x"), "one", "two"])
    parts: list[Any] = ["see", ImagePart("image/png", data=PICTURE)]
    async with agent.start("hi", session="s") as run:
        await gate.reached()
        if how == "submit":
            await agent.submit(parts, session="s")
        elif how == "attach":
            async with agent.attach("s") as other:
                await other.follow_up(parts)
        else:
            await getattr(run, how)(parts)
        gate.open()
        await run.result()
    assert [image.data for image in images(kit)] == [PICTURE]
    for stored in await kit.records():
        assert PICTURE not in repr(stored.record).encode("latin-1", "replace")
        if isinstance(stored.record, r.InputAccepted):
            assert all(getattr(p, "data", None) is None for p in stored.record.content)


async def test_a_run_nobody_keeps_sends_its_attachments_too(kit: Kit) -> None:
    agent = kit.agent(["one"], store=None)
    parts: list[Any] = [FilePart("a.pdf", "application/pdf", data=PICTURE)]
    await agent.run(parts)
    (message,) = kit.requests()[-1].messages
    (part,) = message.content  # type: ignore[union-attr]  # a user's message
    assert part.data == PICTURE  # type: ignore[union-attr]  # a file


async def test_what_a_tool_saved_reaches_the_model_as_bytes(kit: Kit) -> None:
    agent = kit.agent([call("draw"), "nice", "still"], tools=[drawing()])
    await agent.run("draw", session="s")
    await agent.run("again", session="s")
    for number in (1, 2):
        last = kit.requests()[number].messages[2]
        assert isinstance(last, ToolMessage)
        data = [getattr(part, "data", None) for part in last.results[0].content]
        assert data == [None, PICTURE]


async def test_a_filled_history_reads_like_any_other() -> None:
    store = MemoryRunStore()
    ref = await store.put_blob(PICTURE, media_type="image/png")
    image = ImagePart("image/png", blob=ref)
    history = [user_text("a"), UserMessage((image,)), user_text("c")]
    attachments = Attachments(store)
    assert attachments.needed(history, 0, 3)
    messages = await attachments.fill(history, 0)

    whole = [*history[:1], UserMessage((ImagePart("image/png", PICTURE),)), history[2]]
    assert (list(messages), len(messages)) == (whole, 3)
    assert (messages[1], messages[-1], messages[-2]) == (whole[1], whole[2], whole[1])
    assert messages[1:] == whole[1:]
    assert messages == whole
    assert messages != history
    assert hash(messages) == hash(tuple(whole))
    later = await attachments.fill(history[1:], 1)
    assert list(later) == whole[1:]


def drawing() -> Any:
    @tool(effects="none")
    async def draw(context: ToolContext[Any]) -> ToolResult:
        """Draw."""
        ref = await context.save(PICTURE, media_type="image/png")
        return ToolResult((TextPart("drawn"), ImagePart("image/png", blob=ref)))

    return draw


async def test_a_blob_that_is_gone_ends_the_run_in_words(kit: Kit) -> None:
    lost = BlobRef("0" * 32, 5, "image/png")
    parts: list[Any] = [ImagePart("image/png", blob=lost)]
    result = await kit.agent(["never"], store=MemoryRunStore()).run(parts, session="s")
    assert result.stop.status == "failed"
    assert "no blob 000" in result.stop.detail
