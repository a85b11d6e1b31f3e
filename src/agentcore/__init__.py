"""agentcore: an embeddable agent runtime.

    agentcore           the everyday names below, each loaded when it is first used
    agentcore.types     the vocabulary: messages, records, events, results
    agentcore.protocols the contracts; nothing to inherit
    agentcore.tools     tools made of functions
    agentcore.executors where tools run
    agentcore.providers models
    agentcore.stores    where sessions are kept
    agentcore.policies  retry, budgets, permissions
    agentcore.testing   scripted models, fakes, contract suites

Importing this package runs nothing and loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcore.agent import ToolLoopAgent as ToolLoopAgent
    from agentcore.errors import AgentCoreError as AgentCoreError
    from agentcore.errors import AlreadySettled as AlreadySettled
    from agentcore.errors import ConfigError as ConfigError
    from agentcore.errors import ProviderError as ProviderError
    from agentcore.errors import RunCancelled as RunCancelled
    from agentcore.errors import SkillError as SkillError
    from agentcore.errors import StoreError as StoreError
    from agentcore.errors import ToolError as ToolError
    from agentcore.policies.retry import RetryPolicy as RetryPolicy
    from agentcore.protocols.agent import Agent as Agent
    from agentcore.protocols.agent import Run as Run
    from agentcore.protocols.agent import Sessions as Sessions
    from agentcore.protocols.model import Model as Model
    from agentcore.protocols.policy import BudgetPolicy as BudgetPolicy
    from agentcore.protocols.policy import PermissionPolicy as PermissionPolicy
    from agentcore.protocols.sink import EventSink as EventSink
    from agentcore.protocols.skills import SkillRegistry as SkillRegistry
    from agentcore.protocols.store import RunStore as RunStore
    from agentcore.protocols.tools import Tool as Tool
    from agentcore.protocols.tools import ToolExecutor as ToolExecutor
    from agentcore.stores.jsonl import JsonlRunStore as JsonlRunStore
    from agentcore.stores.memory import MemoryRunStore as MemoryRunStore
    from agentcore.stores.sqlite import SqliteRunStore as SqliteRunStore
    from agentcore.tools.function import tool as tool
    from agentcore.tools.toolset import Toolset as Toolset
    from agentcore.types.actor import Actor as Actor
    from agentcore.types.content import AudioPart as AudioPart
    from agentcore.types.content import FilePart as FilePart
    from agentcore.types.content import ImagePart as ImagePart
    from agentcore.types.content import TextPart as TextPart
    from agentcore.types.context import ToolContext as ToolContext
    from agentcore.types.events import Committed as Committed
    from agentcore.types.events import RetryScheduled as RetryScheduled
    from agentcore.types.events import RunWarning as RunWarning
    from agentcore.types.events import TextDelta as TextDelta
    from agentcore.types.events import ThinkingDelta as ThinkingDelta
    from agentcore.types.events import ToolProgress as ToolProgress
    from agentcore.types.messages import AssistantMessage as AssistantMessage
    from agentcore.types.messages import Message as Message
    from agentcore.types.messages import SystemMessage as SystemMessage
    from agentcore.types.messages import ToolMessage as ToolMessage
    from agentcore.types.messages import UserMessage as UserMessage
    from agentcore.types.options import UNSET as UNSET
    from agentcore.types.options import Options as Options
    from agentcore.types.policy import Allow as Allow
    from agentcore.types.policy import Answer as Answer
    from agentcore.types.policy import ApprovalRequest as ApprovalRequest
    from agentcore.types.policy import Approve as Approve
    from agentcore.types.policy import Ask as Ask
    from agentcore.types.policy import Budget as Budget
    from agentcore.types.policy import Deny as Deny
    from agentcore.types.policy import DidNotHappen as DidNotHappen
    from agentcore.types.policy import Forbid as Forbid
    from agentcore.types.policy import Happened as Happened
    from agentcore.types.policy import LeaveUnknown as LeaveUnknown
    from agentcore.types.policy import Question as Question
    from agentcore.types.policy import UnknownCall as UnknownCall
    from agentcore.types.runs import Check as Check
    from agentcore.types.runs import CheckResult as CheckResult
    from agentcore.types.runs import RunResult as RunResult
    from agentcore.types.runs import Stop as Stop
    from agentcore.types.tools import ToolCall as ToolCall
    from agentcore.types.tools import ToolResult as ToolResult
    from agentcore.types.tools import ToolSpec as ToolSpec
    from agentcore.types.usage import RunUsage as RunUsage
    from agentcore.types.usage import Usage as Usage

_LAZY = {
    "Actor": "agentcore.types.actor",
    "Agent": "agentcore.protocols.agent",
    "AgentCoreError": "agentcore.errors",
    "Allow": "agentcore.types.policy",
    "AlreadySettled": "agentcore.errors",
    "Answer": "agentcore.types.policy",
    "ApprovalRequest": "agentcore.types.policy",
    "Approve": "agentcore.types.policy",
    "Ask": "agentcore.types.policy",
    "AssistantMessage": "agentcore.types.messages",
    "AudioPart": "agentcore.types.content",
    "Budget": "agentcore.types.policy",
    "BudgetPolicy": "agentcore.protocols.policy",
    "Check": "agentcore.types.runs",
    "CheckResult": "agentcore.types.runs",
    "Committed": "agentcore.types.events",
    "ConfigError": "agentcore.errors",
    "Deny": "agentcore.types.policy",
    "DidNotHappen": "agentcore.types.policy",
    "EventSink": "agentcore.protocols.sink",
    "FilePart": "agentcore.types.content",
    "Forbid": "agentcore.types.policy",
    "Happened": "agentcore.types.policy",
    "ImagePart": "agentcore.types.content",
    "JsonlRunStore": "agentcore.stores.jsonl",
    "LeaveUnknown": "agentcore.types.policy",
    "MemoryRunStore": "agentcore.stores.memory",
    "Message": "agentcore.types.messages",
    "Model": "agentcore.protocols.model",
    "Options": "agentcore.types.options",
    "PermissionPolicy": "agentcore.protocols.policy",
    "ProviderError": "agentcore.errors",
    "Question": "agentcore.types.policy",
    "RetryPolicy": "agentcore.policies.retry",
    "RetryScheduled": "agentcore.types.events",
    "Run": "agentcore.protocols.agent",
    "RunCancelled": "agentcore.errors",
    "RunResult": "agentcore.types.runs",
    "RunStore": "agentcore.protocols.store",
    "RunUsage": "agentcore.types.usage",
    "RunWarning": "agentcore.types.events",
    "Sessions": "agentcore.protocols.agent",
    "SkillError": "agentcore.errors",
    "SkillRegistry": "agentcore.protocols.skills",
    "SqliteRunStore": "agentcore.stores.sqlite",
    "Stop": "agentcore.types.runs",
    "StoreError": "agentcore.errors",
    "SystemMessage": "agentcore.types.messages",
    "TextDelta": "agentcore.types.events",
    "TextPart": "agentcore.types.content",
    "ThinkingDelta": "agentcore.types.events",
    "Tool": "agentcore.protocols.tools",
    "ToolCall": "agentcore.types.tools",
    "ToolContext": "agentcore.types.context",
    "ToolError": "agentcore.errors",
    "ToolExecutor": "agentcore.protocols.tools",
    "ToolLoopAgent": "agentcore.agent",
    "ToolMessage": "agentcore.types.messages",
    "ToolProgress": "agentcore.types.events",
    "ToolResult": "agentcore.types.tools",
    "ToolSpec": "agentcore.types.tools",
    "Toolset": "agentcore.tools.toolset",
    "UNSET": "agentcore.types.options",
    "UnknownCall": "agentcore.types.policy",
    "Usage": "agentcore.types.usage",
    "UserMessage": "agentcore.types.messages",
    "tool": "agentcore.tools.function",
}

__all__ = [
    "UNSET",
    "Actor",
    "Agent",
    "AgentCoreError",
    "Allow",
    "AlreadySettled",
    "Answer",
    "ApprovalRequest",
    "Approve",
    "Ask",
    "AssistantMessage",
    "AudioPart",
    "Budget",
    "BudgetPolicy",
    "Check",
    "CheckResult",
    "Committed",
    "ConfigError",
    "Deny",
    "DidNotHappen",
    "EventSink",
    "FilePart",
    "Forbid",
    "Happened",
    "ImagePart",
    "JsonlRunStore",
    "LeaveUnknown",
    "MemoryRunStore",
    "Message",
    "Model",
    "Options",
    "PermissionPolicy",
    "ProviderError",
    "Question",
    "RetryPolicy",
    "RetryScheduled",
    "Run",
    "RunCancelled",
    "RunResult",
    "RunStore",
    "RunUsage",
    "RunWarning",
    "Sessions",
    "SkillError",
    "SkillRegistry",
    "SqliteRunStore",
    "Stop",
    "StoreError",
    "SystemMessage",
    "TextDelta",
    "TextPart",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolExecutor",
    "ToolLoopAgent",
    "ToolMessage",
    "ToolProgress",
    "ToolResult",
    "ToolSpec",
    "Toolset",
    "UnknownCall",
    "Usage",
    "UserMessage",
    "tool",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("_"))})
