import logging

import pytest
from django.db import connection

from chat.runs import lifecycle, recovery

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(user):
    return lifecycle.run_start(owner=user, content="hello")


def execute(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def grow_old(run):
    execute("UPDATE chat_run SET created = now() - interval '1 minute' WHERE id = %s", run.id)


def test_orphans_close_ends_a_run_whose_job_is_gone(run):
    grow_old(run)
    execute("DELETE FROM procrastinate_jobs WHERE id = %s", run.job_id)

    recovery.orphans_close()

    run.refresh_from_db()
    assert (run.status, run.stop_reason, run.error_code) == ("finished", "error", "interrupted")


def test_orphans_close_ends_a_run_whose_job_failed(run):
    grow_old(run)
    lifecycle.run_begin(run_id=run.id)
    execute("UPDATE chat_run SET started = now() - interval '1 minute' WHERE id = %s", run.id)
    execute("UPDATE procrastinate_jobs SET status = 'failed' WHERE id = %s", run.job_id)

    recovery.orphans_close()

    run.refresh_from_db()
    assert run.stop_reason == "error"


def test_orphans_close_leaves_runs_alone_that_a_job_carries(run):
    grow_old(run)

    recovery.orphans_close()

    run.refresh_from_db()
    assert run.status == "queued"


def test_orphans_close_leaves_a_run_alone_that_is_just_ending(run):
    execute("DELETE FROM procrastinate_jobs WHERE id = %s", run.job_id)

    recovery.orphans_close()

    run.refresh_from_db()
    assert run.status == "queued"


def test_run_close_writes_one_log_line_with_id_reason_and_tokens(run, caplog):
    with caplog.at_level(logging.INFO, logger="chat.runs.lifecycle"):
        lifecycle.run_close(run_id=run.id, reason="stopped")
        lifecycle.run_close(run_id=run.id, reason="stopped")

    (line,) = caplog.messages
    assert line.startswith(f"run {run.id} ended: stopped, ")
    assert "0 tokens in, 0 out" in line
