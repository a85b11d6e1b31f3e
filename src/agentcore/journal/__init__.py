"""The pure journal: what records mean. No I/O; everything here can be replayed."""
