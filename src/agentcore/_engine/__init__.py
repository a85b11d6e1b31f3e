"""The loop. Private: only `agentcore.agent` may import it.

It knows protocols, never a provider, a store or an executor. What does not belong here:
policy (it is asked), wire formats, storage, and anything a host could want to replace.
"""
