"""Models: one folder per wire format, and a name for each vendor.

    openai_chat/   OpenAI's chat format, which most vendors speak
    local/         the embedded model's weights and server
    embedded.py    both as one model: "local:qwen2.5-coder-1.5b"
    _profiles.py   the vendors of OpenAI's format and how they differ
    _http.py _faults.py _keys.py _sse.py _toolcalls.py   what the formats share

Importing this package loads no HTTP library; the folder of a vendor is imported when a
model of it is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from agentcore.errors import ConfigError
from agentcore.protocols.model import Model
from agentcore.providers._keys import key_from_environment as key_from_environment
from agentcore.providers._profiles import KNOWN, find_profile

__all__ = ["key_from_environment", "resolve_model"]


def resolve_model(name: str, **settings: Any) -> Model:
    """The model that a string such as `"openai:gpt-5-mini"` names.

    The key is asked for when a request is about to leave, not here. A string says no
    more than the vendor, so without `api_key=` (and without a `base_url=` of the
    host's own) it is read then from the vendor's usual environment variable; a request
    without a key fails with an error that is both `AuthFailed` and `ConfigError`.

    Args:
        name: `vendor:model`; the model's name may hold colons itself.
        settings: as the model's class takes them: `api_key`, `base_url`, `headers`,
            `options`, `capabilities`, `http_timeout`, `proxy`; for
            `local:qwen2.5-coder-1.5b` as `EmbeddedModel` takes them.

    Raises:
        ConfigError: the vendor is not known, the string is no `vendor:model`, or a
            setting is wrong. Nothing was sent.
    """
    provider, colon, model = name.partition(":")
    if provider == "local" and model:
        return _embedded(model, settings)
    profile = find_profile(provider)
    if not colon or not model or profile is None:
        raise ConfigError(_unknown(name, provider if colon else "", profile is None))
    own = any(settings.get(name) for name in ("api_key", "base_url", "headers"))
    if profile.key_name is not None and not own:
        settings["api_key"] = key_from_environment(profile.key_name)
    # By name, because this folder imports httpx: 50 ms that only users of it pay.
    module = import_module("agentcore.providers.openai_chat")
    return cast("Model", module.OpenAIChatModel(model, provider=provider, **settings))


def _embedded(name: str, settings: dict[str, Any]) -> Model:
    module = import_module("agentcore.providers.embedded")
    if name != module.DEFAULT_NAME:
        raise ConfigError(
            f"the one embedded model with a name is 'local:{module.DEFAULT_NAME}', not "
            f"'local:{name}'; for a GGUF file of your own use EmbeddedModel(path)"
        )
    return cast("Model", module.EmbeddedModel(**settings))


def _unknown(name: str, provider: str, unknown: bool) -> str:
    if not provider or not unknown:
        return f"a model is named like 'openai:gpt-5-mini', not {name!r}"
    import difflib  # noqa: PLC0415 - a millisecond of import time for this error only

    close = difflib.get_close_matches(provider, KNOWN, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return (
        f"unknown provider {provider!r} in {name!r}.{hint} Known: {', '.join(KNOWN)}. "
        "For another server that speaks OpenAI's format use OpenAIChatModel with "
        "base_url="
    )
