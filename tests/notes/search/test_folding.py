"""The folding of excerpts is that of the index."""

from __future__ import annotations

import unicodedata

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notes.search.folding import MAX_MARKS, Folded, fold
from tests.effort import growth

LETTERS = st.sampled_from(
    "aßøØæœıŁйЙم\u00ad\u200b\u200c\u200d\ufe0f\u0306\u0301\u0323ﬁＡｶﾞ"
    "각한\u1100\u1161\u05b0\u0f73日é "
)


@pytest.mark.thorough
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(LETTERS | st.characters(exclude_characters="\x00", codec="utf-8")))
def test_fold_is_what_the_index_does(db: None, text: str) -> None:
    known = "".join(each for each in text if unicodedata.category(each) != "Cn")
    with connection.cursor() as cursor:
        cursor.execute("SELECT notes_search_fold(%s)", [known])
        assert cursor.fetchone()[0] == fold(known)


@given(text=st.text(LETTERS | st.characters()))
def test_folded_text_leads_back_to_its_own(text: str) -> None:
    folded = Folded(text)
    assert len(folded.cased) == len(folded.lower)
    starts = [folded.span(place, place + 1) for place in range(len(folded.cased))]
    assert starts == sorted(starts)
    for start, end in starts:
        assert 0 <= start < end <= len(text)
    if starts:
        assert folded.span(0, len(folded.cased)) == (starts[0][0], starts[-1][1])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0300\u0323" * 50_000,
        "א" + "\u05b0\u05c1" * 50_000,
        "\u0f73" * 100_000,
        "é" * 99_999,
    ],
    ids=["accents", "hebrew", "tibetan", "letters"],
)
def test_folding_takes_no_longer_for_runs_of_marks(db: None, text: str) -> None:
    def folding(size: int) -> None:
        fold(text[:size])
        Folded(text[:size])

    assert growth(folding, len(text)) < 4
    folded = fold(text)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '5s'")
        cursor.execute("SELECT notes_search_fold(%s)", [text])
        assert cursor.fetchone()[0] == folded
    assert len(folded) <= max(1 + MAX_MARKS * 2, text.count("é"))
