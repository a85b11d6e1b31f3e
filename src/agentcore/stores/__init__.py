"""Where journals live. Each file is the whole `RunStore` of one backend."""

from agentcore.stores.memory import MemoryRunStore as MemoryRunStore

__all__ = ["MemoryRunStore"]
