"""What a stored request is the hash of (invariant I4)."""

from __future__ import annotations

from agentcore._base.canonical import digest, json_digest


def prompt_digest(history: str, tools: str, prepared: object) -> str:
    """What proves a request: its history, its tools, and what was added to it alone.

    Args:
        history: The projector's digest of the prefix.
        tools: The digest of the advertised tools.
        prepared: `ModelIntent.prepared`.
    """
    added = "" if prepared is None else json_digest(prepared)
    return digest(f"{history} {tools} {added}".encode())
