"""The embedded store: one SQLite file, shared by any number of processes.

    store           SqliteRunStore: what the protocols ask for
    _file, _schema  the file: is it ours, its layout, its settings
    _writer         one transaction at a time, on the calling thread or in a thread
    _reader         connections that only read
    _journal …      the statements, by topic
    _appends        how an append is written, now or later
    _leases         who owns what, and whether that process lives
    _watching       waking whoever waits, also for what other processes wrote

Nothing outside of this folder imports `sqlite3`.
"""

from agentcore.stores.sqlite.store import SqliteRunStore as SqliteRunStore

__all__ = ["SqliteRunStore"]
