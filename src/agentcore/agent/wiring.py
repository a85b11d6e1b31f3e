"""Puts an agent's parts together once, at its first run."""

from __future__ import annotations

import os
from typing import Any

from agentcore._base.describe import type_name
from agentcore._base.ids import RandomIds
from agentcore._base.surrogates import clean
from agentcore._engine.deps import Place, Setup
from agentcore.agent.lifetimes import Lifetimes
from agentcore.agent.options import input_item
from agentcore.agent.output import TypedOutput
from agentcore.context.projection import HistoryProjector
from agentcore.errors import ConfigError
from agentcore.executors.local import LocalToolExecutor
from agentcore.executors.router import RouterExecutor
from agentcore.policies.budgets import RunLimits
from agentcore.protocols.model import Model
from agentcore.protocols.store import RunStore, Watch
from agentcore.protocols.tools import ChecksArguments, Tool, ToolExecutor
from agentcore.providers import resolve_model
from agentcore.stores.memory import MemoryRunStore
from agentcore.stores.unkept import UnkeptStore


class Wiring:
    """What all runs of an agent share."""

    __slots__ = (
        "_clock",
        "_locals",
        "_store",
        "lifetimes",
        "live",
        "local",
        "private",
        "setup",
        "shared",
    )

    def __init__(self, agent: Any, tools: tuple[Tool, ...], model: Model) -> None:
        self.local: LocalToolExecutor = LocalToolExecutor(tools)
        self._locals = [
            known
            for known in (self.local, agent.executor)
            if isinstance(known, LocalToolExecutor)
        ]
        executor = _executor(self.local, tools, agent.executor)
        self._store: RunStore | None = agent.store
        self._clock = agent.clock
        self.lifetimes: Lifetimes = Lifetimes((executor, model, self._store))
        self.live: set[Any] = set()
        """The handles that are at work."""
        self.private: Place = Place(
            self._private_store, self.lifetimes, input_item, self.live, private=True
        )
        self.shared: Place = Place(
            self._own_store,
            self.lifetimes,
            input_item,
            self.live,
            watch=isinstance(self._store, Watch),
        )
        self.setup: Setup = Setup(
            model=model,
            executor=executor,
            check_arguments=(
                executor.check if isinstance(executor, ChecksArguments) else None
            ),
            projector=HistoryProjector,
            permissions=agent.permissions,
            budget=RunLimits,
            retry=agent.retry,
            clock=agent.clock,
            ids=agent.ids,
            instructions=agent.instructions,
            options=agent.options,
            limits=agent.budget,
            output=_output(agent, model),
            output_retries=agent.output_retries,
            asks=agent.asks,
            ask_timeout=agent.ask_timeout,
            on_unknown=agent.on_unknown,
            checks=tuple(agent.checks),
            repair_rounds=agent.repair_rounds,
            sinks=tuple(agent.sinks),
            owner=f"{os.getpid()}:{RandomIds().new('owner')}",
        )

    async def leave(self) -> None:
        """Close the parts after the last user, and leave no thread without work."""
        await self.lifetimes.leave()
        for executor in self._locals:
            executor.end_idle_workers()

    def _own_store(self, kept: bool) -> RunStore:
        """The agent's store; it keeps everything, whoever reads."""
        if self._store is None:
            raise ConfigError("the agent has no store")
        return self._store

    def _private_store(self, kept: bool) -> RunStore:
        """A store for one run: nobody else will ever see it."""
        return MemoryRunStore(clock=self._clock) if kept else UnkeptStore()


def _executor(
    local: LocalToolExecutor, tools: tuple[Tool, ...], remote: ToolExecutor | None
) -> ToolExecutor:
    if remote is None:
        return local
    return RouterExecutor(local, remote) if tools else remote


def _output(agent: Any, model: Model) -> TypedOutput | None:
    if agent.output_type is str:
        return None
    native = agent.output_mode == "native"
    if native and not model.capabilities.json_schema:
        raise ConfigError(
            f"output_mode='native' needs a model that follows a JSON Schema; "
            f"{model.id} does not say so. Use output_mode='tool'"
        )
    return TypedOutput(agent.output_type, native=native)


def checked_model(model: Any) -> Model:
    """A model object, or the model a string names.

    Raises:
        ConfigError: nobody knows the string, or the object is no model.
    """
    if isinstance(model, str):
        if clean(model) != model:
            raise ConfigError(f"the model name holds half a character: {model!r}")
        return resolve_model(model)
    if isinstance(model, type):
        raise ConfigError(
            f"model must be an object, not the class {model.__name__}: "
            f"{model.__name__}(...)"
        )
    fits = callable(getattr(model, "stream", None)) and hasattr(model, "id")
    if not fits or isinstance(model, type):
        raise ConfigError(
            "model must be a name like 'openai:gpt-5-mini' or an object with the Model "
            f"protocol (id, capabilities, stream), not {type_name(model)}"
        )
    known: Model = model
    return known
