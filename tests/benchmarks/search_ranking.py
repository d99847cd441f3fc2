"""How often what one looks for is among the first five, beside SQLite's bm25.

    .venv/bin/python -m tests.benchmarks.search_ranking [--notes 20000] [--queries 500]

Each query is made of rarer words of one note, typed as people do: two or three, in small letters,
some in another form. Our weights are chosen on every other query, by the share of those for which
that note is among the first five. The other queries are what is reported, for the chosen weights,
for those in use, and for bm25: the shares among the first five and ten and the mean reciprocal
rank, from the same notes in the same run.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.benchmarks.corpus import Corpus, MadeNote
from tests.benchmarks.sqlite_notes import SqliteNotes

Query = tuple[int, str]

#: So many of the best are looked at.
FOUND = 20
CANDIDATES = [
    f"{{{words}, 0.5, {content}, 1.0}}"
    for words in (0.02, 0.05, 0.1)
    for content in (0.2, 0.4, 0.6, 0.8, 1.0)
]


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


class Contest:
    """The same notes in ours and in SQLite."""

    def __init__(self, owner: Any, notes: Sequence[MadeNote]) -> None:
        from tests.benchmarks.loading import store

        self.owner = owner
        ids = store([(owner.pk, note) for note in notes])
        self._numbers = {note_id: number for number, note_id in enumerate(ids)}
        self._sqlite = SqliteNotes()
        self._sqlite.add((number, *note, 1) for number, note in enumerate(notes))

    def ours(self, query: str) -> list[int]:
        from notes.search import Page, search

        hits = search(owner=self.owner, query=query, page=Page(limit=FOUND)).hits
        return [self._numbers[hit.note_id] for hit in hits]

    def theirs(self, query: str) -> list[int]:
        return self._sqlite.search(query, owner=1, limit=FOUND, excerpts=False)


@contextmanager
def weights(chosen: str) -> Iterator[None]:
    """Search with these weights of D, C, B and A."""
    from notes.search import statements

    before, statements.WEIGHTS = statements.WEIGHTS, chosen
    try:
        yield
    finally:
        statements.WEIGHTS = before


def weights_chosen(contest: Contest, queries: Sequence[Query]) -> str:
    """Of all candidates the best on these queries, the first one where several are."""

    def quality(candidate: str) -> tuple[float, float]:
        with weights(candidate):
            shares = measured(queries, contest.ours)
        print(f"  {candidate}  {shares['success@5']:.3f}  {shares['mean reciprocal rank']:.3f}")
        return shares["success@5"], shares["mean reciprocal rank"]

    return max(CANDIDATES, key=quality)


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
        contest = Contest(User.objects.create_user("owner"), notes)
        print(f"chosen on {len(queries[::2])} queries: success@5, mean reciprocal rank")
        chosen = weights_chosen(contest, queries[::2])
        rest = queries[1::2]
        columns = {"in use": measured(rest, contest.ours)}
        with weights(chosen):
            columns["chosen"] = measured(rest, contest.ours)
        columns["FTS5 bm25"] = measured(rest, contest.theirs)
    print(f"the other {len(rest)} queries over {options.notes} notes; chosen: {chosen}")
    print(f"{'':22} " + "  ".join(f"{name:>9}" for name in columns))
    for name in columns["in use"]:
        print(f"{name:22} " + "  ".join(f"{each[name]:9.3f}" for each in columns.values()))


if __name__ == "__main__":
    main()
