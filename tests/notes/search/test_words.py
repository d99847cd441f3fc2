"""Every word of a text is found by that word, and every phrase by its words, whatever signs stand
between them."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from notes.models import Note, NoteSearchEntry
from notes.search import search
from notes.search.filling import fill
from notes.search.folding import fold
from tests.effort import STEP
from tests.notes.writing import note_create

TEXTS = {
    "price <limit while total >budget": ["limit", "total", "budget", '"price limit"'],
    "if (a<bee && cee>dee)": ["bee", "cee", "dee", "a<bee"],
    '<button onclick="saveDraft()"><input placeholder="Searchbox hint">': [
        "button",
        "onclick",
        "placeholder",
        '"searchbox hint"',
        "savedraft",
        "save draft",
    ],
    '<div class="wrapper">': ["div", "wrapper", "class"],
    "<!-- remember the fixture -->": ["remember", "fixture"],
    "List<OrderLine> Option<Box<dyn Trait>>, <T extends Comparable> vector<int>": [
        "orderline",
        "order line",
        "box",
        "dyn",
        "trait",
        "comparable",
        "vector<int>",
        "int",
    ],
    '<img alt="altword picture">&nbsp;&#x41;': ["altword", "picture", "nbsp", "x41", "&nbsp;"],
    "https://www.example.org/docs/getting-started?utm_source=newsletter&ref=homepage#install-guide"
    "": [
        "getting-started",
        "getting started",
        "newsletter",
        "homepage",
        "install",
        "install-guide",
        "utm_source",
        "docs",
        "example.org",
        "www.example.org",
        "https://www.example.org/docs/getting-started",
    ],
    "git@github.com:user/repo-name.git ssh://host:22/p": [
        "repo-name",
        "user/repo-name",
        "git@github.com",
        "repo",
        "host:22",
    ],
    "it is -5 degrees, +7.25e3 or 3,14; v1.2.3": ["5", "7", "25e3", "3,14", "14", "1.2.3", "v1.2"],
    "don't; it\u2019s Anna_Berg's to-do": ["don't", "don\u2019t", "it's", "berg", "to-do"],
    "Django使用指南 v2でテスト": ["django", "使用", "v2", "テスト"],
    "docu\u00admen\u00adta\u00adtion run\u200bning zero\u200dwidth \ufeffbegin": [
        "documentation",
        "running",
        "run\u00adning",
        "zerowidth",
        "zero\u200cwidth",
        "begin",
    ],
}
STOPPED = [
    ("Hamlet", "To be, or not to be, that is the question"),
    ("Band", "I saw The Who and The The and The Band live"),
    ("Shoes", "She was running to the store"),
    ("Schuhe", "Die Häuser und die Bäume sind nicht mehr da, sagte der Mann"),
    ("Chaussures", "Les enfants ne sont pas dans la maison, et que fait le chien?"),
]

#: Letters and digits of several scripts, and all that may stand between words.
LETTERS = st.sampled_from("abcdeXYZ059éßøŁжΩא\u0301")
BETWEEN = st.sampled_from(
    [*"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \n\t…“„–€🎉", "<!--", "://", "&#x", "\ue0b0", "☀\ufe0f"]
)
CODE = st.lists(st.text(LETTERS, min_size=1, max_size=8) | BETWEEN, max_size=40).map("".join)


def found(owner: User, query: str, language: str = "") -> list[str]:
    return [hit.title for hit in search(owner=owner, query=query, language=language).hits]


@pytest.mark.parametrize(
    ("text", "query"), [(text, query) for text, queries in TEXTS.items() for query in queries]
)
def test_words_are_found_whatever_stands_between_them(alice: User, text: str, query: str) -> None:
    note_create(owner=alice, title="x", content=text)
    note_create(owner=alice, title="other", content="nothing of all that")
    hits = search(owner=alice, query=query).hits
    assert [(hit.title, hit.mode) for hit in hits] == [("x", "words")]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=CODE)
def test_every_word_of_any_text_is_found_by_that_word(alice: User, text: str) -> None:
    Note.objects.all().delete()
    note_create(owner=alice, title="", content=text)
    words = re.findall(r"[^\W_]+", fold(text))
    for word in dict.fromkeys(words):
        hits = search(owner=alice, query=f'"{word}"').hits
        assert [hit.mode for hit in hits] == ["words"], word
    for before, after in zip(words, words[1:], strict=False):
        hits = search(owner=alice, query=f'"{before} {after}"').hits
        assert [hit.mode for hit in hits] == ["words"], (before, after)


@pytest.mark.parametrize("languages", [1, 4, 5])
@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ('"to be or not to be"', ["Hamlet"]),
        ('"the who"', ["Band"]),
        ('"The The"', ["Band"]),
        ('"to be"', ["Hamlet"]),
        ('"that is the"', ["Hamlet"]),
        ('"be to"', []),
        ('"the who" or "the the"', ["Band"]),
        ('-"to be" the', ["Band"]),
        ("to-be", ["Hamlet"]),
    ],
)
def test_phrase_is_its_words_side_by_side_whatever_the_language(
    alice: User, languages: int, query: str, titles: list[str]
) -> None:
    for title, content in STOPPED[:2] + (STOPPED[2:languages] if languages > 1 else []):
        note_create(owner=alice, title=title, content=content)
    if query.endswith(" the"):
        assert titles[0] in found(alice, query)
        assert "Hamlet" not in found(alice, query)
        return
    for language in ("", "english", "german", "simple"):
        assert found(alice, query, language) == titles, language


@pytest.mark.parametrize("language", ["", "english", "german", "simple"])
def test_phrase_is_found_in_notes_of_another_language_than_is_asked_for(
    alice: User, language: str
) -> None:
    note_create(
        owner=alice, title="x", content="Getting started: install guides", language="english"
    )
    for query in ('"getting started"', "getting-started", '"Install guides"'):
        assert found(alice, query, language) == ["x"], query
    assert found(alice, '"started getting"', language) == []


def test_phrase_of_words_that_occur_often_is_found_at_the_end(alice: User) -> None:
    often = "the cat and the dog of a house. " * 400
    note_create(owner=alice, title="x", content=f"{often} and to the lighthouse of a keeper")
    note_create(owner=alice, title="long", content=f"{often * 8} and who is the keeper of bees")
    for query in ('"to the lighthouse"', '"of a keeper"', '"lighthouse of a keeper"'):
        assert found(alice, query) == ["x"], query
    assert found(alice, '"the keeper of bees"') == ["long"]
    for query in ('"to a lighthouse"', '"the of"', '"cat the"'):
        assert found(alice, query) == [], query


@pytest.mark.parametrize("query", ["don't", "isik"])
def test_what_is_left_of_a_word_finds_no_other_in_another_language(alice: User, query: str) -> None:
    note_create(owner=alice, title="x", content="This is the work that is to be done.")
    note_create(owner=alice, title="y", content="Bu bir nottur ve çok güzel", language="turkish")
    assert found(alice, query) == []
    note_create(owner=alice, title="z", content="Don't; güneş ışık", language="turkish")
    assert found(alice, query) == ["z"]


def test_entries_that_are_marked_are_written_anew(alice: User) -> None:
    note_create(owner=alice, title="short", content="milk")
    note_create(owner=alice, title="long", content="milk " * 50_000)
    entries = NoteSearchEntry.objects.order_by("note_id", "start")
    fill()
    whole = list(entries.values_list("note_id", "start", "language", "tsv"))
    NoteSearchEntry.objects.filter(start__lt=2).update(pending=True, tsv="=o:1 left over")
    fill()
    assert list(entries.values_list("note_id", "start", "language", "tsv")) == whole
    assert not entries.filter(pending=True).exists()


#: Runs in which PostgreSQL's parser reads again and again, and others like them.
RUNS = [
    "a-1-",
    "<!--",
    "<a ",
    "a-",
    "-",
    ".",
    "a.",
    "1.",
    "1e",
    "-1",
    "a@",
    "/",
    "a/",
    "http://",
    "&#",
    "&a",
    "_",
    "aB",
    "a1",
    "A",
    "1",
    "é-",
    "ж.1",
    "日a",
    "\u00ad",
    "a\u200d",
    "a\u0301",
    "\u0301\u200d",
    "\u05b0\u200d",
    "the ",
    "…",
]


def spent(text: str) -> float:
    """Seconds in the database, the least of three."""
    with connection.cursor() as cursor:
        times: list[float] = []
        for _ in range(3):
            cursor.execute(
                "EXPLAIN (ANALYZE, FORMAT JSON) SELECT notes_search_body(%s, 'english')", [text]
            )
            times.append(cursor.fetchone()[0][0]["Execution Time"] / 1000)
    return min(times)


@pytest.mark.thorough
@pytest.mark.parametrize("run", RUNS, ids=map(ascii, RUNS))
def test_time_of_an_entry_is_in_proportion_to_its_text(db: None, run: str) -> None:
    text = (run * 80_000)[:80_000]
    small, large = spent(text[: len(text) // STEP]), spent(text)
    assert large < 4 * STEP * max(small, 0.004)


#: Letters that take more bytes when they are small, and words that stemmers make longer.
GROWING = ["Ⱥ" * 1000, "Ⱦ" * 683, "Ⱥ" * 100_000, "k" * 2046, "k" * 2030 + "blized" * 2, "İ" * 2000]


@pytest.mark.parametrize("word", GROWING, ids=lambda word: f"{len(word)} of {word[0]}")
def test_word_that_is_too_long_for_the_index_is_saved_and_found_as_text(
    alice: User, word: str
) -> None:
    note_create(owner=alice, title="other", content="nothing of all that")
    note_create(owner=alice, title="x", content=f"before {word} behind")
    assert found(alice, "before") == found(alice, "behind") == ["x"]
    for typing in (False, True):
        assert [hit.title for hit in search(owner=alice, query=word, typing=typing).hits] == ["x"]
    assert found(alice, f'"{word}"') == found(alice, f"behind {word}") == ["x"]


def test_words_are_found_without_points_and_with_any_apostrophe(alice: User) -> None:
    note_create(owner=alice, title="hebrew", content="שָׁלוֹם עולם")
    note_create(owner=alice, title="arabic", content="مُحَمَّد", language="simple")
    note_create(owner=alice, title="ukrainian", content="п\u02bcять яблук")
    note_create(owner=alice, title="stroke", content="Ⱥⱥ Ⱦⱦ")
    for query, title in [
        ("שלום", "hebrew"),
        ("שָׁלוֹם", "hebrew"),
        ("محمد", "arabic"),
        ("п'ять", "ukrainian"),
        ("п\u2019ять", "ukrainian"),
        ("п\u02bcять", "ukrainian"),
        ("aa ⱦⱦ", "stroke"),
    ]:
        assert found(alice, query) == [title], query
