"""What an operator sees of runs and may do about them: ids, states and times, nothing private.

Owns the question whether somebody carries a run. Ending one is ``lifecycle``'s; what happens
without an operator is the ``supervisor``'s and ``recovery``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone
from procrastinate.contrib.django import app

from chat.models import Run, RunStatus
from chat.runs import heartbeats, lifecycle

State = Literal["active", "waiting", "stalled"]

_RUNS = """
SELECT run.id, owner.username, run.status, run.attempt, run.created, run.job_id,
    job.status, worker.id, worker.last_heartbeat
FROM chat_run AS run
JOIN accounts_user AS owner ON owner.id = run.owner_id
LEFT JOIN procrastinate_jobs AS job ON job.id = run.job_id
LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
WHERE run.status <> 'finished' AND (%(run)s::uuid IS NULL OR run.id = %(run)s::uuid)
ORDER BY run.created, run.id
"""


@dataclass(frozen=True, slots=True)
class RunState:
    """One run that is not over. ``heartbeat`` is the last sign of life of its worker."""

    run_id: UUID
    owner: str
    status: str
    attempt: int
    created: datetime
    job_id: int | None
    job_status: str | None
    worker_id: int | None
    heartbeat: datetime | None

    @property
    def state(self) -> State:
        """Stalled: nobody carries it and no worker will find it in the queue."""
        if self.status == RunStatus.AWAITING_APPROVAL or self.job_status == "todo":
            return "waiting"
        return "active" if self.is_carried else "stalled"

    @property
    def is_carried(self) -> bool:
        oldest = timezone.now() - timedelta(seconds=heartbeats.STALLED_SECONDS)
        return self.job_status == "doing" and self.heartbeat is not None and self.heartbeat > oldest


def runs_unfinished() -> Sequence[RunState]:
    """All runs that are not over, the oldest first."""
    return _states(None)


def run_requeue(*, run_id: UUID) -> bool:
    """Give a stalled run to whatever worker comes first; False where it needs none.

    An executor that was only thought dead is fenced by the next attempt.
    """
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).filter(id=run_id).first()
        found = _states(run_id)
        if not found or found[0].state != "stalled":
            return False
        [stalled] = found
        if stalled.job_id is not None and stalled.job_status == "doing":
            app.job_manager.retry_job_by_id(stalled.job_id, retry_at=timezone.now())
        else:
            lifecycle.run_defer(run_id=run_id)
    return True


def _states(run_id: UUID | None) -> Sequence[RunState]:
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, {"run": run_id})
        rows: list[Any] = cursor.fetchall()
    return [RunState(*row) for row in rows]
