"""Policies a host can use as they are: permissions, budgets, retries."""
