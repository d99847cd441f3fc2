"""Filling the search entries where the trigger on notes does not: long texts, and all anew.

Both work in small transactions, so that reads and writes of notes go on meanwhile. A text that
takes longer than a step may, or that PostgreSQL does not take, is set aside with growing pauses,
and others come first. The tasks are in ``jobs``; ``manage.py search_rebuild`` is the command.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import AlreadyEnqueued

from notes.exceptions import NoteSaveTimeout
from notes.models import Note, NoteSearchEntry
from notes.time_limits import atomic_within

logger = logging.getLogger(__name__)

#: Entries that are written in one transaction.
STEP = 2
#: How long a step may take: saves of the note wait for it, and may take 10 s themselves.
STEP_MS = 5_000
#: The name of the task that fills what is pending.
FILL_TASK = "notes.search.fill"
#: The name of the task that writes a person's entries anew.
REINDEX_TASK = "notes.search.reindex"
#: Notes that it does in one transaction.
REINDEXED = 20
#: Bytes of texts after which a batch of all notes ends: a second's work or two.
REBUILT_BYTES = 1024 * 1024

_NEXT = """
SELECT e.note_id, e.failures FROM notes_notesearchentry AS e
JOIN notes_note AS n ON n.id = e.note_id
WHERE e.pending AND coalesce(e.due, '-infinity') <= now()
ORDER BY e.failures, e.start, e.note_id
LIMIT 1 FOR NO KEY UPDATE OF n SKIP LOCKED
"""
_GO_ON = "SELECT notes_search_go_on(%s, %s)"
_PARTS_PENDING = "SELECT count(*) FROM notes_notesearchentry WHERE note_id = %s AND pending"
_SET_ASIDE = """
UPDATE notes_notesearchentry SET failures = least(failures + 1, 10),
  due = now() + least('1 day', '1 minute'::interval * power(4, failures))
WHERE note_id = %s AND pending
"""
_BATCH = """
SELECT id FROM (
  SELECT id, sum(size) OVER (ORDER BY id) - size AS before FROM (
    SELECT id, octet_length(content) AS size FROM notes_note WHERE id > %s ORDER BY id LIMIT %s
  ) AS next
) AS counted WHERE before < %s ORDER BY id
"""
_LOCK = "SELECT id FROM notes_note WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
_LOCK_OF_OWNER = """
SELECT id FROM notes_note
WHERE owner_id = %s AND language = '' AND deleted IS NULL AND id > %s
ORDER BY id LIMIT %s FOR NO KEY UPDATE
"""
_EMPTY = "DELETE FROM notes_notesearchentry WHERE note_id = ANY(%s)"
_WRITE = "SELECT notes_search_write(%s)"
_NEXT_OF_OWNER = """
SELECT id FROM notes_note
WHERE owner_id = %s AND language = '' AND deleted IS NULL AND id > %s ORDER BY id LIMIT 1
"""
_PENDING_ORPHANS = """
DELETE FROM notes_notesearchentry AS e WHERE e.pending AND NOT EXISTS (
  SELECT FROM notes_note AS n WHERE n.id = e.note_id)
"""
_ORPHANS = """
DELETE FROM notes_notesearchentry AS e WHERE NOT EXISTS (
  SELECT FROM notes_note AS n WHERE n.id = e.note_id AND n.deleted IS NULL)
"""


def fill_soon() -> None:
    """Have the worker index what is pending, if anything is, once this transaction is committed."""
    transaction.on_commit(_fill_defer, robust=True)


def _fill_defer() -> None:
    # The queue's own lock would do, but each save that ran into it would be an error in the log.
    waiting = ProcrastinateJob.objects.filter(task_name=FILL_TASK, status="todo")
    if not _due().exists() or waiting.exists():
        return
    try:
        with transaction.atomic():
            app.configure_task(FILL_TASK, lock=FILL_TASK, queueing_lock=FILL_TASK).defer()
    except AlreadyEnqueued:
        return


def _due() -> QuerySet[NoteSearchEntry]:
    in_time = Q(due__isnull=True) | Q(due__lte=timezone.now())
    return NoteSearchEntry.objects.filter(in_time, pending=True)


def fill_step(*, entries: int = STEP) -> bool:
    """Index some more of a text that is pending; whether there was one.

    Notes that somebody writes at this moment are passed over: their writer has them filled anew.
    """
    began = time.monotonic()
    note_id = None
    try:
        with atomic_within(milliseconds=STEP_MS, error=NoteSaveTimeout):
            with connection.cursor() as cursor:
                cursor.execute(_NEXT)
                found = cursor.fetchone()
            if found is not None:
                note_id, failures = found
                _go_on(note_id, 1 if failures else entries)
    except NoteSaveTimeout:
        if time.monotonic() - began < STEP_MS / 1000:
            raise OperationalError("The step was cancelled from outside.") from None
        _set_aside(note_id, "it takes too long")
    except DatabaseError as error:
        if not _is_about_the_text(error):
            raise
        _set_aside(note_id, str(error))
    if note_id is None:
        with connection.cursor() as cursor:
            cursor.execute(_PENDING_ORPHANS)
    return note_id is not None


def _go_on(note_id: UUID, entries: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_PARTS_PENDING, [note_id])
        if cursor.fetchone()[0] > 1:  # its entries are of different texts
            _write_anew([note_id])
        else:
            cursor.execute(_GO_ON, [note_id, entries])


def _write_anew(ids: list[UUID]) -> None:
    """Entries of notes whose rows are locked by a statement before.

    A statement that locks and deletes in one would leave what was committed while it waited.
    """
    with connection.cursor() as cursor:
        cursor.execute(_EMPTY, [ids])
        cursor.execute(_WRITE, [ids])


def _set_aside(note_id: UUID | None, reason: str) -> None:
    logger.warning("Note %s is indexed later: %s", note_id, reason)
    with connection.cursor() as cursor:
        cursor.execute(_SET_ASIDE, [note_id])


def _is_about_the_text(error: Exception) -> bool:
    """Whether PostgreSQL did not take the data, or something beyond its or our own limits."""
    return str(getattr(error.__cause__, "sqlstate", ""))[:2] in ("21", "22", "54", "P0", "XX")


def fill() -> None:
    """Index all that is pending."""
    while fill_step():
        pass


def rebuild(*, batch: int) -> Iterator[int]:
    """Write all entries anew; yields after each batch how many notes are done.

    A batch has so many notes at most, and fewer where they are long: who saves one waits for it.
    """
    done, last = 0, UUID(int=0)
    while ids := _ids(_BATCH, [last, batch, REBUILT_BYTES]):
        with transaction.atomic():
            _write_anew(_ids(_LOCK, [ids]))
        done, last = done + len(ids), ids[-1]
        yield done
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS)
    fill()


def _ids(statement: str, values: list[Any]) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [note_id for (note_id,) in cursor.fetchall()]


def reindex_step(*, owner_id: int, after: UUID, notes: int = REINDEXED) -> UUID | None:
    """Write the entries of a person's next notes anew, those that have no language of their own.

    Gives the last of them to go on ``after``, or None when all are done. What is long is pending
    then. A note that takes too long stays as it was.
    """
    began = time.monotonic()
    try:
        with atomic_within(milliseconds=STEP_MS, error=NoteSaveTimeout):
            ids = _ids(_LOCK_OF_OWNER, [owner_id, after, notes])
            _write_anew(ids)
    except NoteSaveTimeout:
        if time.monotonic() - began < STEP_MS / 1000:
            raise OperationalError("The step was cancelled from outside.") from None
        if notes > 1:
            return reindex_step(owner_id=owner_id, after=after, notes=1)
        return _passed_over(owner_id, after)
    if not ids:
        fill_soon()
        return None
    return ids[-1]


def _passed_over(owner_id: int, after: UUID) -> UUID | None:
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_OF_OWNER, [owner_id, after])
        found = cursor.fetchone()
    if found is None:
        return None
    logger.warning("Note %s keeps its old entries: they take too long to write anew", found[0])
    note_id: UUID = found[0]
    return note_id


def notes_to_index() -> int:
    return Note.objects.count()
