"""Child process that holds llama.cpp's HTTP server. Run by its path, never imported.

Talks to `server.py`: one line of JSON settings comes on standard input, one line with
the server's address goes to standard output once the model is loaded, everything else
that is printed goes to standard error, which is the log. The end of standard input
means that the parent is gone, however it died.

Imports nothing of agentcore: it starts faster and works wherever the parent found it.
"""

import importlib
import json
import os
import select
import signal
import sys
import threading
import time
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    HAS_PIPE_SIGNAL = False
else:
    HAS_PIPE_SIGNAL = hasattr(fcntl, "F_SETOWN") and hasattr(os, "O_ASYNC")

_PROMPT_CACHE_MIB = 256
_PARENT_POLL_S = 1.0


def main() -> None:
    """Serve until standard input ends."""
    # The server's own code writes to descriptor 1; the answer line must stay clean.
    answers = os.dup(1)
    parent = os.getppid()
    os.dup2(2, 1)
    # A Ctrl-C in the terminal reaches the whole group; the parent may still need us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = json.loads(_read_line())
    _die_with_parent()
    try:
        server = _serve(settings)
    except RuntimeError as error:
        # The server has printed the cause; a stack trace would only push it up.
        sys.exit(f"{type(error).__name__}: {error}")
    os.write(answers, f"{server.listening_address}\n".encode())
    os.close(answers)
    # A process that the parent forked holds the other end of our input open as well.
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(0)


def _read_line() -> bytes:
    # Not through sys.stdin: its buffer is a lock that two threads would share.
    line = bytearray()
    while not line.endswith(b"\n"):
        more = os.read(0, 65536)
        if not more:
            os._exit(0)
        line += more
    return bytes(line)


def _die_with_parent() -> None:
    # PR_SET_PDEATHSIG is of no use: it fires when the *thread* that started this
    # process ends, and a worker thread ends after some idle seconds.
    if HAS_PIPE_SIGNAL:
        # While a model loads, its code keeps the GIL for seconds and no Python thread
        # runs. A closed pipe can raise a signal, whose default action ends us at once.
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([0], [], [], 0)[0]:
            os._exit(0)  # it was closed before the signal was armed
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()


def _exit_at_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _serve(settings: dict[str, Any]) -> Any:
    sys.path.append(settings["site"])  # where the parent found it; -I hides some places
    xllamacpp = importlib.import_module("xllamacpp")  # untyped, and only used here

    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system picks a free one
    # A page in the user's browser must be able to ask nothing.
    params.cors_origins = "http://127.0.0.1"
    params.ui = params.endpoint_slots = False
    params.n_ctx, params.n_parallel = settings["context"], 1
    # One thread: llama.cpp's threads spin on a barrier, which collapses to a few tokens
    # a second as soon as another process wants a core.
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.use_jinja = params.offline = True
    params.warmup = False
    params.sampling.temp = 0.0
    if settings["template"] is not None:
        params.chat_template = settings["template"]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
