"""Stand-ins for what an agent talks to, so that its tests need no network."""
