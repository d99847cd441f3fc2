from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from notes.excerpts import (
    BEFORE,
    CANDIDATES,
    LENGTH,
    candidates,
    excerpt_of,
    finder_of,
    marks_of,
    with_words,
)

TEXT = st.text(st.sampled_from("aAbé \n\t日…<&") | st.characters(), max_size=1000)


def test_excerpt_is_the_beginning_where_nothing_is_marked() -> None:
    excerpt = excerpt_of("one  two\n\nthree", finder_of(literals=["absent"]))
    assert (excerpt.text, excerpt.marks) == ("one two three", ())
    assert excerpt_of("", finder_of(literals=["x"])).text == ""


def test_excerpt_cuts_no_word_in_two() -> None:
    text = f"{'before ' * 50}needle{' after' * 50}"
    shown = excerpt_of(text, finder_of(literals=["NEEDLE"])).text
    assert set(shown.split()) == {"…", "before", "needle", "after"}


def test_literals_are_found_as_they_are_in_any_case() -> None:
    assert marks_of("a.b A.B axb", finder_of(literals=["a.b"])) == ((0, 3), (4, 7))
    assert marks_of("abc", finder_of()) == ()


def test_candidates_of_a_text_of_nothing_else_are_bounded() -> None:
    finder = finder_of(lexemes=["needl"])
    assert candidates(finder, "Needles, kneedle needless") == {"needles", "needless"}
    many = " ".join(f"needle{number}" for number in range(5000))
    assert len(candidates(finder, many)) == CANDIDATES
    assert candidates(finder, "needle" * 100_000) == set()


@given(text=TEXT, literals=st.lists(TEXT.filter(len).map(lambda text: text[:5]), max_size=3))
def test_excerpt_marks_are_ranges_of_what_it_shows(text: str, literals: list[str]) -> None:
    finder = with_words(finder_of(literals=literals, lexemes=["ab"]), ["ab", "abb"])
    excerpt = excerpt_of(text, finder)
    ends = [0, *(position for span in excerpt.marks for position in span), len(excerpt.text)]
    assert ends == sorted(ends)
    assert len(excerpt.text) <= LENGTH + BEFORE
    wanted = "|".join(re.escape(each) for each in [*literals, "abb", "ab"])
    for start, end in excerpt.marks:
        assert re.fullmatch(wanted, excerpt.text[start:end], re.IGNORECASE)
