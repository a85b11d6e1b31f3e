"""What the processes of `test_crash.py` do."""

import subprocess
import sys

from agentcore import ToolLoopAgent
from agentcore.policies.retry import RetryPolicy
from agentcore.testing import CrashCase, ScriptedModel, call
from agentcore.types.policy import LeaveUnknown


def agent(case: CrashCase, *steps: object) -> ToolLoopAgent:
    model = ScriptedModel(list(steps))  # type: ignore[arg-type]  # texts and calls
    return ToolLoopAgent(
        model, tools=case.tools, store=case.store, retry=RetryPolicy(base=0)
    )


async def first(case: CrashCase) -> None:
    await agent(case, [call("rw"), call("idem"), call("par")], "done").run(
        "go", session="s", input_id="i1"
    )


async def again(case: CrashCase) -> None:
    result = await agent(case, "done", "done").run("go", session="s", input_id="i1")
    print(result.stop.status)  # noqa: T201 - the test looks for it


async def decided(case: CrashCase) -> None:
    result = await agent(case).resume("s")
    decisions = {pending.id: LeaveUnknown() for pending in result.pending}
    result = await agent(case, "done").resume("s", decisions=decisions)
    print(result.stop.status)  # noqa: T201 - the test looks for it


async def with_orphan(case: CrashCase) -> None:
    (case.folder / "orphan").write_text(str(_orphan()))
    await first(case)


def _orphan() -> int:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    return subprocess.Popen(command).pid
