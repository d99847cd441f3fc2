import logging
from uuid import uuid4

import pytest
from django.db import connection

from chat import events
from chat.models import Message
from chat.runs import event_log, lifecycle, records, recovery, resume
from chat.runs.records import Fence, Record

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
    with caplog.at_level(logging.INFO, logger="chat.runs.closing"):
        lifecycle.run_close(run_id=run.id, reason="stopped")
        lifecycle.run_close(run_id=run.id, reason="stopped")

    (line,) = caplog.messages
    assert line.startswith(f"run {run.id} ended: stopped, ")
    assert "0 tokens in, 0 out" in line


def crashed(run, *, stopped: bool):
    """The worker that carries the run died a minute ago, having told more than it stored."""
    begun = lifecycle.run_begin(run_id=run.id)
    assert begun is not None
    message_id = uuid4()
    record = Record(message_id, begun.tip_id, "Once", "", "scripted", "m")
    records.draft_save(fence=Fence(run.id, begun.attempt, ""), record=record)
    told: list[events.Event] = [
        events.RunStarted(
            run_id=run.id,
            conversation_id=run.conversation_id,
            message_id=run.message_id,
            model="m",
            provider="scripted",
        ),
        events.TextDelta(message_id=message_id, text="Once"),
        events.TextDelta(message_id=message_id, text=" upon a time"),
    ]
    event_log.events_append(run_id=run.id, attempt=begun.attempt, appended=told, origin="")
    execute(
        "WITH worker AS ("
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 min')"
        " RETURNING id) UPDATE procrastinate_jobs SET status = 'doing', worker_id = worker.id"
        " FROM worker WHERE procrastinate_jobs.id = %s",
        run.job_id,
    )
    if stopped:
        execute("UPDATE chat_run SET stop_requested = now() - interval '5 s' WHERE id = %s", run.id)


def test_stopped_close_ends_a_run_whose_worker_died_and_keeps_all_text_that_was_told(run):
    crashed(run, stopped=True)

    recovery.stopped_close()

    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("finished", "stopped")
    answer = Message.objects.get(run=run)
    assert (answer.content, answer.stopped) == ("Once upon a time", True)
    assert resume.folded_so_far(run_id=run.id).messages[-1].text == answer.content


def test_text_that_a_new_attempt_let_go_of_is_told_again_where_the_run_ends(run):
    crashed(run, stopped=False)
    begun = lifecycle.run_begin(run_id=run.id)
    assert begun is not None
    started = events.RunStarted(
        run_id=run.id,
        conversation_id=run.conversation_id,
        message_id=run.message_id,
        model="m",
        provider="scripted",
    )
    event_log.events_append(run_id=run.id, attempt=begun.attempt, appended=[started], origin="")

    lifecycle.run_close(run_id=run.id, reason="stopped")

    answer = Message.objects.get(run=run)
    assert (answer.content, answer.stopped) == ("Once", True)
    assert resume.folded_so_far(run_id=run.id).messages[-1].text == answer.content


def test_stopped_close_keeps_the_text_of_the_last_of_two_attempts_that_died_early(run):
    for text in ("Once upon", "Long ago"):
        begun = lifecycle.run_begin(run_id=run.id)
        assert begun is not None
        told: list[events.Event] = [
            events.RunStarted(
                run_id=run.id,
                conversation_id=run.conversation_id,
                message_id=run.message_id,
                model="m",
                provider="scripted",
            ),
            events.TextDelta(message_id=uuid4(), text=text),
        ]
        event_log.events_append(run_id=run.id, attempt=begun.attempt, appended=told, origin="")
    execute("UPDATE chat_run SET stop_requested = now() - interval '5 s' WHERE id = %s", run.id)

    recovery.stopped_close()

    answer = Message.objects.get(run=run)
    assert (answer.content, answer.stopped) == ("Long ago", True)
    assert resume.folded_so_far(run_id=run.id).messages[-1].text == answer.content


def test_stopped_close_leaves_runs_alone_that_nobody_stopped_or_that_are_carried(run):
    crashed(run, stopped=False)
    recovery.stopped_close()
    run.refresh_from_db()
    assert run.status == "running"

    execute("UPDATE procrastinate_workers SET last_heartbeat = now()")
    execute("UPDATE chat_run SET stop_requested = now() - interval '5 s' WHERE id = %s", run.id)
    recovery.stopped_close()
    run.refresh_from_db()
    assert run.status == "running"


def test_stop_whose_job_was_given_up_is_no_error(run):
    grow_old(run)
    execute("UPDATE chat_run SET stop_requested = now() - interval '5 s' WHERE id = %s", run.id)
    execute("UPDATE procrastinate_jobs SET status = 'aborted' WHERE id = %s", run.job_id)

    recovery.orphans_close()
    recovery.stopped_close()

    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("finished", "stopped")
