"""Checks of what a host gives to an agent or a run: clear words, before any effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast, get_args

from agentcore._base.describe import type_name
from agentcore._base.surrogates import clean
from agentcore._engine.deps import RunSetup
from agentcore.errors import ConfigError
from agentcore.protocols.agent import Prompt
from agentcore.types.actor import Actor
from agentcore.types.content import (
    AudioPart,
    FilePart,
    ImagePart,
    TextPart,
    UserPart,
)
from agentcore.types.inbox import Delivery, Input
from agentcore.types.json import EMPTY
from agentcore.types.messages import UserMessage
from agentcore.types.options import NO_OPTIONS, Options
from agentcore.types.policy import Budget, Decision
from agentcore.types.runs import RunOptions

_PARTS: Final = (TextPart, ImagePart, AudioPart, FilePart)
_ASKS: Final = "'refuse', 'pause', or an async function that takes the request"
_MAX_ID: Final = 128
_MAX_SECONDS: Final = 10 * 365 * 86_400

NO_RUN_OPTIONS: Final = RunSetup()


def content_of(prompt: Prompt) -> tuple[UserPart, ...]:
    """What the user said, as parts.

    Raises:
        ConfigError: it is empty, or of a type that cannot be sent.
    """
    if isinstance(prompt, str):
        if not prompt or prompt.isspace():
            raise ConfigError("the message is empty; give a text or an attachment")
        return content_of((TextPart(prompt),))
    if isinstance(prompt, UserMessage):
        return content_of(prompt.content)
    given: Any = prompt  # whatever the annotation says, a host may pass anything
    if not isinstance(given, Sequence) or isinstance(given, (bytes, bytearray)):
        raise ConfigError(
            "a message is a str, a UserMessage, or a list of parts, "
            f"not {type_name(prompt)}"
        )
    parts = [_checked_part(part) for part in prompt]
    if not any(type(p) is not TextPart or p.text.strip() for p in parts):
        raise ConfigError("the message is empty; give a text or an attachment")
    return tuple(parts)


def _checked_part(part: Any) -> UserPart:
    if isinstance(part, str):
        part = TextPart(part)
    if not isinstance(part, _PARTS):
        raise ConfigError(
            f"a message holds {type_name(part)}; it may hold str, TextPart, "
            "ImagePart, AudioPart and FilePart"
        )
    if not isinstance(part, TextPart):
        return part
    if not isinstance(part.text, str):
        raise ConfigError(
            f"a TextPart of the message holds {type_name(part.text)}, not a str"
        )
    if clean(part.text) != part.text:
        raise ConfigError(
            "the message holds half a character (a lone surrogate), which no store "
            "and no vendor takes; decode the text with errors='replace'"
        )
    return part


def input_item(
    prompt: Prompt, delivery: Delivery, input_id: str, yours: RunSetup
) -> Input:
    """The inbox item of a message.

    Raises:
        ConfigError: the message is empty or cannot be sent, or the id cannot be kept.
    """
    return Input(
        check_id("input_id", input_id),
        content_of(prompt),
        delivery,
        "user",
        yours.actor,
        yours.traceparent,
    )


def check_id(what: str, value: Any) -> str:
    """An id a host gave: a short str that no store can trip over.

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(value, str) or not value or len(value) > _MAX_ID:
        raise ConfigError(
            f"{what} must be a str of 1 to {_MAX_ID} characters, "
            f"not {type_name(value)} {value!r}"
        )
    if clean(value) != value:
        raise ConfigError(f"{what} holds half a character: {value!r}")
    if any(c in value for c in "/\\\0") or value in (".", ".."):
        raise ConfigError(f"{what} must not hold '/', '\\', NUL or be '..': {value!r}")
    return value


def run_setup(given: RunOptions) -> RunSetup:
    """Per-run options, checked.

    Raises:
        ConfigError: an option there is not, or of a wrong type.
    """
    if not given:
        return NO_RUN_OPTIONS
    values = dict(cast("Mapping[str, Any]", given))
    wanted = values.get("tools_filter")
    if isinstance(wanted, Iterable) and not isinstance(wanted, str):
        values["tools_filter"] = tuple(wanted)  # a generator can be read only once
    unknown = values.keys() - _CHECKS.keys()
    if unknown:
        raise ConfigError(
            f"unknown run option {min(unknown)!r}; "
            f"the options are {', '.join(sorted(_CHECKS))}"
        )
    for name, value in values.items():
        check, wanted = _CHECKS[name]
        if value is not None and not check(value):
            raise ConfigError(f"{name} must be {wanted}, not {type_name(value)}")
    wanted_tools = values.get("tools_filter")
    setup = RunSetup(
        deps=values.get("deps"),
        options=values.get("options") or NO_OPTIONS,
        budget=values.get("budget"),
        timeout=values.get("timeout"),
        tools_filter=None if wanted_tools is None else frozenset(wanted_tools),
        asks=values.get("asks"),
        history=values.get("history") or "full",
        actor=values.get("actor"),
        traceparent=values.get("traceparent"),
        ephemeral=bool(values.get("ephemeral")),
        settings=_settings(values),
    )
    check_asks(setup.asks)
    check_budget(setup.budget)
    return setup


def _settings(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the journal keeps of the options: names and numbers only."""
    kept: dict[str, Any] = {}
    if values.get("timeout") is not None:
        kept["timeout"] = values["timeout"]
    if values.get("tools_filter") is not None:
        kept["tools_filter"] = sorted(values["tools_filter"])
    if values.get("history") == "none":
        kept["history"] = "none"
    return kept or EMPTY


def check_budget(budget: Budget | None) -> None:
    """Limits that are kept, and not only accepted.

    Raises:
        ConfigError: they count over a whole session, which nothing does yet.
    """
    if budget is not None and budget.scope != "run":
        raise ConfigError("Budget(scope='session') is not available yet; use 'run'")


def check_asks(asks: Any) -> None:
    """Who is asked: nobody, somebody later, or a handler.

    Raises:
        ConfigError: something else.
    """
    if asks is not None and asks not in ("refuse", "pause") and not callable(asks):
        raise ConfigError(f"asks must be {_ASKS}, not {asks!r}")


def check_decisions(decisions: Any) -> Mapping[str, Decision]:
    """What was decided, by the id of what it is about.

    Raises:
        ConfigError: it is no mapping of ids to decisions.
    """
    if decisions is None:
        return EMPTY
    if not isinstance(decisions, Mapping):
        raise ConfigError(
            "decisions must be a mapping such as {request.id: Approve()}, "
            f"not {type_name(decisions)}"
        )
    for subject, decision in decisions.items():
        check_id("the key of a decision", subject)
        if not isinstance(decision, get_args(Decision)):
            names = ", ".join(kind.__name__ for kind in get_args(Decision))
            raise ConfigError(
                f"the decision on {subject!r} must be one of {names}, "
                f"not {type_name(decision)}"
            )
        scope = getattr(decision, "scope", "once")
        if scope != "once":
            raise ConfigError(
                f"Approve(scope={scope!r}) is not available yet; use scope='once'"
            )
    return dict(decisions)


def _is_seconds(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value <= _MAX_SECONDS


def _is_names(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    return all(isinstance(name, str) for name in value)


_CHECKS: Final[dict[str, tuple[Any, str]]] = {
    "timeout": (_is_seconds, "a positive number of seconds"),
    "options": (lambda v: isinstance(v, Options), "an Options"),
    "budget": (lambda v: isinstance(v, Budget), "a Budget"),
    "tools_filter": (_is_names, "a list of tool names"),
    "asks": (lambda v: v in ("refuse", "pause") or callable(v), _ASKS),
    "ephemeral": (lambda v: isinstance(v, bool), "a bool"),
    "history": (lambda v: v in ("full", "none"), "'full' or 'none'"),
    "actor": (lambda v: isinstance(v, Actor), "an Actor"),
    "deps": (lambda v: True, "anything"),
    "traceparent": (lambda v: isinstance(v, str), "a str"),
}
