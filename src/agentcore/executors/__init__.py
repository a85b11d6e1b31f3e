"""Where tools run. Each wrapper is an executor around an executor."""
