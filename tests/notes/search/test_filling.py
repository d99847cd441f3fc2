"""Filling: one job at a time, one note's trouble no other's, and runs beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import User
from accounts.services import token_create
from notes.models import Note, NoteSearchEntry
from notes.search import filling, jobs, search
from notes.search.filling import FILL_TASK, fill, fill_step, reindex_step
from tests.conftest import PROCRASTINATE_TABLES
from tests.notes.writing import note_create, note_update

LONG = "plain words here " * 20_000
#: As the functions that they stand for, but that what is called ``slow`` takes its time.
SLOWLY = """
CREATE FUNCTION go_on_slowly(note uuid, number integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(30) FROM notes_note AS n WHERE n.id = note AND title = 'slow';
  RETURN notes_search_go_on(note, number);
END $$;
CREATE FUNCTION write_slowly(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(30) FROM notes_note WHERE id = ANY (ids) AND title = 'slow';
  PERFORM notes_search_write(ids);
END $$
"""


@pytest.fixture
def brief(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are shorter, and what is called ``slow`` takes longer."""
    with connection.cursor() as cursor:
        cursor.execute(SLOWLY)
    monkeypatch.setattr(filling, "STEP_MS", 2_500)
    monkeypatch.setattr(filling, "_GO_ON", "SELECT go_on_slowly(%s, %s)")
    monkeypatch.setattr(filling, "_WRITE", "SELECT write_slowly(%s)")


@pytest.fixture
def queue(transactional_db: None) -> Iterator[None]:
    """The queue is no model's own: nobody else empties it."""
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {PROCRASTINATE_TABLES} CASCADE")


def pending() -> dict[UUID, int]:
    return dict(NoteSearchEntry.objects.filter(pending=True).values_list("note_id", "failures"))


@contextmanager
def locked(note: Note) -> Iterator[None]:
    """Somebody else is writing the note meanwhile."""
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT FROM notes_note WHERE id = %s FOR UPDATE", [note.pk])
                begun.set()
                done.wait(30)
                cursor.execute("ROLLBACK")
        finally:
            begun.set()
            connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(20)
        yield
    finally:
        done.set()
        writer.join()


@pytest.mark.usefixtures("queue")
def test_saves_ask_for_one_job_however_many_there_are(alice: User) -> None:
    for number in range(5):
        note_create(owner=alice, title=str(number), content=LONG)
    job = ProcrastinateJob.objects.get(task_name=FILL_TASK)
    assert (job.lock, job.queueing_lock) == (FILL_TASK, FILL_TASK)
    assert app.tasks[FILL_TASK].lock == FILL_TASK


@pytest.mark.usefixtures("queue")
def test_short_note_asks_for_no_job(alice: User) -> None:
    note_create(owner=alice, content="short")
    assert not ProcrastinateJob.objects.exists()


@pytest.mark.usefixtures("queue")
def test_note_that_is_being_written_is_passed_over(alice: User) -> None:
    busy = note_create(owner=alice, title="busy", content=LONG)
    free = note_create(owner=alice, title="free", content=LONG)
    with locked(busy):
        fill()
        assert set(pending()) == {busy.pk} - {free.pk}
    fill()
    assert pending() == {}


@pytest.mark.thorough
def test_note_that_takes_too_long_is_set_aside_and_others_come_first(
    alice: User, brief: None
) -> None:
    slow = note_create(owner=alice, title="slow", content=LONG)
    plain = [note_create(owner=alice, title=str(number), content=LONG) for number in range(3)]
    assert len(pending()) == 1 + len(plain)
    fill()
    assert pending() == {slow.pk: 1}
    first = NoteSearchEntry.objects.get(pending=True)
    assert first.due is not None
    assert first.due > timezone.now()
    assert not fill_step()
    NoteSearchEntry.objects.filter(pending=True).update(due=None)
    fill()
    second = NoteSearchEntry.objects.get(pending=True)
    assert second.failures == 2
    assert second.due is not None
    assert second.due - timezone.now() > timedelta(minutes=3)


@pytest.mark.thorough
def test_note_that_was_set_aside_is_filled_at_once_when_its_text_changes(
    alice: User, brief: None
) -> None:
    note = note_create(owner=alice, title="slow", content=LONG)
    fill()
    assert pending() == {note.pk: 1}
    note_update(owner=alice, note_id=note.pk, title="no more", content=f"{LONG} again")
    assert pending() == {note.pk: 0}
    fill()
    assert pending() == {}


def test_step_that_is_cancelled_from_outside_sets_nothing_aside(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = note_create(owner=alice, title="long", content=LONG)

    def cancel(*_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(20)")

    monkeypatch.setattr(filling, "_go_on", cancel)
    with pytest.raises(OperationalError):
        fill_step()
    assert pending() == {note.pk: 0}


@pytest.mark.thorough
def test_persons_other_notes_are_written_anew_where_one_takes_too_long(
    alice: User, brief: None
) -> None:
    for number in range(3):
        note_create(owner=alice, title=str(number), content="x")
    first, slow, last = sorted(Note.objects.values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Note.objects.filter(pk=slow).update(title="slow")
        cursor.execute("SET LOCAL session_replication_role = origin")
    User.objects.update(language="german")
    after: UUID | None = UUID(int=0)
    seen = []
    while after is not None:
        after = reindex_step(owner_id=alice.pk, after=after)
        seen.append(after)
    assert seen == [first, slow, last, None]
    written = NoteSearchEntry.objects.filter(language="german").values_list("note_id", flat=True)
    assert set(written) == {first, last}


def waits_for_a_lock(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", [pid])
        return bool(cursor.fetchone() == ("Lock",))


@pytest.mark.thorough
@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("anew", ["language", "rebuild"])
def test_entries_are_written_anew_of_what_was_filled_while_the_note_was_waited_for(
    transactional_db: None, anew: str
) -> None:
    alice = User.objects.create_user("alice")
    note = note_create(owner=alice, content=LONG * 2 + "lastword")
    pids: list[int] = []

    def write_anew() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pids.append(cursor.fetchone()[0])
        if anew == "language":
            reindex_step(owner_id=alice.pk, after=UUID(int=0))
        else:
            next(filling.rebuild(batch=10))
        connections.close_all()

    writing = threading.Thread(target=write_anew)
    with transaction.atomic():
        Note.objects.select_for_update().get(pk=note.pk)
        fill_step()
        writing.start()
        while writing.is_alive() and not (pids and waits_for_a_lock(pids[0])):
            pass
    writing.join()

    assert pending() == {note.pk: 0}
    assert NoteSearchEntry.objects.filter(note_id=note.pk, pending=True).count() == 1
    fill()
    assert len(search(owner=alice, query="lastword").hits) == 1


def test_entries_of_different_texts_are_written_anew(alice: User) -> None:
    note = note_create(owner=alice, content=LONG * 2 + "lastword")
    fill_step()
    entry = NoteSearchEntry.objects.get(note_id=note.pk, pending=True)
    entry.start += 100_000
    entry.save(force_insert=True)
    fill()
    assert pending() == {}
    assert len(search(owner=alice, query="lastword").hits) == 1


@pytest.mark.thorough
def test_run_completes_while_every_step_of_filling_blocks(
    monkeypatch: pytest.MonkeyPatch, user: User, server: Any
) -> None:
    asleep = threading.Event()

    def sleep() -> bool:
        asleep.set()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(120)")
        return True

    monkeypatch.setattr(jobs, "fill_step", sleep)
    for number in range(20):  # as an earlier version queued them
        app.configure_task(FILL_TASK, lock=f"{number}", queueing_lock=f"{number}").defer()
    assert asleep.wait(20)
    _, secret = token_create(owner=user, name="test")
    answer = httpx.post(
        f"{server.url}/api/completions/",
        json={"content": "what time is it?", "stream": False},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=30,
    )
    assert answer.status_code == 200
    server.stop()
    left = ProcrastinateJob.objects.filter(task_name=FILL_TASK)
    assert set(left.values_list("status", flat=True)) == {"todo"}
