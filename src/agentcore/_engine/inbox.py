"""Folds what came in from outside into the journal, in inbox order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentcore._engine.decisions import fold_decision, supersede
from agentcore._engine.writer import Writer
from agentcore.protocols.store import InboxPage
from agentcore.types import inbox as i
from agentcore.types import records as r


async def fold_inbox(writer: Writer) -> None:
    """Stage a record for every inbox item that has not been seen."""
    page = await writer.store.inbox(writer.state.session_id, writer.inbox_seen)
    await writer.turn()
    _fold_page(writer, page)
    # What was taken for news may have been none.
    writer.inbox_version = max(writer.inbox_seen, page.version)


async def fold_cancel(writer: Writer) -> bool:
    """Fold in what arrived, at once, if a cancel is among it (W7); tells if so.

    Everything else waits for the next boundary.
    """
    page = await writer.store.inbox(writer.state.session_id, writer.inbox_seen)
    # Before the wait: whoever holds the journal now must look before it goes on.
    writer.inbox_version = max(writer.inbox_version, page.version)
    if not any(type(item) is i.Cancel for _, item in page.items):
        return False
    await writer.turn()
    if writer.closed:  # the next owner reads it
        return False
    _fold_page(writer, page)
    await writer.commit()
    return True


def place_steers(writer: Writer) -> None:
    """Every pending steer goes into the open run, first come first served."""
    state = writer.state
    run = state.run
    if not state.pending or run is None:
        return
    for item in list(state.pending.values()):
        if item.delivery == "steer":
            writer.stage(r.InputPlaced(item.input_id, run.run_id, "steer"))


def _fold_page(writer: Writer, page: InboxPage) -> None:
    state = writer.state
    for position, item in page.items:
        if position <= writer.inbox_seen:
            continue
        if type(item) is i.Cancel and state.open_run is None and state.pending:
            # It is meant for what was said before it: it waits for that run to open.
            return
        stage_item(writer, position, item)
        writer.inbox_seen = position


def stage_item(writer: Writer, position: int, item: i.InboxItem) -> None:
    """Stage the record of one item; an item that changes nothing leaves none."""
    fold = _FOLDS.get(type(item))
    if fold is not None:
        fold(writer, position, item)


def _input(writer: Writer, position: int, item: i.Input) -> None:
    writer.stage(
        r.InputAccepted(
            item.id,
            position,
            item.content,
            item.delivery,
            item.source,
            item.actor,
            "",
            item.traceparent,
            item.settings,
        )
    )
    supersede(writer, item)


def _cancel(writer: Writer, position: int, item: i.Cancel) -> None:
    run = writer.state.open_run
    if run is None or run.cancel is not None:
        return
    writer.stage(
        r.CancelRequested(
            item.id, run.run_id, position, item.cause, item.actor, item.reason
        )
    )


def _withdraw(writer: Writer, position: int, item: i.Withdraw) -> None:
    state = writer.state
    if item.input_id in state.pending or item.input_id in state.parked:
        writer.stage(r.InputWithdrawn(item.input_id, item.id, position))


def _redeliver(writer: Writer, position: int, item: i.Redeliver) -> None:
    if item.input_id in writer.state.pending:
        writer.stage(
            r.InputRedelivered(item.input_id, item.delivery, item.id, position)
        )


def _release(writer: Writer, position: int, item: i.Release) -> None:
    parked = writer.state.parked
    wanted = item.input_ids or tuple(parked)
    for input_id in [name for name in parked if name in wanted]:
        writer.stage(r.InputReleased(input_id, item.id, position))


def _state(writer: Writer, position: int, item: i.StateChange) -> None:
    writer.stage(r.StateChanged(item.key, item.value, item.actor, item.cause, position))


_FOLDS: Final[dict[type, Callable[[Writer, int, Any], None]]] = {
    i.Input: _input,
    i.Cancel: _cancel,
    i.Decide: fold_decision,
    i.Withdraw: _withdraw,
    i.Redeliver: _redeliver,
    i.Release: _release,
    i.StateChange: _state,
}
