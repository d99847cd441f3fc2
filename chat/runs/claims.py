"""Whoever ends a job or queues it again must still have it: jobs are changed as they were seen.

A worker that was silent for long is taken for dead, and its jobs are taken up by others, of which
several may look at once. When it comes back, and its executors find themselves fenced, what it says
of those jobs must not reach the ones who carry them now. procrastinate asks for the id alone; here
the number of times that a job was queued again, which only rises, has to be the same too.
"""

from __future__ import annotations

from datetime import datetime
from typing import LiteralString

from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

_FINISH: LiteralString = """
WITH claimed AS (
    SELECT id FROM procrastinate_jobs
    WHERE id = %(job_id)s AND status = 'doing' AND attempts = %(attempts)s FOR UPDATE
)
SELECT procrastinate_finish_job_v1(id, %(status)s, %(delete_job)s) FROM claimed
"""

_RETRY: LiteralString = """
WITH claimed AS (
    SELECT id FROM procrastinate_jobs
    WHERE id = %(job_id)s AND status = 'doing' AND attempts = %(attempts)s FOR UPDATE
)
SELECT procrastinate_retry_job_v2(id, %(retry_at)s, %(priority)s, %(queue)s, %(lock)s) FROM claimed
"""


class ClaimedJobs(JobManager):
    """procrastinate's, but that what somebody else has by now is left to them, silently."""

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        await self.connector.execute_query_async(
            _FINISH,
            job_id=job.id,
            attempts=job.attempts,
            status=status.value,
            delete_job=delete_job,
        )

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        try:
            await self.connector.execute_query_async(
                _RETRY,
                job_id=job.id,
                attempts=job.attempts,
                # At once is no time of ours: the database, whose clock decides, may be behind.
                retry_at=retry_at,
                priority=priority,
                queue=queue,
                lock=lock,
            )
        except UniqueViolation:
            # One like it is in the queue, and only one may be: that does what this one would.
            await self.finish_job(job, Status.ABORTED, delete_job=True)
