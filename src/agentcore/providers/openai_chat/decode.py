"""From the chunks of a chat completions stream to deltas and a response. Pure: no I/O.

What compatible servers really send is wider than the format: reasoning under two names,
usage before, with or after the last chunk or inside the choice, a `message` instead of
a `delta`, null fields, an error object after a status of 200. Unknown fields and
unknown reasons to finish are no errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json

from agentcore._base.surrogates import without_surrogates
from agentcore.errors import BadResponse, BrokenStream
from agentcore.providers._toolcalls import ToolCallAssembler
from agentcore.types.content import AssistantPart, TextPart, ThinkingPart
from agentcore.types.json import EMPTY, JsonObject
from agentcore.types.model import (
    Finish,
    ModelDelta,
    ModelResponse,
    TextDelta,
    ThinkingDelta,
)
from agentcore.types.usage import Usage

_FINISH: Final[Mapping[str, Finish]] = {
    "stop": "stop",
    "eos": "stop",  # together
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # mistral
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # zhipu
}

_NEVER: Final = b"\0"
"""No JSON begins with it."""

_MISSES: Final = 8
"""So many chunks in a row that were all different: the short way does not pay."""


class ErrorObject(Exception):  # noqa: N818 - not an error of ours: one that was read
    """The stream holds an error object; the client knows whose it is and maps it."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__("error object in the stream")
        self.body = body


class Decoder:
    """Reads one reply: `feed` it the data of each event, then call `finish`."""

    __slots__ = (
        "_behind",
        "_calls",
        "_finish_word",
        "_is_thinking",
        "_misses",
        "_model",
        "_parts",
        "_pieces",
        "_prefix",
        "_refused",
        "_suffix",
        "_usage",
        "complete",
        "reply_id",
        "started",
    )

    def __init__(self) -> None:
        self.started: bool = False
        """Output has arrived."""
        self.complete: bool = False
        """The terminal marker has arrived."""
        self.reply_id: str | None = None
        """The vendor's id of the reply, from its first chunk."""
        self._calls: ToolCallAssembler | None = None
        self._finish_word: str | None = None
        self._is_thinking = False
        self._model: str | None = None
        self._parts: list[AssistantPart] = []
        self._pieces: list[str] = []
        self._refused = False
        self._usage: Usage | None = None
        # What stands around the text of a plain text chunk, see `_learn`.
        self._prefix = _NEVER
        self._suffix = _NEVER
        self._behind = b""
        self._misses = 0

    @property
    def may_end(self) -> bool:
        """Nothing more is needed: the reason to finish and the usage are known."""
        return self._finish_word is not None and self._usage is not None

    def feed(self, data: bytes) -> list[ModelDelta]:
        """The deltas of one event.

        Raises:
            BadResponse: the data is no JSON object. Retryable: the next answer is
                another one.
            ErrorObject: it is the vendor's error.
        """
        if (
            data.startswith(self._prefix)
            and data.endswith(self._suffix)
            and (text := self._text_between(data))
        ):
            self._pieces.append(text)
            return [TextDelta(text)]
        if data.startswith(b"[DONE]"):
            self.complete = True
            return []
        chunk = self._parse(data)
        out: list[ModelDelta] = []
        self._read(chunk, out)
        if len(out) == 1 and type(out[0]) is TextDelta and self._misses < _MISSES:
            self._learn(data, out[0].text)
        if out:
            self.started = True
        return out

    def finish(
        self,
        out: list[ModelDelta],
        *,
        request_id: str | None = None,
        rate_limits: JsonObject = EMPTY,
    ) -> ModelResponse:
        """The whole response; the last deltas of its calls are appended to `out`.

        Raises:
            BrokenStream: the stream ended before its terminal marker.
            BadResponse: a tool call has no name.
        """
        word = self._finish_word
        calls = self._calls
        if word is None and not (self.complete and self.started):
            raise BrokenStream(
                "the stream ended before its end: no reason to finish came",
                in_stream=self.started,
            )
        self._close_part()
        parts = tuple(self._parts)
        if calls is not None:
            parts += calls.finish(out)
        finish = _FINISH.get(word or "", "other")
        if calls is not None and finish in ("stop", "other"):
            finish = "tool_calls"  # some servers say "stop" after a call
        if self._refused and finish == "stop":
            finish = "content_filter"
        return ModelResponse(
            parts,
            finish,
            self._usage,
            self._model,
            request_id or self.reply_id,
            rate_limits or EMPTY,
            {"finish_reason": word} if word is not None and word != finish else EMPTY,
        )

    # --- reading ------------------------------------------------------------------

    def _parse(self, data: bytes) -> dict[str, Any]:
        try:
            chunk = _load(data)
        except (ValueError, RecursionError) as error:
            raise BadResponse(
                f"a chunk of the stream is no JSON: {error}",
                in_stream=self.started,
                retryable=True,
            ) from error
        if not isinstance(chunk, dict):
            raise BadResponse(
                "a chunk of the stream is no JSON object",
                in_stream=self.started,
                retryable=True,
            )
        if chunk.get("error") or chunk.get("object") == "error":
            raise ErrorObject(chunk)
        return chunk

    # Types are compared, not tested by `isinstance` against `Mapping`: what `from_json`
    # makes are plain dicts and lists, and this runs for every delta.

    def _read(self, chunk: dict[str, Any], out: list[ModelDelta]) -> None:
        if self._model is None:
            self._read_head(chunk)
        usage = chunk.get("usage")
        choices = chunk.get("choices")
        if type(choices) is list:
            for choice in choices:
                # Only the first answer; more are only there if a host asked for them.
                if type(choice) is dict and not choice.get("index"):
                    self._read_choice(choice, out)
                    usage = usage or choice.get("usage")  # moonshot
        if usage is None and "x_groq" in chunk:
            usage = _object(chunk["x_groq"]).get("usage")
        if type(usage) is dict:
            self._usage = read_usage(usage)

    def _read_head(self, chunk: dict[str, Any]) -> None:
        model, reply_id = chunk.get("model"), chunk.get("id")
        if isinstance(model, str) and model:
            self._model = model
        if isinstance(reply_id, str) and reply_id:
            self.reply_id = reply_id

    def _read_choice(self, choice: dict[str, Any], out: list[ModelDelta]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if type(delta) is dict:
            thinking = delta.get("reasoning_content") or delta.get("reasoning")
            if thinking:
                self._emit(thinking, out, thinking=True)
            if content := delta.get("content"):
                self._emit(content, out, thinking=False)
            if refusal := delta.get("refusal"):
                self._refused = True
                self._emit(refusal, out, thinking=False)
            if calls := delta.get("tool_calls"):
                self._read_calls(calls, out)
        if word := choice.get("finish_reason"):
            self._finish_word = str(word)

    def _read_calls(self, fragments: object, out: list[ModelDelta]) -> None:
        if not isinstance(fragments, list):
            return
        if self._calls is None:
            self._calls = ToolCallAssembler()
        for fragment in fragments:
            if isinstance(fragment, dict):
                self._calls.add(fragment, out)
                self.started = True  # the model was seen to act, even without a delta

    def _emit(self, value: object, out: list[ModelDelta], *, thinking: bool) -> None:
        if isinstance(value, str):
            if self._is_thinking is not thinking:
                self._close_part()
                self._is_thinking = thinking
            if value:
                self._pieces.append(value)
                out.append(ThinkingDelta(value) if thinking else TextDelta(value))
        elif isinstance(value, list):  # mistral: a list of typed pieces
            for item in value:
                self._emit_item(item, out, thinking=thinking)

    def _emit_item(
        self, item: object, out: list[ModelDelta], *, thinking: bool
    ) -> None:
        if not isinstance(item, Mapping):
            self._emit(item, out, thinking=thinking)
        elif "thinking" in item:
            self._emit(item["thinking"], out, thinking=True)
        else:
            self._emit(item.get("text"), out, thinking=thinking)

    def _close_part(self) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            self._parts.append(
                ThinkingPart(text) if self._is_thinking else TextPart(text)
            )
            self._pieces = []

    # --- the short way for plain text ---------------------------------------------
    #
    # Nearly all chunks of a stream differ in their text only, and parsing the same
    # envelope again and again is most of what a delta costs. So the bytes around the
    # text of a plain chunk are remembered; where they stand around the next one too,
    # only the JSON string in between is parsed. That is the same as parsing all of it:
    # the beginning leaves a JSON parser inside that string, and what is in between is
    # the inside of one string, or `from_json` refuses it. OpenAI pads its chunks with
    # letters at the very end, so the bytes behind the text may have such a gap.

    def _learn(self, data: bytes, text: str) -> None:
        self._prefix = _NEVER
        self._misses += 1
        start = data.find(b'"content":') + 10
        start += data[start : start + 1] == b" "
        end = data.find(b'"}', start)
        if start < 10 or end < 0 or data.count(b'"content"') != 1:
            return
        if self._calls is not None:
            return  # a piece of a call may stand in the same chunk
        if self._string(data[start : end + 1]) != text:
            return
        behind, mark, padding = data[end:].partition(b',"obfuscation":"')
        if mark and padding.endswith(b'"}') and padding[:-2].isalnum():
            self._behind, self._suffix = behind + mark, b'"}'
        else:
            self._behind, self._suffix = b"", data[end:]
        self._prefix = data[: start + 1]

    def _text_between(self, data: bytes) -> str | None:
        if self._is_thinking:
            return None  # another part begins
        start = len(self._prefix)
        if self._behind:
            end = data.find(self._behind, start)
            gap = end + len(self._behind)
            if end < 0 or not data[gap:-2].isalnum():
                return None
        else:
            # Where both overlap, what is cut out below is no string.
            end = len(data) - len(self._suffix)
        self._misses = 0
        return self._string(data[start - 1 : end + 1])

    @staticmethod
    def _string(quoted: bytes) -> str | None:
        try:
            value = from_json(quoted)
        except ValueError:
            return None
        return value if isinstance(value, str) else None


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """The vendor's count of tokens; what it does not tell is `None`."""
    prompt = _object(usage.get("prompt_tokens_details"))
    completion = _object(usage.get("completion_tokens_details"))
    cached = _first(
        prompt.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),  # deepseek
        usage.get("cached_tokens"),  # moonshot
    )
    cost = usage.get("cost")  # openrouter
    return Usage(
        input_tokens=_first(usage.get("prompt_tokens")),
        output_tokens=_first(usage.get("completion_tokens")),
        cached_input_tokens=cached,
        cache_write_tokens=_first(prompt.get("cache_write_tokens")),
        reasoning_tokens=_first(
            completion.get("reasoning_tokens"), usage.get("reasoning_tokens")
        ),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _load(data: bytes) -> Any:
    try:
        return from_json(data)
    except ValueError:
        # Half a character as an escape is legal JSON that the quick parser refuses.
        if b"\\u" not in data:
            raise
        return without_surrogates(json.loads(data))


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(*values: object) -> int | None:
    return next((v for v in values if type(v) is int and v >= 0), None)
