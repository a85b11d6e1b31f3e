"""Every example runs, for real, as the process a reader would start."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agentcore.providers.local import LocalModelError, find_or_download_weights

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = {
    "approval_elsewhere.py", "chatbot.py", "cli.py", "crash_and_resume.py",
    "custom_executor.py", "custom_store.py", "first_agent.py", "quickstart.py",
    "steering.py",
}  # fmt: skip
SUITES = {"test_custom_executor.py", "test_custom_store.py", "test_my_agent.py"}
PATIENCE = 600


def environment() -> dict[str, str]:
    """This process's, without any vendor's key: no example may need one."""
    return {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}


def run(
    script: str, arguments: Sequence[str] = (), *, typed: str = "", cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        input=typed,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SCRIPTS | SUITES


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_the_tests_among_the_examples_pass(suite: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"examples/{suite}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_first_agent_without_a_key_says_which_one_is_missing() -> None:
    done = run("first_agent.py")
    assert done.returncode == 0, done.stderr
    assert "OPENAI_API_KEY" in done.stdout


def test_the_chatbot_steers_a_chat_and_keeps_chats_apart() -> None:
    done = run("chatbot.py", typed="ann: find it\nann: the last one\nbob: hi\n")
    assert done.returncode == 0, done.stderr
    assert "ann < You said: find it + the last one. " in done.stdout
    assert "bob < You said: hi. " in done.stdout


def test_the_cli_runs_what_was_approved_and_nothing_else(tmp_path: Path) -> None:
    done = run("cli.py", typed="buy milk\ny\nbuy tea\nn\n\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "buy milk\n"
    assert "[save_note runs]\n[ok]" in done.stdout
    assert "[denied]" in done.stdout


@pytest.mark.parametrize(
    ("lines", "tail"), [("", "> \n"), ("buy milk\n", "y/n \n[denied]\n")]
)
def test_ctrl_d_ends_the_cli_and_approves_nothing(
    lines: str, tail: str, tmp_path: Path
) -> None:
    done = run("cli.py", typed=lines, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert tail in done.stdout
    assert not (tmp_path / "notes.txt").exists()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("lines", "prompt"), [("", "> "), ("buy milk\n", "y/n ")])
def test_ctrl_c_ends_the_cli_in_one_line_and_approves_nothing(
    lines: str, prompt: str, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "cli.py")],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines)
    process.stdin.flush()  # and stays open: somebody sits there and could type
    shown = ""
    while not shown.endswith(prompt):
        shown += process.stdout.read(1)
    press_ctrl_c(process)
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (130, "\nStopped.\n")
    assert not (tmp_path / "notes.txt").exists()


def test_the_custom_executor_runs_a_command() -> None:
    done = run("custom_executor.py")
    assert done.returncode == 0, done.stderr
    version = sys.version.split()[0]
    assert done.stdout.splitlines() == [f"Python {version}", "That is the version."]


def test_the_custom_store_counts() -> None:
    done = run("custom_store.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Hello! ")


def test_after_a_kill_in_the_middle_of_a_payment_nothing_is_paid_twice(
    tmp_path: Path,
) -> None:
    done = run("crash_and_resume.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "child     SIGKILL"
    assert lines[1] == "stop      paused confirm_unknown"
    assert lines[3] == "stop      completed final"
    assert "it did happen. invoice 17 paid" in lines[4]
    assert lines[5] == "payments  1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        (["yes"], "The tool said: paid 90 for invoice 17."),
        (["yes", "5"], "The tool said: paid 5 for invoice 17."),
        (["no"], "too much"),
    ],
)
def test_what_one_process_asks_another_one_decides_once(
    decision: list[str], answer: str, tmp_path: Path
) -> None:
    def bot(*command: str) -> subprocess.CompletedProcess[str]:
        return run("approval_elsewhere.py", ["bot.db", *command], cwd=tmp_path)

    waits = "paused approval\nwaits: pay {'invoice': 17, 'amount': 90}\n"
    assert bot("start").stdout == waits
    assert bot("pending").stdout == waits

    decided = bot(*decision)
    assert decided.returncode == 0, decided.stderr
    assert decided.stdout.startswith("completed final\n")
    assert answer in decided.stdout
    assert bot("yes").stdout == decided.stdout


def test_a_steer_reaches_an_agent_at_work() -> None:
    done = run("steering.py")
    assert done.returncode == 0, done.stderr
    assert "the agent has read it" in done.stdout
    assert done.stdout.endswith("I looked at 2 of 4, and heard: That is enough.\n")


# --- the main job --------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    try:
        return find_or_download_weights()
    except LocalModelError as error:
        pytest.skip(f"the weights of the local model cannot be had: {error}")


def real_answer() -> str:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    return str(len(lines))


def shown(output: str) -> list[str]:
    """The labels of the lines the quickstart printed."""
    return [line.split()[0] for line in output.splitlines() if line]


def test_the_main_job_with_a_script_shows_every_step() -> None:
    done = run("quickstart.py", ["--scripted"])
    assert done.returncode == 0, done.stderr
    labels = ["using", "question", "call", "result", "model", "usage", "stop", "By"]
    assert shown(done.stdout) == labels
    assert "not by a model" in done.stdout
    assert f"has {real_answer()} lines" in done.stdout


def test_the_main_job_without_a_key_names_it_and_offers_the_script() -> None:
    done = run("quickstart.py", ["--model", "openai:gpt-5-mini"])
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr
    assert "--scripted" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "opnai:gpt-5-mini"], "Did you mean 'openai'"),
        (["--gguf", "none.gguf"], "There is no model file none.gguf"),
    ],
)
def test_the_main_job_says_in_a_sentence_what_is_missing(
    arguments: list[str], words: str
) -> None:
    done = run("quickstart.py", arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.live
@pytest.mark.usefixtures("weights")
def test_the_main_job_answers_from_the_file_with_the_embedded_model() -> None:
    done = run("quickstart.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'call      count_lines {"path": "pyproject.toml"}' in done.stdout
    assert (
        f"result    count_lines ok: pyproject.toml has {real_answer()}" in done.stdout
    )
    assert "stop      completed (final)" in done.stdout


def press_ctrl_c(process: subprocess.Popen[str], *, group: bool = False) -> None:
    """Press it as a user does: once more where nothing has happened for a while.

    asyncio's handler is no file the selector waits for: on a busy machine a signal that
    comes right before the loop goes to sleep is heard only when it wakes.
    """
    for _ in range(3):
        if group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
        return


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A background job of a shell ignores SIGINT, and its children would with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.live
@pytest.mark.usefixtures("weights", "interruptible")
def test_ctrl_c_ends_the_main_job_and_its_server() -> None:
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "quickstart.py")],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, as a terminal would give it
    )
    assert process.stdout is not None
    for line in process.stdout:  # it has begun, and starts the server now
        if line.startswith("question"):
            break
    time.sleep(3)
    press_ctrl_c(process, group=True)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert errors.strip() == "Stopped."
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nobody is left in the group
