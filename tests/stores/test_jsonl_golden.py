"""A store that version 1 of the format wrote opens for ever."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.stores.jsonl_kit import below

from agentcore.errors import InputConflict
from agentcore.stores.jsonl import JsonlRunStore
from agentcore.testing.contracts._sample import FROM_THE_FUTURE, RUN, text_input
from agentcore.types.content import BlobRef
from agentcore.types.inbox import Cancel
from agentcore.types.runs import SessionHeader, SessionQuery

GOLDEN = Path(__file__).parents[1] / "golden/v1/jsonl-store"
SESSION = "Golden/1"
AT = 1_764_547_200.5


@pytest.fixture
def store(tmp_path: Path) -> JsonlRunStore:
    return JsonlRunStore(shutil.copytree(GOLDEN, tmp_path / "store"))


async def test_everything_in_it_is_read(store: JsonlRunStore) -> None:
    (info,) = await store.sessions(SessionQuery())
    records = [stored async for stored in store.read(SESSION)]
    assert (info.session_id, info.created_at) == (SESSION, AT)
    assert info.records == len(records) == 1 + len(RUN) + len(FROM_THE_FUTURE)
    assert [s.record for s in records[1:]] == [*RUN, *FROM_THE_FUTURE]
    assert {(s.epoch, s.at) for s in records[1:]} == {(1, AT)}
    items = (await store.inbox(SESSION)).items
    assert list(items) == [(1, text_input("input-1", "hällo")), (2, Cancel("c"))]
    blob = BlobRef("82f64e6be809763df98195dfa5de656c", 4)
    assert await store.get_blob(blob) == b"data"
    assert await store.load_snapshot(SESSION) == (5, {"a": [1]})


async def test_it_is_gone_on_with(store: JsonlRunStore) -> None:
    with pytest.raises(InputConflict):
        await store.accept(SESSION, text_input("input-1", "something else"))
    assert (await store.accept(SESSION, text_input("new"))).position == 3
    lease = await store.acquire(SESSION, "owner-3")
    assert (lease.epoch, lease.took_over) == (3, True)
    count = 1 + len(RUN) + len(FROM_THE_FUTURE)
    await store.append(lease, RUN, expected_seq=count, expected_inbox=3)
    await store.close()


async def test_it_is_still_written_the_same(tmp_path: Path) -> None:
    clock: Any = SimpleNamespace(now=lambda: AT)
    store = JsonlRunStore(tmp_path, clock=clock)
    await store.create(SessionHeader(SESSION, config_digest="d"))
    await store.accept(SESSION, text_input("input-1", "hällo"))
    await store.accept(SESSION, Cancel("c"))
    lease = await store.acquire(SESSION, "owner-1")
    seq = (await store.append(lease, RUN, expected_seq=1)).seq
    await store.append(lease, FROM_THE_FUTURE, expected_seq=seq)
    await store.save_snapshot(SESSION, 5, {"a": [1]})
    await store.release(lease)
    await store.acquire(SESSION, "owner-2")
    folder = tmp_path / "sessions" / "%47olden%2f1"
    for golden in below(GOLDEN / "sessions" / folder.name, "**/*.json*"):
        name = golden.relative_to(GOLDEN / "sessions" / folder.name)
        assert (folder / name).read_bytes() == golden.read_bytes(), name
    await store.close()
