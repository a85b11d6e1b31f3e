"""One table of the vendors that speak OpenAI's chat format, and how each differs.

A profile is data: where the vendor is reached, what its models can take, and which of
the format's variants it wants. What only one model of a vendor can do, the host says
with `capabilities=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from agentcore._base.frozen import frozen
from agentcore.types.model import ModelCapabilities


@frozen
class Profile:
    """How one vendor speaks OpenAI's chat format."""

    name: str
    base_url: str
    key_name: str | None = None
    """The environment variable a key usually stands in; `None`: no key is needed."""
    capabilities: ModelCapabilities = ModelCapabilities(json_schema=True, images=True)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    thinking_field: str | None = None
    """The field in which the model's reasoning goes back with a reply that called
    tools; `None`: it does not go back. It is read from either name always."""
    stream_options: bool = True
    """Understands `stream_options.include_usage`."""
    strict_schema: bool = False
    """Understands `strict` of a JSON Schema answer."""
    short_ids: bool = False
    """Tool call ids must be exactly nine letters and digits."""


_THINKS = ModelCapabilities(images=True, thinking=True)

_ALL = (
    Profile(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        ModelCapabilities(json_schema=True, images=True, audio=True, files=True),
        max_tokens_field="max_completion_tokens",
        strict_schema=True,
    ),
    Profile(
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        ModelCapabilities(thinking=True),
        thinking_field="reasoning_content",
    ),
    Profile(
        "qwen",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        _THINKS,
    ),
    Profile(
        "doubao",
        "https://ark.cn-beijing.volces.com/api/v3",
        "ARK_API_KEY",
        _THINKS,
    ),
    Profile(
        "moonshot",
        "https://api.moonshot.cn/v1",
        "MOONSHOT_API_KEY",
        _THINKS,
        thinking_field="reasoning_content",
    ),
    Profile(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        "ZHIPU_API_KEY",
        _THINKS,
        thinking_field="reasoning_content",
    ),
    Profile(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        stream_options=False,  # sends usage with the last chunk, unasked
        strict_schema=True,
        short_ids=True,
    ),
    Profile(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        max_tokens_field="max_completion_tokens",
        strict_schema=True,
    ),
    Profile(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        ModelCapabilities(json_schema=True, images=True, files=True, thinking=True),
        thinking_field="reasoning",
        strict_schema=True,
    ),
    Profile("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    Profile("vllm", "http://127.0.0.1:8000/v1"),
    Profile("lmstudio", "http://127.0.0.1:1234/v1"),
    Profile("llamacpp", "http://127.0.0.1:8080/v1"),
    Profile("ollama", "http://127.0.0.1:11434/v1"),
)

_ALIASES = {"volcengine": "doubao", "dashscope": "qwen", "kimi": "moonshot"}

PROFILES: Final[Mapping[str, Profile]] = {profile.name: profile for profile in _ALL}
"""Every known vendor by name."""

KNOWN: Final[tuple[str, ...]] = (*PROFILES, *_ALIASES)
"""The names a model string may begin with, other names of a vendor included."""


def find_profile(provider: str) -> Profile | None:
    """The vendor of this name or other name, or `None` for an unknown one."""
    return PROFILES.get(_ALIASES.get(provider, provider))


def profile_of(provider: str, base_url: str | None) -> Profile | None:
    """The vendor of this name; for an unknown name with an address, a neutral one."""
    found = find_profile(provider)
    if found is None and base_url is not None:
        return Profile(provider, base_url)
    return found
