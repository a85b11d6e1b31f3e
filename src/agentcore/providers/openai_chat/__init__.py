"""OpenAI's chat completions format: OpenAI, and the many that speak it too.

    client.py     the model: keys, connections, the order of things
    encode.py     a request to bytes, each message once
    _messages.py  one message to its JSON
    decode.py     chunks to deltas and a response

Not here: what all wire formats share (`providers._http`, `_sse`, `_toolcalls`), how the
vendors differ (`providers._profiles`), and retries, which belong to the engine.
"""

from agentcore.providers._http import HttpTimeout as HttpTimeout
from agentcore.providers.openai_chat.client import OpenAIChatModel as OpenAIChatModel

__all__ = ["HttpTimeout", "OpenAIChatModel"]
