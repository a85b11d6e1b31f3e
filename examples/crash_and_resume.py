"""A process is killed in the middle of a payment; the next one does not pay again.

The child is ended with SIGKILL after the money has left and before its tool could say
so. The journal cannot tell which, so the run waits for somebody who looked. Offline.
"""

import signal
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

import anyio

from agentcore import SqliteRunStore, TextPart, ToolLoopAgent, UserMessage, tool
from agentcore.testing import FunctionModel, StepLike, call
from agentcore.types.model import ModelRequest
from agentcore.types.policy import DidNotHappen, Happened, UnknownCall

THIS = str(Path(__file__).resolve())
BANK = Path("bank.txt")  # the outside world: it knows nothing of journals


@tool(effects="external", replay="never")
def pay(invoice: int) -> str:
    """Pay an invoice."""
    with BANK.open("a", encoding="utf-8") as bank:
        bank.write(f"invoice {invoice} paid\n")
    print("money has left", flush=True)
    time.sleep(600)  # the bank takes its time; here the process is killed
    return "paid"


def offline(request: ModelRequest) -> StepLike:
    last = request.messages[-1]
    if len(request.messages) == 1:
        return call("pay", invoice=17)
    return f"I was told: {last.text}" if isinstance(last, UserMessage) else "Hm."


def look(unknown: UnknownCall) -> Happened | DidNotHappen:
    """What a person would do: ask the bank."""
    line = f"invoice {unknown.arguments['invoice']} paid"
    return Happened((TextPart(line),)) if line in BANK.read_text() else DidNotHappen()


async def resume(agent: ToolLoopAgent) -> None:
    result = await agent.resume("s1")
    print("stop     ", result.stop.status, result.stop.reason)
    (unknown,) = [p for p in result.pending if isinstance(p, UnknownCall)]
    print("unknown  ", unknown.tool, dict(unknown.arguments))
    result = await agent.resume("s1", decisions={unknown.id: look(unknown)})
    print("stop     ", result.stop.status, result.stop.reason)
    print("answer   ", result.output)


async def main(role: str) -> None:
    store = SqliteRunStore("sessions.db")
    agent = ToolLoopAgent(FunctionModel(offline), tools=[pay], store=store)
    if role == "child":
        await agent.run("Pay invoice 17.", session="s1")
        return
    command = [sys.executable, THIS, "child"]
    async with await anyio.open_process(command) as child:
        if child.stdout is not None:
            await child.stdout.receive()
        child.kill()
        print("child    ", signal.Signals(-await child.wait()).name)
    await resume(agent)


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        anyio.run(main, "child")
    else:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            anyio.run(main, "parent")
            print("payments ", BANK.read_text().count("paid"))
