"""Marks in a note that was opened from a search: on its texts alone, the first with an anchor."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.pages.marking import html_marked
from notes.search import excerpts
from notes.search.filling import fill
from notes.search.folding import Folded
from tests.notes.writing import note_create
from web.markdown import render

pieces = ["a & b ", "<b>", "*x* ", "`c` ", '[l](http://e.org "t>x") ', "# ", "\n\n", "'q' "]


def finder_of(word: str):
    return lambda text: tuple(match.span() for match in re.finditer(re.escape(word), text))


def test_texts_are_marked_and_tags_and_entities_are_left_alone():
    html = '<p title="a>b">a &amp; <em>b a</em></p>'
    assert html_marked(html, finder_of("a")) == (
        '<p title="a>b"><mark id="found">a</mark> &amp; <em>b <mark>a</mark></em></p>'
    )
    assert html_marked("<p>x&amp;y</p>", finder_of("amp")) == "<p>x&amp;y</p>"


@given(st.lists(st.sampled_from(pieces), max_size=12).map("".join), st.sampled_from("abxqt>&'"))
def test_marks_change_nothing_but_add_themselves(text, word):
    html = render(text)
    found = html_marked(html, finder_of(word))
    assert unescape(re.sub(r"</?mark[^>]*>", "", found)) == unescape(html)
    assert ('<mark id="found">' in found) == ("<mark" in found)


@pytest.mark.django_db
def test_note_that_was_found_shows_where(client_of, user):
    note = note_create(
        owner=user, title="T", content="Some **parties** &\n\n- a `party`\n- <b>partying</b>"
    )
    page = client_of(user).get("/notes/?q=party").text
    assert f'href="/notes/{note.id}/?q=party#found"' in page
    page = client_of(user).get(f"/notes/{note.id}/?q=party").text
    assert '<strong><mark id="found">parties</mark></strong> &amp;' in page
    assert "<code><mark>party</mark></code>" in page
    assert "&lt;b&gt;<mark>partying</mark>&lt;/b&gt;" in page
    assert '"found"' not in client_of(user).get(f"/notes/{note.id}/?q=zebra").text
    assert '"found"' not in client_of(user).get(f"/notes/{note.id}/").text


@pytest.mark.django_db
def test_note_that_was_found_by_its_beginning_or_its_signs_shows_where(client_of, user):
    note = note_create(owner=user, title="T", content="call the_function(x) ->> y")
    for query, shown in (("func", '<mark id="found">function'), ("->>", "-&gt;&gt;</mark>")):
        assert shown in client_of(user).get(f"/notes/{note.id}/", {"q": query}).text


@pytest.mark.thorough
@pytest.mark.django_db
def test_long_note_is_opened_at_the_part_that_was_found(client_of, user):
    note = note_create(owner=user, title="T", content="word word\n\n" * 30_000 + "zebra")
    page = client_of(user).get(f"/notes/{note.id}/?q=zebra").text
    assert "Shown: part 3 of 3." in page
    assert '<mark id="found">zebra</mark>' in page
    assert "Shown: part 1 of 3." in client_of(user).get(f"/notes/{note.id}/?q=zebra&part=1").text


@pytest.mark.thorough
@pytest.mark.parametrize("query", ["zebra", '"at the end"', "zeb", "zebra -absent", "!?!"])
def test_long_note_is_opened_without_reading_all_of_it(client_of, user, monkeypatch, query):
    text = "मुंबई शहर में बारिश हो रही है\n\n" * 15_000
    note = note_create(owner=user, title="T", content=f"{text}zebra at the end !?!")
    fill()
    read = []

    class Counted(Folded):
        def __init__(self, text):
            read.append(len(text))
            super().__init__(text)

    monkeypatch.setattr(excerpts, "Folded", Counted)
    page = client_of(user).get(f"/notes/{note.id}/", {"q": query}).text
    assert re.search("Shown: part ([0-9]+) of \\1", page)
    assert '<mark id="found">' in page
    assert max(read) < len(text) / 2
