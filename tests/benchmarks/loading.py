"""A database of its own for a benchmark, and notes by the hundred thousand."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

from tests.benchmarks.corpus import MadeNote

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS = (
    "id, owner_id, title, content, folder, tags, tags_folded, language, version, created, updated"
)


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


def load(notes: Iterable[tuple[int, MadeNote]], *, indexed: bool = True) -> list[UUID]:
    """COPY notes of owners, each a minute older than the one before; says how long it took."""
    from django.db import connection

    ids: list[UUID] = []
    now = datetime(2026, 1, 1, tzinfo=UTC)
    started = time.perf_counter()
    with connection.cursor() as cursor:
        if not indexed:
            cursor.execute("ALTER TABLE notes_note DISABLE TRIGGER notes_search_follow")
        with cursor.cursor.copy(f"COPY notes_note ({COLUMNS}) FROM STDIN") as copy:
            for owner_id, note in notes:
                ids.append(uuid4())
                at = now - timedelta(minutes=len(ids))
                copy.write_row(
                    (ids[-1], owner_id, note.title, note.content, "/", [], [], "", 1, at, at)
                )
        if not indexed:
            cursor.execute("ALTER TABLE notes_note ENABLE TRIGGER notes_search_follow")
        cursor.execute("ANALYZE notes_note, notes_notesearchentry")
    seconds = time.perf_counter() - started
    print(f"{len(ids)} notes copied in {seconds:.0f} s", file=sys.stderr)
    return ids
