"""What operators see of runs, and what requeueing does."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from chat.models import Run
from chat.runs.lifecycle import run_begin, run_close, run_start
from chat.runs.operating import run_requeue, runs_unfinished

pytestmark = pytest.mark.django_db

SECRET = "words that are nobody's business"


@pytest.fixture
def run(user) -> Run:
    return run_start(owner=user, content=SECRET)


def taken(run, *, seconds_ago: int) -> None:
    """A worker took the run's job and gave its last sign of life so long ago."""
    run_begin(run_id=run.id)
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH worker AS (INSERT INTO procrastinate_workers (last_heartbeat)"
            " VALUES (now() - make_interval(secs => %s)) RETURNING id)"
            " UPDATE procrastinate_jobs SET status = 'doing', worker_id = worker.id"
            " FROM worker WHERE procrastinate_jobs.id = %s",
            [seconds_ago, run.job_id],
        )


def state(run) -> str:
    return {each.run_id: each.state for each in runs_unfinished()}[run.id]


def shown(*arguments) -> str:
    out = StringIO()
    call_command("runs", *arguments, stdout=out)
    return out.getvalue()


def test_run_in_the_queue_waits(run):
    assert state(run) == "waiting"


def test_run_whose_worker_lives_is_active(run):
    taken(run, seconds_ago=3)
    assert state(run) == "active"


def test_run_whose_worker_is_silent_has_stalled(run):
    taken(run, seconds_ago=40)
    assert state(run) == "stalled"


def test_run_without_a_job_has_stalled(run):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    assert state(run) == "stalled"


def test_run_that_waits_for_a_person_has_not_stalled(run):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    Run.objects.filter(id=run.id).update(status="awaiting_approval")
    assert state(run) == "waiting"
    assert not run_requeue(run_id=run.id)


def test_finished_run_is_not_shown(run):
    run_close(run_id=run.id, reason="stopped")
    assert runs_unfinished() == []
    assert not run_requeue(run_id=run.id)


@pytest.mark.parametrize("lost", [True, False])
def test_stalled_run_is_requeued_once(run, lost):
    taken(run, seconds_ago=40)
    if lost:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")
    assert [run_requeue(run_id=run.id), run_requeue(run_id=run.id)] == [True, False]
    assert state(run) == "waiting"
    begun = run_begin(run_id=run.id)
    assert begun is not None
    assert begun.attempt == 2


def test_run_that_is_carried_is_not_requeued(run):
    taken(run, seconds_ago=1)
    assert not run_requeue(run_id=run.id)
    assert state(run) == "active"


def test_command_shows_ids_states_and_times_and_no_words(user, run):
    taken(run, seconds_ago=133)
    other = run_start(owner=user, content=SECRET)
    told = shown()
    lines = told.splitlines()
    assert lines[0].split() == ["STATE", "RUN", "OWNER", "STATUS", "ATTEMPT", "AGE", "HEARTBEAT"]
    assert lines[1].split() == ["stalled", str(run.id), "ada", "running", "1", "0:00:00", "0:02:13"]
    assert lines[2].split()[:2] == ["waiting", str(other.id)]
    assert lines[3] == "0 active, 1 waiting, 1 stalled"
    assert SECRET not in told
    assert str(other.id) not in shown("--stalled")
