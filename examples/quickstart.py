"""The main job: a model answers a question about the files of this checkout.

It can know the answer only by calling tools. What happens is shown as it happens.

    quickstart.py                            a small model on this machine, no key
    quickstart.py --gguf my-model.gguf       another one
    quickstart.py --model openai:gpt-5-mini  a vendor's; its key is in OPENAI_API_KEY
    quickstart.py --scripted                 no model: a fixed script plays one

It exits with 0 only when the run completed and a tool call of it succeeded.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import anyio

from agentcore import (
    AgentCoreError,
    Budget,
    Committed,
    Model,
    Options,
    RetryScheduled,
    RunResult,
    TextDelta,
    ToolError,
    ToolLoopAgent,
    tool,
)
from agentcore.testing import FunctionModel, call
from agentcore.types.content import ToolCallPart
from agentcore.types.events import RunEvent
from agentcore.types.messages import ToolMessage
from agentcore.types.model import ModelRequest
from agentcore.types.records import ModelOutcome, ToolOutcome

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "How many lines does the file pyproject.toml have?"
INSTRUCTIONS = "You answer questions about the files of a project."


# --- tools: they read this checkout and nothing else --------------------------------


def inside(path: str) -> Path:
    found = (ROOT / path).resolve()
    if not found.is_relative_to(ROOT):
        raise ToolError(f"{path} lies outside the project")
    if not found.exists():
        raise ToolError(f"there is no {path} in the project")
    return found


@tool(effects="none", replay="safe", uses={"fs_read"})
def list_files(folder: str) -> str:
    """List the files in a folder.

    Args:
        folder: The folder, such as "docs", or "." for the whole project.
    """
    names = [p.name + "/" * p.is_dir() for p in sorted(inside(folder).iterdir())]
    return "\n".join(name for name in names if not name.startswith("."))


@tool(effects="none", replay="safe", uses={"fs_read"})
def count_lines(path: str) -> str:
    """Count the lines of a file.

    Args:
        path: The file, such as "README.md".
    """
    lines = inside(path).read_text(encoding="utf-8").splitlines()
    return f"{path} has {len(lines)} lines."


@tool(effects="none", replay="safe", uses={"fs_read"})
def find_text(text: str) -> str:
    """Find the files that contain a text, such as the name of a class.

    Args:
        text: The text to look for.
    """
    lines = (
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files(ROOT)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if text in line
    )
    return "\n".join(islice(lines, 5)) or "No file contains it."


def text_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__")) and path.name != "__init__.py":
            continue
        if path.is_dir():
            yield from text_files(path)
        elif path.suffix in {".md", ".py", ".toml"}:
            yield path


# --- the model ----------------------------------------------------------------------


def embedded(gguf: Path | None) -> Model:
    # Imported here: it needs the extra `local`, which a vendor's model does not.
    from agentcore.providers.embedded import EmbeddedModel  # noqa: PLC0415

    return EmbeddedModel(gguf, options=Options(temperature=0, max_tokens=120))


def script(request: ModelRequest) -> str | ToolCallPart:
    """Stands in for a model: one fixed call, then its result as the answer."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"By the script, not by a model: {last.results[0].text}"
    return call("count_lines", path="pyproject.toml")


def model_for(given: argparse.Namespace) -> Model | str:
    if given.scripted:
        return FunctionModel(script, id="scripted:no-model")
    return given.model or embedded(given.gguf)


# --- what the terminal shows --------------------------------------------------------


class Terminal:
    """Prints events as they come: streamed text as it arrives, the rest in lines."""

    def __init__(self) -> None:
        self._streaming = False
        self._names: dict[str, str] = {}

    def show(self, event: RunEvent) -> None:
        match event:
            case TextDelta(text=piece):
                if not self._streaming:
                    print("model    ", end=" ")
                print(piece, end="", flush=True)
                self._streaming = True
            case Committed(record=ModelOutcome() as outcome):
                for part in outcome.content:
                    if isinstance(part, ToolCallPart):
                        self._names[part.call_id] = part.name
                        self.line("call", f"{part.name} {part.arguments}")
                if outcome.error:
                    self.line("error", outcome.error)
            case Committed(record=ToolOutcome(call_id=call_id, status=status) as done):
                text = " ".join(getattr(part, "text", "") for part in done.content)
                self.line("result", f"{self._names[call_id]} {status}: {short(text)}")
            case RetryScheduled(attempt=attempt, max_attempts=most, reason=reason):
                self.line("retry", f"attempt {attempt} of {most} failed: {reason}")
            case _:
                pass  # the journal has more than a terminal needs

    def line(self, label: str, text: str) -> None:
        if self._streaming:
            print()
            self._streaming = False
        print(f"{label:<9} {text}", flush=True)


def short(text: str, limit: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def conclude(result: RunResult, terminal: Terminal) -> int:
    usage, stop = result.usage, result.stop
    terminal.line(
        "usage",
        f"{usage.requests} requests, {usage.tool_calls} tool calls, "
        f"{usage.input_tokens} tokens in, {usage.output_tokens} out",
    )
    terminal.line("stop", f"{stop.status} ({stop.reason})")
    if stop.status != "completed":
        return fail(f"The run did not complete: {stop.detail or stop.reason}")
    if not any(done.status == "ok" for done in result.tool_calls):
        return fail("The model answered without a successful tool call: it guessed")
    print(f"\n{result.output}")
    return 0


def fail(sentence: str) -> int:
    print(
        f"\n{sentence.rstrip('.')}.\nTo see the loop without any model: "
        "python examples/quickstart.py --scripted",
        file=sys.stderr,
    )
    return 1


# --- the run ------------------------------------------------------------------------


async def answer(given: argparse.Namespace) -> int:
    terminal = Terminal()
    model = model_for(given)
    agent = ToolLoopAgent(
        model,
        instructions=INSTRUCTIONS,
        tools=[list_files, count_lines, find_text],
        # Holds for the first request: the answer must come from the files.
        options=Options(tool_choice="required"),
        budget=Budget(turns=6, requests=8, tool_calls=6, wall_time=600),
    )
    terminal.line("using", model if isinstance(model, str) else model.id)
    terminal.line("question", given.question)
    async with agent.start(given.question) as run:  # starts the embedded model
        async for event in run:
            terminal.show(event)
        return conclude(await run.result(), terminal)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="a vendor's model, such as openai:gpt-5-mini")
    which.add_argument("--gguf", type=Path, help="a model file to embed")
    which.add_argument("--scripted", action="store_true", help="no model, a script")
    parser.add_argument("--question", default=QUESTION, help="about this checkout")
    given = parser.parse_args()
    if given.scripted and given.question != QUESTION:
        parser.error("--scripted answers one fixed question: leave --question out")
    return given


def main() -> int:
    try:
        return anyio.run(answer, arguments())
    except AgentCoreError as error:
        return fail(str(error))
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
