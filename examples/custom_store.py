"""A store of one's own, by wrapping: it counts what each session has written.

A store from scratch has the same methods (`RunStore` lists each with its errors);
test_custom_store.py applies the contract suite, which is where to begin.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentcore import MemoryRunStore, RunStore, ToolLoopAgent
from agentcore.protocols.store import Appended
from agentcore.testing import ScriptedModel
from agentcore.types.records import Record
from agentcore.types.runs import Lease


class CountingStore:
    """Passes everything on, and counts the records of every append."""

    def __init__(self, inner: RunStore) -> None:
        self.written: Counter[str] = Counter()
        self._inner = inner

    async def append(
        self, lease: Lease, records: Sequence[Record], **expected: Any
    ) -> Appended:
        appended = await self._inner.append(lease, records, **expected)
        self.written[lease.session_id] += len(records)  # only what was accepted
        return appended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


if __name__ == "__main__":
    store = CountingStore(MemoryRunStore())
    agent = ToolLoopAgent(ScriptedModel(["Hello!"]), store=store)
    result = agent.run_sync("Hello?", session="s1")
    print(f"{result.output} {store.written['s1']} records")
