"""Closes runs that nobody will carry on: stopped while their worker was dead, without a job, or
waiting for an approval that has run out."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import connection

from chat import events
from chat.runs import approvals, heartbeats, lifecycle

logger = logging.getLogger(__name__)

#: Active runs with no job that waits or runs. The margin lets a job's own end be committed.
_ORPHANS = """
SELECT run.id FROM chat_run AS run
LEFT JOIN procrastinate_jobs AS job ON job.id = run.job_id AND job.status IN ('todo', 'doing')
WHERE run.status IN ('queued', 'running') AND job.id IS NULL AND run.stop_requested IS NULL
  AND coalesce(run.started, run.created) < now() - interval '10 seconds'
LIMIT 100
"""

#: Runs that are to stop, and that no living worker carries. The margin lets one that was told to
#: end it do so.
_STOPPED = """
SELECT run.id FROM chat_run AS run
LEFT JOIN procrastinate_jobs AS job ON job.id = run.job_id AND job.status = 'doing'
LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
    AND worker.last_heartbeat > now() - make_interval(secs => %s)
WHERE run.status <> 'finished' AND worker.id IS NULL
  AND run.stop_requested < now() - interval '2 seconds'
LIMIT 100
"""


def stopped_close() -> None:
    """End runs whose stop was asked for and whose executor is gone, or never came to begin."""
    for run_id in _run_ids(_STOPPED, [heartbeats.STALLED_SECONDS]):
        logger.info("Run %s was to stop and nobody carries it; closing it", run_id)
        lifecycle.run_close(run_id=run_id, reason="stopped")


def orphans_close() -> None:
    """End active runs that lost their job, so that no conversation stays busy for ever."""
    for run_id in _run_ids(_ORPHANS, []):
        logger.error("Run %s had no job any more; closing it", run_id)
        lifecycle.run_close(run_id=run_id, reason="error", error=INTERRUPTED)


def _run_ids(query: str, values: list[float]) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [row[0] for row in cursor.fetchall()]


def late_expire() -> None:
    """End runs that waited too long for a person's word."""
    for run_id in approvals.late_runs():
        logger.info("Run %s: nobody decided in time", run_id)
        lifecycle.run_expire(run_id=run_id)


INTERRUPTED = events.ErrorOccurred(
    code="interrupted",
    message="The server lost this answer. Send your message again.",
    retryable=True,
)
