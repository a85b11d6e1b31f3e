"""A model by name, its vendor's profile, and where its key comes from."""

import subprocess
import sys

import pytest

from agentcore.errors import AuthFailed, ConfigError
from agentcore.providers import key_from_environment, resolve_model
from agentcore.providers._keys import current_headers, current_key
from agentcore.providers._profiles import KNOWN, PROFILES, find_profile, profile_of
from agentcore.providers.openai_chat import HttpTimeout, OpenAIChatModel
from agentcore.types.messages import user_text
from agentcore.types.model import ModelCapabilities, ModelRequest

REQUEST = ModelRequest([user_text("hi")])


@pytest.mark.parametrize("name", KNOWN)
def test_every_vendor_makes_a_model_without_a_key_at_hand(name: str) -> None:
    model = resolve_model(f"{name}:some/model:free")
    assert model.id == f"{name}:some/model:free"
    profile = find_profile(name)
    assert profile is not None
    assert model.capabilities == profile.capabilities


def test_every_vendor_far_away_names_its_key_and_is_reached_by_tls() -> None:
    for profile in PROFILES.values():
        far = profile.base_url.startswith("https://")
        assert far == (profile.key_name is not None)
        assert far or profile.base_url.startswith("http://127.0.0.1:")


def test_an_unknown_vendor_is_refused_with_what_was_meant() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'openai'") as caught:
        resolve_model("opena1:gpt-5-mini")
    assert "Known: openai, deepseek" in str(caught.value)


def test_an_unknown_vendor_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model("xyzzy:gpt-5-mini")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "gpt-5-mini", "openai:", ":x", "openai"])
def test_a_string_that_is_no_vendor_and_model_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        resolve_model(name)


def test_a_vendor_the_table_lacks_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="pass base_url="):
        OpenAIChatModel("m", provider="mine")
    model = OpenAIChatModel("m", provider="mine", base_url="http://127.0.0.1:1/v1")
    assert model.id == "mine:m"
    profile = profile_of("mine", "http://127.0.0.1:1/v1")
    assert profile is not None
    assert profile.key_name is None


def test_the_host_knows_better_what_a_model_takes() -> None:
    mine = ModelCapabilities(images=True, context_window=8192)
    assert resolve_model("deepseek:x", capabilities=mine).capabilities is mine


@pytest.mark.parametrize(
    "url", ["", "api.example/v1", "ftp://x", "http://", "http://a:b"]
)
def test_an_address_that_is_none_is_refused_at_construction(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        OpenAIChatModel("m", base_url=url)


def test_a_model_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="model must be"):
        OpenAIChatModel("")


def test_patience_is_a_number_or_both_numbers() -> None:
    OpenAIChatModel("m", http_timeout=5)
    OpenAIChatModel("m", http_timeout=HttpTimeout(connect=1, read=5))
    assert repr(OpenAIChatModel("m")) == "OpenAIChatModel('openai:m')"


async def test_a_missing_variable_is_named_before_anything_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        AuthFailed, match=r"variable OPENAI_API_KEY, or pass api_key="
    ) as e:
        async with resolve_model("openai:gpt-5-mini").stream(REQUEST):
            pass
    assert isinstance(e.value, ConfigError)
    assert not e.value.retryable


async def test_a_model_object_without_a_key_says_what_to_pass() -> None:
    with pytest.raises(ConfigError, match=r"key_from_environment\('GROQ_API_KEY'\)"):
        async with OpenAIChatModel("m", provider="groq").stream(REQUEST):
            pass


async def test_the_variable_is_read_when_the_request_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = key_from_environment("MY_TEST_KEY")
    assert repr(key) == "key_from_environment('MY_TEST_KEY')"
    monkeypatch.setenv("MY_TEST_KEY", "one")
    assert await current_key(key) == "one"
    monkeypatch.setenv("MY_TEST_KEY", " two\n")
    assert await current_key(key) == "two"
    monkeypatch.setenv("MY_TEST_KEY", "  ")
    with pytest.raises(ConfigError, match="MY_TEST_KEY"):
        await current_key(key)


async def test_a_key_may_be_a_value_a_function_or_none() -> None:
    async def later() -> str:
        return "c"

    assert await current_key(None) is None
    assert await current_key("a") == "a"
    assert await current_key(lambda: "b") == "b"
    assert await current_key(later) == "c"


@pytest.mark.parametrize("key", ["", "  ", "clé", "a\nb"])
async def test_a_key_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(AuthFailed) as caught:
        await current_key(key)
    assert key.strip() not in str(caught.value) or not key.strip()


async def test_a_function_that_fails_is_named_without_its_words() -> None:
    def fails() -> str:
        raise RuntimeError("token sk-123 expired")

    with pytest.raises(AuthFailed, match=r"api_key= raised RuntimeError") as caught:
        await current_key(fails)
    assert "sk-123" not in str(caught.value)


async def test_headers_are_values_or_asked_for() -> None:
    assert await current_headers(None) == {}
    assert await current_headers({"X-A": "1"}) == {"x-a": "1"}
    assert await current_headers(lambda: {"X-A": "2"}) == {"x-a": "2"}


@pytest.mark.parametrize("headers", [{"x": "a\nb"}, {"x": 1}, {"ü": "a"}])
async def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(AuthFailed, match="header"):
        await current_headers(headers)


async def test_headers_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(AuthFailed, match="no mapping"):
        await current_headers(lambda: None)  # type: ignore[arg-type, return-value]


def test_the_package_loads_no_http_library_before_a_model_is_made() -> None:
    code = (
        "import sys, agentcore.providers; assert 'httpx' not in sys.modules\n"
        "agentcore.providers.resolve_model('openai:m'); assert 'httpx' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
