"""How a listener follows a run: from the beginning, or on from where it was cut off.

Owns resume points. What the events are is the runtime's, how they are written ``wire``'s.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast
from uuid import UUID

from chat.events import Done, LoggedEvent, Snapshot
from chat.loop.folding import Folded
from chat.models import Run, RunStatus
from chat.runs import event_log
from chat.runs.runtime import Runtime
from chat.transcript import selectors
from tools.threads import unit_of_work

Position = tuple[int, int]
Batches = AsyncGenerator[tuple[LoggedEvent, ...] | None, None]

_POINT = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


async def follow(runtime: Runtime, run_id: UUID, resume: str = "") -> Batches:
    """Batches of a run's events strictly after ``resume``, until ``done``; None: keep-alive.

    A resume point that this run's log does not have, or an older attempt's, is answered by a
    ``snapshot`` of what there is, then by what comes. Ends without ``done`` only where the run was
    deleted.
    """
    position: Position | None = None
    if resume:
        await runtime.flusher.settled(run_id)
        position = await unit_of_work(position_of, run_id=run_id, resume=resume)
        if position is None:
            snapshot = await unit_of_work(snapshot_of, run_id=run_id)
            position = (snapshot.attempt, snapshot.seq)
            if position > (0, 0):
                yield (snapshot,)
    events = cast(Batches, runtime.events(run_id, position))
    async with aclosing(events):
        async for batch in events:
            yield batch
            if batch is None and not await unit_of_work(selectors.run_exists, run_id=run_id):
                return


async def drain(batches: AsyncIterator[tuple[LoggedEvent, ...] | None]) -> Folded:
    """All that a run does, once it is over."""
    folded = Folded()
    async for batch in batches:
        for logged in batch or ():
            folded.apply(logged.event)
    return folded


def position_of(*, run_id: UUID, resume: str) -> Position | None:
    """The position that ``resume`` names, None where it is no point to go on from."""
    found = _POINT.fullmatch(resume)
    if found is None:
        return None
    attempt, seq = int(found[1]), int(found[2])
    current = Run.objects.filter(id=run_id, attempt=attempt).exists()
    known = current and seq <= event_log.seq_last(run_id=run_id, attempt=attempt)
    return (attempt, seq) if known else None


def is_over(run: Run, *, resume: str) -> bool:
    """Whether a listener that resumes after ``resume`` has seen everything, ``done`` included."""
    if run.status != RunStatus.FINISHED:
        return False
    last = event_log.seq_last(run_id=run.id, attempt=run.attempt)
    return position_of(run_id=run.id, resume=resume) == (run.attempt, last)


def snapshot_of(*, run_id: UUID) -> LoggedEvent:
    """The fold of the log so far, numbered as the last event it covers; ``done`` is left to come.

    Numbered 0-0 where there is nothing yet.
    """
    folded = Folded()
    attempt = seq = 0
    while page := event_log.events_after(run_id=run_id, position=(attempt, seq)):
        for logged in page:
            if isinstance(logged.event, Done):
                break
            folded.apply(logged.event)
            attempt, seq = logged.attempt, logged.seq
        if len(page) < event_log.PAGE:
            break
    snapshot = Snapshot(state=folded.state(), covers=f"{attempt}-{seq}")
    return LoggedEvent(run_id, attempt, seq, snapshot)
