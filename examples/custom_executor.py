"""An executor of one's own: tool calls run as commands in child processes.

There is nothing to inherit; an object with these four methods is a `ToolExecutor`.
test_custom_executor.py applies the contract suite to it.
"""

import sys
from collections.abc import Mapping, Sequence
from subprocess import PIPE, STDOUT
from typing import Any, Self

import anyio

from agentcore import ToolCall, ToolContext, ToolLoopAgent, ToolResult, ToolSpec
from agentcore.errors import NotFound
from agentcore.testing import ScriptedModel, call


class CommandExecutor:
    """Offers fixed commands of the host; the model can choose one, and change none."""

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self._commands = dict(commands)
        self._specs = [
            ToolSpec(
                name,
                f"Runs the command: {' '.join(command)}",
                {"type": "object", "properties": {}, "additionalProperties": False},
                effects="local",
                uses=frozenset({"exec"}),
            )
            for name, command in self._commands.items()
        ]

    async def __aenter__(self) -> Self:
        return self  # it keeps nothing open

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def list_tools(
        self, context: ToolContext[Any] | None = None
    ) -> Sequence[ToolSpec]:
        return self._specs

    async def execute(self, call: ToolCall, context: ToolContext[Any]) -> ToolResult:
        command = self._commands.get(call.name)
        if command is None:
            raise NotFound(f"there is no command {call.name!r}")
        # Cancelling, as at the deadline of the call, kills the process.
        done = await anyio.run_process(command, stdout=PIPE, stderr=STDOUT, check=False)
        output = done.stdout.decode(errors="replace").strip()
        if done.returncode:
            return ToolResult.failed(f"exit code {done.returncode}: {output}")
        return ToolResult.of_text(output)


if __name__ == "__main__":
    executor = CommandExecutor({"python_version": [sys.executable, "--version"]})
    model = ScriptedModel([call("python_version"), "That is the version."])
    result = ToolLoopAgent(model, executor=executor).run_sync("Which Python is this?")
    print(result.tool_calls[0].text)
    print(result.output)
