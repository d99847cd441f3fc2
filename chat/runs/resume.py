"""Where a listener goes on: the points of a run's log, and the snapshot for one that is gone.

A point is ``<attempt>-<seq>`` of a stored event of the run's present attempt; a conversation's
point has the run before it. Whoever names any other is given the fold of the log so far.
"""

from __future__ import annotations

import re
from uuid import UUID

from django.db.models import Q, Subquery

from chat.events import Done, LoggedEvent, Snapshot
from chat.loop.folding import Folded
from chat.models import Run, RunStatus
from chat.runs import event_log

Position = tuple[int, int]

#: A point that no log has: its answer is a snapshot.
NOWHERE = "?"

_POINT = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_FULL_POINT = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(.+)", re.DOTALL)


def position_of(*, run_id: UUID, resume: str) -> Position | None:
    """The position that ``resume`` names, None where it is no point to go on from."""
    found = _POINT.fullmatch(resume)
    if found is None:
        return None
    position = int(found[1]), int(found[2])
    current = Run.objects.filter(id=run_id, attempt=position[0]).exists()
    return (
        position if current and event_log.event_exists(run_id=run_id, position=position) else None
    )


def is_ahead(*, run_id: UUID, resume: str) -> bool:
    """Whether the point may be one that another process has told and is about to store."""
    found = _POINT.fullmatch(resume)
    if found is None:
        return False
    attempt, seq = int(found[1]), int(found[2])
    runs = Run.objects.filter(id=run_id, attempt=attempt, status=RunStatus.RUNNING)
    return runs.exists() and seq > event_log.seq_last(run_id=run_id, attempt=attempt)


def is_over(*, run: Run, resume: str) -> bool:
    """Whether a listener that resumes after ``resume`` has seen everything, ``done`` included."""
    if run.status != RunStatus.FINISHED:
        return False
    last = event_log.seq_last(run_id=run.id, attempt=run.attempt)
    return position_of(run_id=run.id, resume=resume) == (run.attempt, last)


def snapshot_of(*, run_id: UUID) -> LoggedEvent:
    """The fold of the log so far, numbered as the last event it covers; ``done`` is left to come.

    Numbered 0-0 where there is nothing yet.
    """
    folded, (attempt, seq) = _folded(run_id)
    snapshot = Snapshot(state=folded.state(), covers=f"{attempt}-{seq}")
    return LoggedEvent(run_id, attempt, seq, snapshot)


def folded_so_far(*, run_id: UUID) -> Folded:
    """What the log of a run that goes on says by now."""
    return _folded(run_id)[0]


def _folded(run_id: UUID) -> tuple[Folded, Position]:
    folded = Folded()
    attempt, seq = event_log.START
    more = True
    while more:
        page = event_log.page_after(run_id=run_id, position=(attempt, seq))
        if page is None:  # the log was folded meanwhile, which happens once
            return _folded(run_id)
        for logged in page.events:
            if not isinstance(logged.event, Done):
                folded.apply(logged.event)
                attempt, seq = logged.attempt, logged.seq
        more = page.more
    return folded, (attempt, seq)


def conversation_point(*, conversation_id: UUID, resume: str) -> tuple[Run | None, str]:
    """The run and its point that ``resume`` names; no run: begin with the conversation's first."""
    if not resume:
        return None, ""
    found = _FULL_POINT.fullmatch(resume)
    runs = Run.objects.filter(conversation_id=conversation_id)
    run = None if found is None else runs.filter(id=found[1]).first()
    return (None, NOWHERE) if found is None or run is None else (run, found[2])


def run_after(*, conversation_id: UUID, run_id: UUID | None) -> UUID | None:
    """The run of the conversation that was started after that one; the first one after None.

    A conversation has one active run, so each begins after the one before it has ended.
    """
    runs = Run.objects.filter(conversation_id=conversation_id).order_by("created", "id")
    if run_id is not None:
        created = Subquery(Run.objects.filter(id=run_id).values("created"))
        runs = runs.filter(Q(created__gt=created) | Q(created=created, id__gt=run_id))
    return runs.values_list("id", flat=True).first()
