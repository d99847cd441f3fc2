"""Whether a job is really being carried: its worker's heartbeat, as the database has it."""

from __future__ import annotations

from django.db import connection

#: A worker says every 5 s that it lives; one that was silent for this long is taken for dead.
STALLED_SECONDS = 15.0

_CARRIED = """
SELECT EXISTS (
    SELECT FROM procrastinate_jobs AS job
    JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
    WHERE job.id = %s AND job.status = 'doing'
      AND worker.last_heartbeat > now() - make_interval(secs => %s)
)
"""


def job_is_carried(*, job_id: int) -> bool:
    """Whether a worker that is alive executes the job."""
    with connection.cursor() as cursor:
        cursor.execute(_CARRIED, [job_id, STALLED_SECONDS])
        return bool(cursor.fetchone()[0])
