"""How often what one looks for is among the first five, beside SQLite's bm25.

    .venv/bin/python -m tests.benchmarks.search_ranking [--notes 20000] [--queries 500]

Each query is made of rarer words of one note, typed as people do: two or three, in small letters,
some in another form. The share of queries for which that note is among the first five, ten, and the
mean reciprocal rank are printed for both, from the same notes in the same run.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.benchmarks.corpus import Corpus, MadeNote
from tests.benchmarks.sqlite_notes import SqliteNotes

Query = tuple[int, str]


def known_items(notes: Sequence[MadeNote], number: int, seed: int = 2) -> list[Query]:
    """The number of a note, and a query for it."""
    chance = random.Random(seed)
    words_of = [note.content.split() for note in notes]
    spread = Counter(word for words in words_of for word in set(words))
    queries: list[Query] = []
    while len(queries) < number:
        target = chance.randrange(len(notes))
        # Words that several notes have: what one note alone has finds it in any order.
        rare = sorted(set(words_of[target]), key=lambda word: (spread[word], word))
        rare = [word for word in rare if spread[word] >= 8][: max(3, len(rare) // 4)]
        if len(rare) >= 3:
            # What a note says more often is what one remembers of it.
            said = Counter(words_of[target])
            weights = [said[word] for word in rare]
            chosen = dict.fromkeys(chance.choices(rare, weights, k=chance.choice([1, 2, 2, 3])))
            queries.append((target, " ".join(typed(word, chance) for word in chosen)))
    return queries


def typed(word: str, chance: random.Random) -> str:
    """The word, or it in the plural."""
    return f"{word}s" if chance.random() < 0.15 and word[-1] not in "sdgu" else word


def measured(queries: Sequence[Query], search: Callable[[str], Sequence[int]]) -> dict[str, float]:
    ranks = []
    for target, query in queries:
        found = list(search(query))
        ranks.append(found.index(target) + 1 if target in found else 0)
    return {
        "success@5": sum(0 < rank <= 5 for rank in ranks) / len(ranks),
        "success@10": sum(0 < rank <= 10 for rank in ranks) / len(ranks),
        "mean reciprocal rank": sum(1 / rank for rank in ranks if rank) / len(ranks),
        "found": sum(rank > 0 for rank in ranks) / len(ranks),
    }


def compared(
    owner: Any, notes: Sequence[MadeNote], queries: Sequence[Query]
) -> tuple[dict[str, float], dict[str, float]]:
    """Store the notes in both; what ours and SQLite's measure is."""
    from notes.search import Page, search
    from tests.benchmarks.loading import store

    ids = store([(owner.pk, note) for note in notes])
    numbers = {note_id: number for number, note_id in enumerate(ids)}
    sqlite = SqliteNotes()
    sqlite.add((number, *note, 1) for number, note in enumerate(notes))
    ours = measured(
        queries,
        lambda query: [
            numbers[hit.note_id]
            for hit in search(owner=owner, query=query, page=Page(limit=50)).hits
        ],
    )
    theirs = measured(
        queries, lambda query: sqlite.search(query, owner=1, limit=50, excerpts=False)
    )
    return ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    from tests.benchmarks.loading import database

    with database():
        from accounts.models import User

        corpus = Corpus()
        notes = [corpus.note() for _ in range(options.notes)]
        queries = known_items(notes, options.queries)
        owner = User.objects.create_user("owner")
        ours, theirs = compared(owner, notes, queries)
    print(f"{options.queries} known-item queries over {options.notes} notes")
    print(f"{'':22}  ours   FTS5 bm25")
    for name, share in ours.items():
        print(f"{name:22} {share:.3f}       {theirs[name]:.3f}")


if __name__ == "__main__":
    main()
