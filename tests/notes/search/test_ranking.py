"""What one looks for comes among the first, no less often than by SQLite's bm25."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.search_ranking import Contest, known_items, measured


@pytest.mark.thorough
def test_known_items_are_among_the_first_as_often_as_by_bm25(alice: User) -> None:
    corpus = Corpus(seed=5)
    notes = [corpus.note() for _ in range(1000)]
    contest, queries = Contest(alice, notes), known_items(notes, 100)
    ours, theirs = measured(queries, contest.ours), measured(queries, contest.theirs)
    assert ours["found"] >= theirs["found"] - 0.03
    # Of a hundred queries, the one or the other finds a few more.
    assert ours["success@5"] >= theirs["success@5"] - 0.03
    assert ours["mean reciprocal rank"] >= theirs["mean reciprocal rank"] - 0.03
