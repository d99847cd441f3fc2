"""A database of its own for a benchmark, and notes by the hundred thousand."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tests.benchmarks.corpus import MadeNote

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS = (
    "id, owner_id, title, content, folder, tags, tags_folded, language, from_outside, version,"
    " created, updated"
)
#: Sessions that index at once, and notes in one statement of them.
SESSIONS = 2
BATCH = 2000


@contextmanager
def database() -> Iterator[None]:
    """A database that is made for this run and dropped after it, in ``var/benchmark``."""
    os.environ["NOTEWIRE_HOME"] = str(ROOT / "var" / "benchmark")
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django

    django.setup()
    from django.db import connection

    connection.settings_dict["TEST"]["NAME"] = f"benchmark_{os.getpid()}"
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        connection.creation.destroy_test_db("postgres", verbosity=0)


def store(notes: Iterable[tuple[int, MadeNote]]) -> list[UUID]:
    """COPY notes, each a minute older than the one before, in the caller's transaction."""
    from django.db import connection

    ids = _copied(notes)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE notes_note, notes_notesearchentry")
    return ids


def load(notes: Iterable[tuple[int, MadeNote]], *, owners: Sequence[int], copies: int = 1) -> None:
    """The same for very many notes of an empty database: committed, and indexed in bulk.

    Each of ``notes`` is there ``copies`` times. The first owner has all copies of theirs; the
    others' notes are of one of the first owners, and their copies go round the rest. Indexes are
    made after the rows that are in them. Says how long each step took.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE notes_note DISABLE TRIGGER notes_search_follow")
        cursor.execute("SET maintenance_work_mem = '1GB'; SET synchronous_commit = off")
        with _without_indexes("notes_note"), _without_indexes("notes_notesearchentry"):
            with _step("notes copied"):
                ids = _copied(notes)
            with _step("notes indexed"):
                _indexed(ids)
            if copies > 1:
                with _step(f"{copies} copies made"):
                    values: dict[str, Any] = {
                        "number": len(ids),
                        "copies": copies,
                        "owners": list(owners),
                    }
                    cursor.execute(_COPY_ENTRIES, values)
                    cursor.execute(_COPY_NOTES, values)
        cursor.execute("ALTER TABLE notes_note ENABLE TRIGGER notes_search_follow")
        with _step("vacuumed"):
            cursor.execute("VACUUM (ANALYZE) notes_note, notes_notesearchentry")


#: A copy is older than all that it is no copy of, has an id of its own, and belongs to whom it does
#: by its place in the list of owners.
_COPIES = """
CROSS JOIN generate_series(1, %(copies)s - 1) AS copy
CROSS JOIN LATERAL (SELECT CASE old.owner_id WHEN (%(owners)s::bigint[])[1] THEN old.owner_id
  ELSE (%(owners)s::bigint[])[array_position(%(owners)s::bigint[], old.owner_id)
    + copy * (cardinality(%(owners)s::bigint[]) - 1) / %(copies)s] END AS owner_id) AS new
"""
_COPY_NOTES = f"""
INSERT INTO notes_note ({COLUMNS})
SELECT md5(old.id::text || copy)::uuid, new.owner_id, title, content, folder, tags, tags_folded,
  language, from_outside, version, created, updated - copy * %(number)s * interval '1 minute'
FROM notes_note AS old {_COPIES}
"""  # noqa: S608
_COPY_ENTRIES = f"""
INSERT INTO notes_notesearchentry
SELECT md5(note_id::text || copy)::uuid, start, new.owner_id,
  updated - copy * %(number)s * interval '1 minute', language, whole, pending,
  ts_delete(tsv, '=o:' || old.owner_id) || notes_search_owned(new.owner_id, language)
FROM notes_notesearchentry AS old {_COPIES}
"""  # noqa: S608


def _copied(notes: Iterable[tuple[int, MadeNote]]) -> list[UUID]:
    from django.db import connection

    ids: list[UUID] = []
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with (
        connection.cursor() as cursor,
        cursor.cursor.copy(f"COPY notes_note ({COLUMNS}) FROM STDIN") as copy,
    ):
        for owner_id, note in notes:
            ids.append(uuid4())
            at = now - timedelta(minutes=len(ids))
            copy.write_row((ids[-1], owner_id, *note, "/", [], [], "", False, 1, at, at))
            _show(len(ids))
    return ids


def _indexed(ids: list[UUID]) -> None:
    """In two sessions, as one makes use of one core."""
    batches = [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]
    with ThreadPoolExecutor(SESSIONS) as sessions:
        list(sessions.map(_share_indexed, [batches[each::SESSIONS] for each in range(SESSIONS)]))


def _share_indexed(batches: list[list[UUID]]) -> None:
    from django.db import connection

    with closing(connection), connection.cursor() as cursor:
        for number, ids in enumerate(batches, start=1):
            cursor.execute("SELECT notes_search_write(%s)", [ids])
            _show(number * len(ids) * SESSIONS)


@contextmanager
def _without_indexes(table: str) -> Iterator[None]:
    """Drop what is no constraint, and make it again afterwards."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s"
            " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
            [table],
        )
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        yield
        with _step(f"{table}: {len(indexes)} indexes made"):
            for _, definition in indexes:
                cursor.execute(definition)


@contextmanager
def _step(name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"\r{name} in {time.perf_counter() - started:.0f} s", file=sys.stderr)


def _show(done: int) -> None:
    if done % 10_000 == 0:
        print(f"\r{done}", end="", file=sys.stderr, flush=True)
