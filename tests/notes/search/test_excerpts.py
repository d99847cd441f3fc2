from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.search.excerpts import BEFORE, LENGTH, MAX_PLACES, Excerpt, Finder, excerpt_of
from tests.effort import growth

TEXT = st.text(st.sampled_from("aAbBéß \n\t日本…<&\u0301") | st.characters(), max_size=1000)


def excerpt(text: str, finder: Finder) -> Excerpt:
    return excerpt_of(text, finder, finder.places(text))


def marked(text: str, finder: Finder) -> list[str]:
    return [text[start:end] for start, end in finder.marks(text)]


def test_excerpt_is_the_beginning_where_nothing_is_marked() -> None:
    shown = excerpt("one  two\n\nthree", Finder(literals=["absent"]))
    assert (shown.text, shown.marks) == ("one two three", ())
    assert excerpt("", Finder(literals=["x"])).text == ""


def test_excerpt_cuts_no_word_in_two() -> None:
    text = f"{'before ' * 50}needle{' after' * 50}"
    shown = excerpt(text, Finder(literals=["NEEDLE"])).text
    assert set(shown.split()) == {"…", "before", "needle", "after"}


def test_excerpt_is_where_most_terms_are_together() -> None:
    text = f"salt {'x ' * 300} salt and pepper {'x ' * 300} pepper"
    shown = excerpt(text, Finder(lexemes=["salt", "pepper"]))
    assert "salt and pepper" in shown.text


def test_literals_are_found_as_they_are_in_any_case() -> None:
    assert marked("a.b A.B axb", Finder(literals=["a.b"])) == ["a.b", "A.B"]
    assert marked("abc", Finder()) == []


def test_words_are_marked_without_regard_to_accents_and_forms_of_letters() -> None:
    assert marked("Cafe\u0301 café CAFÉ", Finder(lexemes=["cafe"])) == [
        "Cafe\u0301",
        "café",
        "CAFÉ",
    ]
    assert marked("ﬁne Straße ＡＢＣ", Finder(lexemes=["fine", "strasse", "abc"])) == [
        "ﬁne",
        "Straße",
        "ＡＢＣ",
    ]


def test_parts_of_identifiers_are_marked() -> None:
    text = "getUserName HTTPServer snake_user_case v1.2.3 username"
    assert marked(text, Finder(lexemes=["user", "server"])) == ["User", "Server", "user"]


def test_prefixes_mark_the_whole_word() -> None:
    assert marked("running shoes prunning", Finder(prefixes=["runni"])) == ["running"]


def test_words_that_may_have_a_stem_are_marked_once_it_is_known() -> None:
    finder = Finder(lexemes=["needl"])
    places = finder.places("Needles, kneedle needless")
    assert finder.candidates(places) == {"needles", "needless"}
    finder.learn({"needles", "needless"}, {"needles"})
    assert marked("Needles, kneedle needless", finder) == ["Needles"]


@pytest.mark.thorough
def test_places_in_a_text_of_nothing_else_are_bounded() -> None:
    many = " ".join(f"needle{number}" for number in range(50_000))
    one = "needle" * 99_999
    finder = Finder(lexemes=["needl"])
    assert len(finder.places(many)) == MAX_PLACES
    assert finder.candidates(finder.places(one)) == set()
    assert growth(lambda size: finder.places(many[:size]), len(many)) < 4
    assert growth(lambda size: finder.places(one[:size]), len(one)) < 4


@given(text=TEXT, literals=st.lists(TEXT.filter(len).map(lambda text: text[:5]), max_size=3))
def test_excerpt_marks_are_ranges_of_what_it_shows(text: str, literals: list[str]) -> None:
    finder = Finder(literals=literals, lexemes=["ab"], prefixes=["b"])
    shown = excerpt(text, finder)
    ends = [0, *(position for span in shown.marks for position in span), len(shown.text)]
    assert ends == sorted(ends)
    assert len(shown.text) <= LENGTH + BEFORE


def test_phrases_are_marked_as_a_whole_and_by_their_longer_words_only() -> None:
    finder = Finder(phrases=[("let", "it", "be"), ("jo", "smith")])
    text = "it may be: Let it, be! let it bees; outlet it be jo.smith@x"
    assert marked(text, finder) == ["Let it, be", "jo.smith"]


def test_invisible_characters_within_words_are_marked_with_them() -> None:
    text = "The docu\u00admen\u00adta\u00adtion \ufeffis zero\u200dwidth"
    finder = Finder(literals=["documentation", "is", "zerowidth"])
    assert marked(text, finder) == [
        "docu\u00admen\u00adta\u00adtion",
        "is",
        "zero\u200dwidth",
    ]
