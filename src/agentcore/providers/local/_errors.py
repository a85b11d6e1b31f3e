"""What can go wrong with the embedded model: one public error, two private signals.

ConfigError
 └─ LocalModelError      the host cannot have its local model; says what to do next
Exception
 ├─ SourceError          one download source failed; the next one is tried
 └─ StopWork             the waiting task was cancelled; the worker thread unwinds
"""

from agentcore.errors import ConfigError


class LocalModelError(ConfigError):
    """The local model cannot be had or started on this machine as it is set up.

    Nothing was sent to any model. The message is one sentence with the cause and one
    with the next step; trying again without that step gives the same error.
    """


class SourceError(Exception):
    """A source did not give the weights; what it gave so far may be kept for later."""


class StopWork(Exception):  # noqa: N818 - a signal to unwind a thread, not a failure
    """Raised inside a worker thread whose awaiting task was cancelled."""
