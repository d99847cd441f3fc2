"""What a search costs with many notes, beside SQLite's FTS5, and what a save costs.

    .venv/bin/python -m tests.benchmarks.search [--notes 100000] [--queries 40] [--copies 1]

One owner has a fifth of the notes, the others about 800 each. For each class of query the median
and 95th percentile of milliseconds are printed: of CPU in PostgreSQL for the heavy and for a small
owner, of CPU in Python, and of CPU in FTS5 for the heavy owner, on the same notes and queries in
the same run. Each query is a whole search: page 1 with its excerpts, warm. For a million notes, as
making them and FTS5 take long, a tenth is made and is there ten times, with more owners, and
without FTS5: ``--notes 100000 --copies 10``.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.corpus import Corpus, MadeNote
from tests.benchmarks.loading import database, load
from tests.benchmarks.sqlite_notes import SqliteNotes

#: A class of queries: the p50 and p95 that a heavy owner may cost, and how often FTS5's p50.
TARGETS = (80, 150)
SMALL_TARGET = 15
RATIOS = {"prefix": 4}
SMALL_OWNER_NOTES = 800
SAVES = 200

Query = tuple[str, str]


def queries_of(kind: str, corpus: Corpus, chance: random.Random) -> Query:
    """A query of that kind, in our grammar and in FTS5's."""

    def word(first: int, last: int) -> str:
        return corpus.words[chance.randrange(first, last)]

    rare, medium, common = word(3000, 20_000), word(300, 1200), word(100, 160)
    match kind:
        case "selective":
            return rare, f'"{rare}"'
        case "medium":
            return medium, f'"{medium}"'
        case "common":
            return common, f'"{common}"'
        case "and":
            return f"{common} {medium}", f'"{common}" "{medium}"'
        case "phrase":
            other = word(100, 160)
            return f'"{common} {other}"', f'"{common} {other}"'
        case "prefix":
            return medium[:3], f'"{medium[:3]}" *'
        case "or":
            return f"{rare} or {medium}", f'"{rare}" OR "{medium}"'
        case "not":
            return f"{medium} -{common}", f'"{medium}" NOT "{common}"'
    raise ValueError(kind)


KINDS = ("selective", "medium", "common", "and", "phrase", "prefix", "or", "not")


class Backend:
    """The CPU time of the PostgreSQL process that serves this thread."""

    def __init__(self) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._file = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")

    def milliseconds(self) -> float:
        return int(self._file.read_text().split()[0]) / 1e6


def costs(work: Callable[[], Any], backend: Backend) -> tuple[float, float]:
    """Milliseconds of CPU in PostgreSQL and in Python, of the second of two calls."""
    work()
    before, own = backend.milliseconds(), time.thread_time()
    work()
    return backend.milliseconds() - before, (time.thread_time() - own) * 1000


def spread(figures: list[float]) -> str:
    late = statistics.quantiles(figures, n=20)[18]
    return f"{statistics.median(figures):6.1f} /{late:6.1f}"


def made(number: int, corpus: Corpus, owners: list[int]) -> Iterator[tuple[int, MadeNote]]:
    chance = random.Random(3)
    for _ in range(number):
        owner = owners[0] if chance.random() < 0.2 else owners[chance.randrange(1, len(owners))]
        yield owner, corpus.note()


def measure_searches(
    heavy: Any, small: Any, corpus: Corpus, sqlite: SqliteNotes | None, times: int
) -> None:
    from notes.search import search

    backend = Backend()
    print("\nclass      heavy owner p50/p95  small owner      Python           FTS5    ratio")
    for kind in KINDS:
        chance = random.Random(kind)
        queries = [queries_of(kind, corpus, chance) for _ in range(times)]
        ours: dict[str, list[float]] = {"heavy": [], "small": [], "python": []}
        theirs: list[float] = []
        for query, match in queries:
            look = partial(search, query=query, typing=kind == "prefix")
            cost, own = costs(partial(look, owner=heavy), backend)
            ours["heavy"].append(cost)
            ours["python"].append(own)
            ours["small"].append(costs(partial(look, owner=small), backend)[0])
            if sqlite is not None:
                theirs.append(costs(partial(sqlite.search, match, owner=heavy.pk), backend)[1])
        line = "  ".join(map(spread, ours.values()))
        if theirs:
            ratio = statistics.median(ours["heavy"]) / statistics.median(theirs)
            line += f"  {spread(theirs)}  {ratio:5.1f}"
        print(f"{kind:10} {line}")
    print(
        f"targets: heavy p50 {TARGETS[0]}, p95 {TARGETS[1]}; small p95 {SMALL_TARGET};"
        " ratio 2, prefix 4 (at 100,000 notes)"
    )
    print("load average: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))


def measure_excerpts(corpus: Corpus) -> None:
    """CPU of Python for the excerpts of a page, for notes of any size: the word is at their end."""
    from notes.search.excerpts import Finder, excerpt_of

    word = corpus.words[5000]
    for name, length in (("ordinary notes", 800), ("long notes", 100_000)):
        texts = [f"{corpus.text(length)} {word}" for _ in range(20)]
        figures = []
        for _ in range(20):
            finder = Finder(lexemes=[word])
            before = time.thread_time()
            for text in texts:
                excerpt_of(text, finder, finder.places(text))
            figures.append((time.thread_time() - before) * 1000)
        print(f"20 excerpts of {name:16} {spread(figures)} ms")


def measure_saves(owner: Any, corpus: Corpus) -> None:
    """CPU of PostgreSQL per note, with the search entries and without."""
    from django.db import connection, transaction

    from notes.models import Note

    backend = Backend()
    for name, trigger in (("with search", "ENABLE"), ("without", "DISABLE")):
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE notes_note {trigger} TRIGGER notes_search_follow")
        figures = []
        for _ in range(SAVES):
            note = corpus.note()
            before = backend.milliseconds()
            with transaction.atomic():
                Note.objects.create(owner=owner, title=note.title, content=note.content)
            figures.append(backend.milliseconds() - before)
        print(f"save {name:12} {spread(figures)} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--copies", type=int, default=1)
    options = parser.parse_args()
    with database():
        run(options.notes, options.queries, options.copies)


def run(number: int, times: int, copies: int) -> None:
    from django.db import connection

    from accounts.models import User

    others = max(1, number * 8 // 10 // SMALL_OWNER_NOTES)
    users = [User.objects.create(username=f"owner{each}") for each in range(others * copies + 1)]
    owners = [user.pk for user in users]
    corpus = Corpus()
    notes = list(made(number, corpus, owners[: others + 1]))
    started = time.perf_counter()
    load(notes, owners=owners, copies=copies)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_size_pretty(pg_total_relation_size('notes_note')),"
            " pg_size_pretty(pg_table_size('notes_notesearchentry')),"
            " pg_size_pretty(pg_indexes_size('notes_notesearchentry'))"
        )
        sizes = cursor.fetchone()
    print(f"{number * copies} notes in {time.perf_counter() - started:.0f} s;", end=" ")
    print("notes {}, entries {}, their indexes {}".format(*sizes))
    sqlite = None
    if copies == 1:
        sqlite = SqliteNotes()
        started = time.perf_counter()
        sqlite.add((place, *note, owner) for place, (owner, note) in enumerate(notes))
        print(f"the same in FTS5 in {time.perf_counter() - started:.0f} s")
    print("load average: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
    measure_searches(users[0], users[1], corpus, sqlite, times)
    measure_excerpts(corpus)
    measure_saves(users[1], corpus)


if __name__ == "__main__":
    main()
