"""Helpers that know nothing of agents. Nothing here imports a floor above."""
