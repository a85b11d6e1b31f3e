"""The contract of a place skills come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentcore.types.skills import Skill, SkillSummary


class SkillRegistry(Protocol):
    """Offers skills by progressive disclosure: a line, then the body, then files."""

    async def summaries(self) -> Sequence[SkillSummary]:
        """Name and description of every visible skill; reads no bodies."""
        ...

    async def load(self, name: str) -> Skill:
        """The skill with its body.

        Raises:
            SkillError: no such skill (the message lists those there are), or it cannot
                be read.
        """
        ...

    async def read(self, name: str, path: str) -> bytes:
        """A file of the skill, and of nothing outside its folder.

        Raises:
            SkillError: no such file, or the path leads out.
        """
        ...
