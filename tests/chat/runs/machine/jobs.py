"""Jobs as workers have them: ``claims`` and the supervisor's look, on the connection of the test.

What procrastinate does with its own connections is done here by the one that the test rolls back.
"""

from __future__ import annotations

import json
from typing import Any, cast

from django.db import connection
from procrastinate.jobs import Job
from procrastinate.worker import Worker

from chat.runs.claims import ClaimedJobs
from chat.runs.supervisor import Supervisor
from tools.threads import unit_of_work

_FETCH = """
UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = %s
WHERE id = %s AND status = 'todo' AND NOT EXISTS (
    SELECT FROM procrastinate_jobs AS other WHERE other.lock = job.lock AND other.status = 'doing'
) RETURNING *
"""


class _Connector:
    async def execute_query_async(self, query: str, **values: Any) -> None:
        await unit_of_work(execute, query, values)

    async def execute_query_all_async(self, query: str, **values: Any) -> list[dict[str, Any]]:
        return await unit_of_work(rows, query, values)


claimed = ClaimedJobs(cast("Any", _Connector()))


class _Seeker:
    """A worker that carries nothing and looks for jobs of the dead."""

    def __init__(self, worker_id: int) -> None:
        self.worker_id = worker_id
        self.app = self
        self.job_manager = claimed


async def stalled_take_up() -> None:
    """Queue again what the silent had, as a worker that has just come does."""
    seeker = cast("Worker", _Seeker(await unit_of_work(worker_begin)))
    await Supervisor(cast("Any", None))._take_up_stalled(seeker)


def worker_begin() -> int:
    [found] = rows("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id", ())
    return int(found["id"])


def workers_silence(worker_ids: list[int]) -> None:
    """The database's ``now()`` stands still in a transaction: whoever is not silenced, lives."""
    execute(
        "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 day' "
        "WHERE id = ANY(%s)",
        [worker_ids],
    )


def job_fetch(job_id: int | None, worker_id: int) -> Job | None:
    found = rows(_FETCH, [worker_id, job_id])
    return Job.from_row(found[0]) if found else None


def job_lose(job_id: int | None) -> None:
    execute("DELETE FROM procrastinate_jobs WHERE id = %s", [job_id])


def job_state(job_id: int | None) -> tuple[str, int | None]:
    """Its status and whose it is; no status where it is gone."""
    found = rows("SELECT status, worker_id FROM procrastinate_jobs WHERE id = %s", [job_id])
    return (found[0]["status"], found[0]["worker_id"]) if found else ("", None)


def execute(sql: str, values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def rows(sql: str, values: Any) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        names = [column.name for column in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for row in found:
        if isinstance(row.get("args"), str):
            row["args"] = json.loads(row["args"])
    return found
