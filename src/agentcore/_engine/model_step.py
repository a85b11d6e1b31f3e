"""One model request: intent, stream, outcome; and the wait before another attempt."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import anyio.lowlevel

from agentcore._base.describe import error_text, message_of
from agentcore._base.surrogates import clean
from agentcore._engine.attachments import Attachments
from agentcore._engine.inbox import fold_cancel, fold_inbox, place_steers
from agentcore._engine.owner import Owner
from agentcore._engine.planning import stage_unstarted
from agentcore._engine.replies import Partial, checked, cleaned, status_of
from agentcore._engine.tool_step import ToolStep
from agentcore.errors import AuthFailed, BrokenStream, ContextOverflow, ProviderError
from agentcore.journal.prompt import prompt_digest
from agentcore.journal.state import RunState
from agentcore.types import records as r
from agentcore.types.content import AssistantPart, TextPart, ThinkingPart, ToolCallPart
from agentcore.types.events import RetryScheduled
from agentcore.types.json import EMPTY, JsonObject, JsonValue
from agentcore.types.messages import Message, host_note
from agentcore.types.model import (
    ModelRequest,
    ModelResponse,
    ResponseDone,
    TextDelta,
    ThinkingDelta,
    ToolInputReady,
)
from agentcore.types.options import NamedTool, Options
from agentcore.types.policy import Charge, Exhausted
from agentcore.types.runs import Stop

_ONE_REQUEST: Final = Charge(requests=1)
_DELTAS_PER_YIELD: Final = 64
"""The event loop gets a turn at least this often while deltas are at hand."""


class ModelStep:
    """Asks the model, on behalf of one owner."""

    __slots__ = (
        "_attachments",
        "_failure",
        "_first_options",
        "_later_options",
        "_nudge",
        "_owner",
        "_seen",
        "_text",
        "_tools",
    )

    def __init__(self, owner: Owner, tools: ToolStep) -> None:
        self._owner = owner
        self._tools = tools
        self._attachments = Attachments(owner.writer.store)
        self._nudge = ""
        self._failure: ProviderError | None = None
        self._text: list[str] = []
        self._seen: list[ThinkingDelta | ToolInputReady] | None = None
        """What else had streamed, for the record of a reply that is cut short."""
        self._first_options = owner.yours.options.over(owner.setup.options)
        self._later_options = _unforced(self._first_options)

    async def run(self, nudge: str) -> Stop | None:
        """One attempt. Returns why the run must stop instead, or `None`."""
        owner = self._owner
        if owner.budget is not None:
            verdict = owner.budget.reserve(_ONE_REQUEST, owner.view)
            if type(verdict) is Exhausted:
                return Stop("budget", verdict.limit, verdict.detail)
        self._nudge = nudge
        request = self._intend(nudge)
        await owner.writer.commit()
        if owner.writer.has_mail:
            await fold_cancel(owner.writer)
        if not owner.may_start_effects():
            self.settle(owner.run, sent=False)
            return None
        try:
            first = owner.history_start
            end = first + len(request.messages) - bool(nudge)
            if self._attachments.needed(request.messages, first, end):
                messages = await self._attachments.fill(request.messages, first)
                request = dataclasses.replace(request, messages=messages)
            response = await self._stream(request)
        except ProviderError as error:
            self._failure = error
            self._fail(
                request, f"{_label(error)}: {message_of(error)}", error.retryable
            )
        except Exception as error:  # noqa: BLE001 - a model object may raise anything
            # Not an outage but a defect, of the model object or of a test's script.
            self._fail(request, f"InternalError: {error_text(error)}", retryable=False)
        else:
            owner.in_effect = False
            self._record(request, response)
        owner.in_effect = False
        return None

    async def retry(self) -> Stop | None:
        """Wait as the policy says, then make the next attempt."""
        owner = self._owner
        run = owner.run
        failed = run.attempts
        outcome = run.outcome
        error = self._failure
        self._failure = None
        after = error.retry_after if error is not None else None
        delay = owner.setup.retry.delay(after, failed)
        if delay is None or outcome is None:
            detail = outcome.error if outcome is not None else ""
            return Stop("failed", "model", detail)
        event = RetryScheduled(
            failed, owner.facts.max_attempts, delay, outcome.error or outcome.status
        )
        owner.writer.feed.delta(event)
        await owner.writer.commit()
        if delay > 0 and owner.may_start_effects():
            owner.in_effect = True
            await owner.setup.clock.sleep(delay)
            owner.in_effect = False
        if owner.scope.cancel_called:
            return None
        if owner.writer.has_mail:
            await fold_inbox(owner.writer)
        if not owner.may_start_effects():
            return None
        place_steers(owner.writer)
        return await self.run(self._nudge)

    def settle(self, run: RunState, *, sent: bool = True) -> None:
        """The request in flight was stopped: keep what had arrived."""
        intent = run.request
        if intent is None:
            return
        content: list[AssistantPart] = []
        thinking = "".join(d.text for d in self._seen or () if type(d) is ThinkingDelta)
        if thinking:
            content.append(ThinkingPart(thinking))
        if self._text:
            content.append(TextPart("".join(self._text)))
        new_id = self._owner.setup.ids.new
        calls = [
            ToolCallPart(d.name, d.arguments, new_id("call"), d.provider_call_id)
            for d in self._seen or ()
            if type(d) is ToolInputReady
        ]
        self._forget_stream()
        self._stage_outcome(
            r.ModelOutcome(
                intent.req_id, intent.attempt, "aborted", (*content, *calls)
            ),
            sent=sent,
        )
        stage_unstarted(self._owner, intent.req_id, calls, "the reply was stopped")

    # --- before -------------------------------------------------------------------

    def _intend(self, nudge: str) -> ModelRequest:
        owner = self._owner
        run, writer, setup = owner.run, owner.writer, owner.setup
        last = run.outcome
        attempt = run.attempts + 1
        if attempt > 1 and last is not None:
            req_id = last.req_id
        else:
            req_id = setup.ids.new("req")
        first = run.totals.requests == run.attempts  # no attempt has succeeded yet
        messages: Sequence[Message] = writer.projector.window(owner.history_start)
        if nudge:
            messages = [*messages, host_note(nudge)]
        toolbox = owner.toolbox
        request = ModelRequest(
            messages,
            setup.instructions,
            toolbox.specs,
            self._first_options if first else self._later_options,
            setup.output.schema if setup.output is not None else None,
            owner.state.session_id,
            req_id,
            attempt,
        )
        prepared = self._prepared(nudge)
        # The reservation has the request's own id: one of each, never apart.
        writer.stage(r.UsageReserved(req_id, _ONE_REQUEST))
        writer.stage(
            r.ModelIntent(
                req_id,
                attempt,
                owner.state.seq,
                self._digest(prepared),
                setup.model.id,
                "main",
                EMPTY,
                prepared,
                toolbox.digest,
                req_id,
            )
        )
        return request

    def _prepared(self, nudge: str) -> JsonObject | None:
        """What makes this request differ from the plain projection."""
        prepared: dict[str, JsonValue] = {}
        if nudge:
            prepared["nudge"] = nudge
        if self._owner.history_start:
            prepared["history_start"] = self._owner.history_start
        return prepared or None

    def _digest(self, prepared: JsonObject | None) -> str:
        writer = self._owner.writer
        if not writer.kept:
            return ""  # nobody could prove it
        history = writer.projector.digest
        return prompt_digest(history, self._owner.toolbox.digest, prepared)

    # --- during -------------------------------------------------------------------

    async def _stream(self, request: ModelRequest) -> ModelResponse:
        owner = self._owner
        feed = owner.writer.feed
        self._forget_stream()
        text = self._text
        response: ModelResponse | None = None
        seen = 0
        partial = Partial(owner, request)
        owner.in_effect = True
        async with owner.setup.model.stream(request) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    text.append(delta.text)
                elif isinstance(delta, ResponseDone):
                    response = delta.response
                    continue
                elif isinstance(delta, (ThinkingDelta, ToolInputReady)):
                    self._note(delta)
                for reader in feed.readers:
                    reader.delta(delta)
                seen += 1
                if not seen % _DELTAS_PER_YIELD:
                    await anyio.lowlevel.checkpoint()
                    await partial.keep(text)
        if response is None:
            raise BrokenStream(
                f"{owner.setup.model.id}: the stream ended without its response",
                in_stream=seen > 0,
            )
        return checked(response, owner.setup.model.id)

    def _note(self, delta: ThinkingDelta | ToolInputReady) -> None:
        if self._seen is None:
            self._seen = []
        self._seen.append(delta)

    def _forget_stream(self) -> None:
        self._text = []
        self._seen = None

    # --- after --------------------------------------------------------------------

    def _fail(self, request: ModelRequest, error: str, retryable: bool) -> None:
        text = "".join(self._text)
        content = (TextPart(text),) if text else ()
        self._forget_stream()
        self._stage_outcome(
            r.ModelOutcome(
                request.request_id,
                request.attempt,
                "error",
                content,
                error=error,
                retryable=retryable,
            )
        )

    def _record(self, request: ModelRequest, response: ModelResponse) -> None:
        """Outcome, usage, planned calls and the first intents: one append (W4)."""
        self._forget_stream()
        content, calls = self._with_ids(response.content)
        status, error = status_of(response, bool(calls))
        if status == "error":
            # Calls of a reply that does not count were never asked for.
            content = tuple(p for p in content if type(p) is not ToolCallPart)
        req_id = request.request_id
        outcome = r.ModelOutcome(
            req_id,
            request.attempt,
            status,
            content,
            response.finish,
            response.usage,
            response.model,
            error,
            False,
            response.request_id,
        )
        self._stage_outcome(outcome)
        if calls and status in ("ok", "length"):
            self._tools.plan(req_id, calls, truncated=status == "length")
        elif status == "ok":
            self._check_output(req_id, response)

    def _stage_outcome(self, outcome: r.ModelOutcome, *, sent: bool = True) -> None:
        writer, usage = self._owner.writer, outcome.usage
        writer.stage(outcome)
        estimated = sent and usage is None
        writer.stage(
            r.UsageRecorded(outcome.req_id, usage, estimated, released=not sent)
        )

    def _with_ids(
        self, content: tuple[AssistantPart, ...]
    ) -> tuple[tuple[AssistantPart, ...], list[ToolCallPart]]:
        """The content with a host id on every call; and the calls."""
        calls: list[ToolCallPart] = []
        parts: list[AssistantPart] = []
        new_id = self._owner.setup.ids.new
        for part in content:
            if type(part) is ToolCallPart:
                call = ToolCallPart(
                    clean(part.name),
                    clean(part.arguments),
                    new_id("call"),
                    clean(part.provider_call_id),
                )
                calls.append(call)
                parts.append(call)
            else:
                parts.append(cleaned(part))
        return tuple(parts), calls

    def _check_output(self, req_id: str, response: ModelResponse) -> None:
        """A text answer where an `output_type` is wanted."""
        output = self._owner.setup.output
        if output is None:
            return
        if output.tool is not None:
            errors = f"answer by calling the tool {output.tool.name!r}"
        else:
            # Of a continued reply, the last part alone says nothing.
            whole = self._owner.writer.projector.messages[-1]
            errors = output.check(getattr(whole, "text", response.text))
        if errors:
            rounds = self._owner.run.output_rejections + 1
            self._owner.writer.stage(r.OutputRejected(req_id, errors, rounds))


def _label(error: ProviderError) -> str:
    """The class a stop's reason is read from: the known one, not a subclass of it."""
    known = (c for c in (AuthFailed, ContextOverflow) if isinstance(error, c))
    return next(known, type(error)).__name__


def _unforced(options: Options) -> Options:
    """A forced tool choice holds for a run's first request only (settled 45)."""
    choice = options.tool_choice
    if choice != "required" and not isinstance(choice, NamedTool):
        return options
    return dataclasses.replace(options, tool_choice="auto")
