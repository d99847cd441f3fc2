"""A worker that comes back changes no job that others have taken up since."""

from __future__ import annotations

import pytest
from django.db import connection
from procrastinate.contrib.django.utils import connector_params
from procrastinate.jobs import Job, Status
from procrastinate.psycopg_connector import PsycopgConnector

from chat.runs import lifecycle
from chat.runs.claims import ClaimedJobs
from tools.threads import unit_of_work

pytestmark = [pytest.mark.server, pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def jobs():
    connector = PsycopgConnector(kwargs=connector_params(), min_size=1, max_size=1)
    await connector.open_async()
    yield ClaimedJobs(connector)
    await connector.close_async()


@pytest.fixture
async def seen(user):
    """A job that somebody carries, as they got it."""
    run = await unit_of_work(lifecycle.run_start, owner=user, content="hello")
    await carry(run.job_id)
    yield Job(id=run.job_id, queue="default", lock=None, queueing_lock=None, task_name="t")
    await unit_of_work(execute, "TRUNCATE procrastinate_jobs CASCADE")


async def carry(job_id):
    await unit_of_work(
        execute, "UPDATE procrastinate_jobs SET status = 'doing' WHERE id = %s", job_id
    )


async def state_of(job):
    sql = "SELECT status, attempts FROM procrastinate_jobs WHERE id = %s"
    return await unit_of_work(execute, sql, job.id)


def execute(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone() if cursor.description else None


async def test_retry_job_queues_a_job_once_however_many_saw_it_stalled(jobs, seen):
    await jobs.retry_job(seen)
    assert await state_of(seen) == ("todo", 1)
    await carry(seen.id)

    await jobs.retry_job(seen)

    assert await state_of(seen) == ("doing", 1)


@pytest.mark.parametrize("carried", [True, False], ids=["carried", "waiting"])
async def test_finish_job_leaves_a_job_alone_that_was_taken_up_since(jobs, seen, carried):
    await jobs.retry_job(seen)
    if carried:
        await carry(seen.id)

    await jobs.finish_job(seen, Status.SUCCEEDED, delete_job=True)

    assert await state_of(seen) == ("doing" if carried else "todo", 1)


async def test_finish_job_ends_the_job_of_who_carries_it(jobs, seen):
    await jobs.finish_job(seen, Status.SUCCEEDED, delete_job=True)

    assert await state_of(seen) is None


async def test_retry_job_drops_a_job_where_one_like_it_waits_already(jobs, seen):
    sql = "UPDATE procrastinate_jobs SET queueing_lock = 'only one' WHERE id = %s"
    await unit_of_work(execute, sql, seen.id)
    sql = (
        "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock)"
        " VALUES ('default', 't', 'only one')"
    )
    await unit_of_work(execute, sql)

    await jobs.retry_job(seen)

    assert await state_of(seen) is None
