"""Hearing of what other processes write: looking, while somebody waits or listens.

What this handle writes itself is told at once. A thread looks for the rest, twenty
times a second and only as long as there is a listener: one `stat` per session listened
to. Who waits for a record looks for itself.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from anyio import RunFinishedError, from_thread
from anyio.lowlevel import EventLoopToken, current_token

from agentcore.errors import AgentCoreError
from agentcore.protocols.store import Listener
from agentcore.stores._jsonl_inbox import Inbox

POLL_SECONDS: Final = 0.05

_log = logging.getLogger(__name__)


async def tell(listener: Listener, version: int) -> None:
    """Await a listener; the item is durable whatever it raises."""
    try:
        await listener(version)
    except Exception:  # noqa: BLE001 - the item is durable, the receipt must go out
        _log.exception("a listener of accept failed")


class _Ear(NamedTuple):
    """A listener, and the event loop it listens on."""

    listener: Listener
    home: EventLoopToken


class Ears:
    """Who listens to one session, and what they were told last."""

    __slots__ = ("_ears", "_inbox", "_told")

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._ears: tuple[_Ear, ...] = ()
        self._told = 0

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """In the order in which they came."""
        return tuple(ear.listener for ear in self._ears)

    def add(self, listener: Listener) -> _Ear:
        """Listen from now on, on the running event loop."""
        ear = _Ear(listener, current_token())
        if not self._ears:
            self._told = self._inbox.version()
        self._ears += (ear,)
        return ear

    def drop(self, ear: _Ear) -> None:
        """Listen no longer."""
        self._ears = tuple(kept for kept in self._ears if kept is not ear)

    def look(self) -> None:
        """Tell what another process has accepted; in a thread of its own."""
        with self._inbox.mutex:  # what this handle is accepting, it tells itself
            version = self._inbox.version()
            if version <= max(self._told, self._inbox.mine):
                return
        self._told = version
        for ear in self._ears:
            try:
                from_thread.run(tell, ear.listener, version, token=ear.home)
            except RunFinishedError:
                self.drop(ear)  # its event loop has ended, and it with it
            except BaseException:  # noqa: BLE001 - cancelled: that loop is ending
                _log.debug("a listener was cancelled", exc_info=True)


class Lookout:
    """The thread that looks at every session somebody listens to."""

    __slots__ = ("_lock", "_places", "_running")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[Ears, int] = {}
        """How many listen to each."""
        self._running = False

    @contextmanager
    def listening(self, ears: Ears, listener: Listener) -> Iterator[None]:
        """Have `listener` told on its own event loop until the block ends."""
        with self._lock:
            ear = ears.add(listener)
            self._places[ears] = self._places.get(ears, 0) + 1
            if not self._running:
                self._running = True
                threading.Thread(
                    target=self._run, name="agentcore-jsonl-lookout", daemon=True
                ).start()
        try:
            yield
        finally:
            with self._lock:
                ears.drop(ear)
                self._places[ears] -= 1
                if not self._places[ears]:
                    del self._places[ears]

    def _run(self) -> None:
        pause = threading.Event()
        born_in = os.getpid()
        while True:
            pause.wait(POLL_SECONDS)
            with self._lock:
                places = tuple(self._places)
                if not places or os.getpid() != born_in:
                    self._running = False
                    return
            for ears in places:
                try:
                    ears.look()
                except (AgentCoreError, OSError):
                    _log.warning("looking for accepted items failed", exc_info=True)
