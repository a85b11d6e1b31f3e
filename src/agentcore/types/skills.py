"""Skills as the model sees them: a line first, the body when activated."""

from __future__ import annotations

from typing import Literal

from agentcore._base.frozen import frozen
from agentcore.types.json import EMPTY, JsonObject


@frozen
class SkillSummary:
    """What is known of a skill without reading its body."""

    name: str
    description: str
    location: str = ""
    """Folder or URI."""
    user_invocable: bool = True
    model_invocable: bool = True
    diagnostics: tuple[str, ...] = ()
    kind: Literal["skill_summary"] = "skill_summary"
    extra: JsonObject = EMPTY


@frozen
class Skill:
    """A skill ready to be activated. `allowed_tools` only ever narrows."""

    name: str
    description: str
    body: str
    location: str = ""
    allowed_tools: tuple[str, ...] | None = None
    """`None`: no restriction. Empty: no tools at all."""
    license: str | None = None
    compatibility: str | None = None
    metadata: JsonObject = EMPTY
    provider_options: JsonObject = EMPTY
    files: tuple[str, ...] = ()
    """Paths inside the skill's folder; listed, not read."""
    kind: Literal["skill"] = "skill"
    extra: JsonObject = EMPTY
