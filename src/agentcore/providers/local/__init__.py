"""The embedded model: weights on this disk, llama.cpp's server on loopback.

    weights.py    the GGUF file: found or downloaded, checked before every use
    sources.py    where it can be downloaded from
    progress.py   what a download tells, and the terminal bar
    server.py     the server as a context manager
    _child.py, _serve.py   its process, seen from outside and from inside

Not here: the wire format. The server speaks OpenAI's, see `providers.openai_chat`.
"""

from agentcore.providers.local._errors import LocalModelError as LocalModelError
from agentcore.providers.local._errors import SourceError as SourceError
from agentcore.providers.local.progress import Progress as Progress
from agentcore.providers.local.progress import TerminalProgress as TerminalProgress
from agentcore.providers.local.progress import silent as silent
from agentcore.providers.local.server import MODEL_ID as MODEL_ID
from agentcore.providers.local.server import LocalServer as LocalServer
from agentcore.providers.local.server import ServerLimits as ServerLimits
from agentcore.providers.local.server import qwen_template as qwen_template
from agentcore.providers.local.sources import Fetch as Fetch
from agentcore.providers.local.sources import HubFile as HubFile
from agentcore.providers.local.sources import PackageParts as PackageParts
from agentcore.providers.local.sources import WeightsSource as WeightsSource
from agentcore.providers.local.weights import QWEN_CODER as QWEN_CODER
from agentcore.providers.local.weights import QWEN_CODER_SOURCES as QWEN_CODER_SOURCES
from agentcore.providers.local.weights import Weights as Weights
from agentcore.providers.local.weights import ensure_weights as ensure_weights
from agentcore.providers.local.weights import (
    find_or_download_weights as find_or_download_weights,
)

__all__ = [
    "MODEL_ID",
    "QWEN_CODER",
    "QWEN_CODER_SOURCES",
    "Fetch",
    "HubFile",
    "LocalModelError",
    "LocalServer",
    "PackageParts",
    "Progress",
    "ServerLimits",
    "SourceError",
    "TerminalProgress",
    "Weights",
    "WeightsSource",
    "ensure_weights",
    "find_or_download_weights",
    "qwen_template",
    "silent",
]
