"""Filling the search entries where the trigger on notes does not: long texts, and all anew.

Both work in small transactions, so that reads and writes of notes go on meanwhile. The task that
fills is in ``jobs``; ``manage.py search_rebuild`` is the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.db import connection, transaction
from procrastinate.contrib.django import app

from notes.models import Note, NoteSearchEntry

#: Entries that are written in one transaction.
STEP = 4
#: The name of the task that fills what is pending.
FILL_TASK = "notes.search.fill"
#: The name of the task that writes a person's entries anew.
REINDEX_TASK = "notes.search.reindex"
#: Notes that it does in one transaction.
REINDEXED = 50

_REBUILD = """
WITH locked AS MATERIALIZED (
  SELECT * FROM notes_note WHERE id > %s ORDER BY id LIMIT %s FOR NO KEY UPDATE
), emptied AS (
  DELETE FROM notes_notesearchentry WHERE note_id IN (SELECT id FROM locked)
)
SELECT id FROM locked ORDER BY id DESC
"""
_WRITE = "SELECT notes_search_write(%s)"
_REINDEX = """
WITH locked AS MATERIALIZED (
  SELECT * FROM notes_note
  WHERE owner_id = %s AND language = '' AND deleted IS NULL AND id > %s
  ORDER BY id LIMIT %s FOR NO KEY UPDATE
), emptied AS (
  DELETE FROM notes_notesearchentry WHERE note_id IN (SELECT id FROM locked)
)
SELECT id FROM locked ORDER BY id DESC
"""
_ORPHANS = """
DELETE FROM notes_notesearchentry AS e WHERE NOT EXISTS (
  SELECT FROM notes_note AS n WHERE n.id = e.note_id AND n.deleted IS NULL)
"""


def fill_soon() -> None:
    """Have the worker index what is pending, if anything is, once this transaction is committed."""
    if NoteSearchEntry.objects.filter(pending=True).exists():
        app.configure_task(FILL_TASK).defer()


def fill_step(*, entries: int = STEP) -> bool:
    """Index some more of a text that is pending; whether there was one."""
    pending = NoteSearchEntry.objects.filter(pending=True).values_list("note_id", flat=True)
    note_id = pending.first()
    if note_id is None:
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT notes_search_go_on(%s, %s)", [note_id, entries])
    return True


def fill() -> None:
    """Index all that is pending."""
    while fill_step():
        pass


def rebuild(*, batch: int) -> Iterator[int]:
    """Write all entries anew; yields after each batch how many notes are done."""
    done, last = 0, UUID(int=0)
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_REBUILD, [last, batch])
            ids = [note_id for (note_id,) in cursor.fetchall()]
            cursor.execute(_WRITE, [ids])
        if not ids:
            break
        done, last = done + len(ids), ids[0]
        yield done
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS)
    fill()


@transaction.atomic
def reindex_step(*, owner_id: int, after: UUID, notes: int = REINDEXED) -> UUID | None:
    """Write the entries of a person's next notes anew, those that have no language of their own.

    Gives the last of them to go on ``after``, or None when all are done. What is long is pending
    then.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REINDEX, [owner_id, after, notes])
        ids: list[UUID] = [note_id for (note_id,) in cursor.fetchall()]
        cursor.execute(_WRITE, [ids])
    if not ids:
        fill_soon()
        return None
    return ids[0]


def notes_to_index() -> int:
    return Note.objects.count()
