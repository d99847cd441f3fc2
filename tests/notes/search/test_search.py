from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from notes.exceptions import NoteInvalid, SearchTimeout
from notes.models import NoteSearchEntry
from notes.search import Page, SearchFilters, SearchHit, SearchPage, engine, search, statements
from notes.search.filling import fill
from tests.notes.writing import note_create, note_delete, note_update

HOSTILE = [
    "the", '"', '""', "-", "-the", "or", "or or", ":*", "'\":*", "a & | !", "🎉", "()", "\\", "<->",
    "a' | b \\ <-> !", "%", "_", "=o:42", "\x00", "a\x00b", "\ud83d", "ʻʼ", " ", "", "(((", "!!a",
    "$$", "E'\\''", "x" * 5000, "a " * 5000, "日", "テスト", "-日本", '"日本', "\u0301" * 2000,
]  # fmt: skip
QUERY_TEXT = st.text(
    alphabet=st.sampled_from("ab \"'-|&!()<>:*\\%_\x00é日本ア🎉\u0301\n") | st.characters(),
    max_size=60,
)


def found(owner: User, query: str, **options: Any) -> list[str]:
    return [hit.title for hit in search(owner=owner, query=query, **options).hits]


def only(page: SearchPage) -> SearchHit:
    (hit,) = page.hits
    assert (page.total, page.total_is) == (1, "exact")
    return hit


def marked(text: str, marks: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[start:end] for start, end in marks]


def test_search_finds_words_by_their_stem_and_marks_them(alice: User) -> None:
    note_create(owner=alice, title="Running parties", content="He runs.\n\nThe runway of a party.")
    hit = only(search(owner=alice, query="run party"))
    assert hit.mode == "words"
    assert marked(hit.title, hit.title_marks) == ["Running", "parties"]
    assert hit.excerpt == "He runs. The runway of a party."
    assert marked(hit.excerpt, hit.marks) == ["runs", "party"]


def test_search_ranks_a_word_in_the_title_first(alice: User) -> None:
    note_create(owner=alice, title="milk")
    note_create(owner=alice, title="b", content="milk")
    note_create(owner=alice, title="other", content="nothing")
    assert found(alice, "milk") == ["milk", "b"]
    ranks = [hit.rank for hit in search(owner=alice, query="milk").hits]
    assert ranks[0] > ranks[1] > 0


def test_search_puts_the_newest_change_first_among_equals(alice: User) -> None:
    first = note_create(owner=alice, title="1", content="milk")
    note_create(owner=alice, title="2", content="milk")
    assert found(alice, "milk") == ["2", "1"]
    note_update(owner=alice, note_id=first.pk, title="3")
    assert found(alice, "milk") == ["3", "2"]


@pytest.mark.parametrize(
    ("text", "query", "mode"),
    [
        ("The Who", "the who", "substring"),
        ("To do", "to do", "substring"),
        ("IT", "it", "substring"),
        ("これは日本語のテストです", "テスト", "words"),
        ("これは日本語のテストです", "日本", "words"),
        ("我们正在", "我", "words"),
        ("我们正在", "正", "words"),
        ("한국어 문장입니다", "문장", "words"),
        ("go 部署 the deployment", "go 部署 deployment", "words"),
        ("party🎉 here", "🎉", "substring"),
        ("50%_off", "%_o", "substring"),
        ("C++ and C#", "c++", "words"),
        ("running shoes", "runni", "prefix"),
        ("running shoes", "sho runni", "prefix"),
        ("who the", "the who", "words"),
        ("red or blue", "green or blue", "words"),
        ("state-of-the-art", "art", "words"),
        ("node.js", "node.js", "words"),
        ("new york", '"new york"', "words"),
        ("the cat", "-dog", "words"),
        ("a \\ b", "\\", "substring"),
        ("list all: ls -la", "ls -la", "substring"),
        ('git commit -m "fix it"', 'git commit -m "fix it"', "substring"),
        ("rm -rf node_modules", "rm -rf", "substring"),
        ("ฉันเรียนภาษาไทยทุกวัน", "ภาษา", "substring"),
        ("we \u2764 it", "\u2764\ufe0f", "substring"),
        ("Über", "über", "words"),
    ],
)
@pytest.mark.parametrize("place", ["title", "content"])
def test_search_finds_what_was_typed_and_says_how(
    alice: User, text: str, query: str, mode: str, place: str
) -> None:
    values: dict[str, Any] = {place: text}
    note_create(owner=alice, **values)
    assert only(search(owner=alice, query=query)).mode == mode


def test_phrase_that_is_longer_than_what_is_read_is_found(alice: User) -> None:
    text = "Call me Ishmael. Some years ago, never mind how long precisely, I went to sea. " * 20
    note_create(owner=alice, title="x", content=text)
    for length in range(1000, 1012):
        assert only(search(owner=alice, query=f'"{text[:length]}"')).mode == "words"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("york new", '"new york"'),
        ("york new", "\u201cnew york\u201d"),
        ("the cat in the garden", "garden -cats"),
        ("go to the deployment", "go 部署 deployment"),
        ("部署", "go 部署 deployment"),
        ("我们正在建设", "正我"),
        ("abc", "_b"),
        ("abc", "%"),
        ("milk", ""),
        ("milk", "  \x00 "),
    ],
)
def test_search_finds_nothing_where_there_is_nothing(alice: User, text: str, query: str) -> None:
    note_create(owner=alice, title="x", content=text)
    assert search(owner=alice, query=query) == SearchPage((), 0, "exact")


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("ru", ["running", "ruby"]),
        ("r", ["running", "ruby"]),
        ("sh", ["running"]),
        ("to", ["tomato"]),
        ("it", ["tomato"]),
        ("shoes ru", ["running"]),
        ("shoes xy", ["running"]),
        ("shoes -red ru", ["running"]),
        ("-shoes ru", ["ruby"]),
        ("absent ru", []),
        ("node.j", ["ruby"]),
        ("node.absent.j", []),
        ("shoes ru ", []),
        ('"for the str', ["running"]),
        ('"for the s', ["running"]),
        ('"the str" x', []),
        ('"absent str', []),
        ("東京sky", ["capital"]),
        ("東京sk", ["capital"]),
        ("language 東京sk", ["capital"]),
        ("大阪sky", []),
        ("ru ", []),
        ("tomato or ru", ["running", "ruby", "tomato"]),
    ],
)
@pytest.mark.parametrize("filler", ["", "filler words " * 2000], ids=["short", "long"])
def test_search_while_the_last_word_is_short(
    alice: User, filler: str, query: str, titles: list[str]
) -> None:
    for title, content in [
        ("running", "shoes for the street"),
        ("ruby", "the language and node.js"),
        ("tomato", "it is a vegetable"),
        ("capital", "東京skyer, 日本 language"),
    ]:
        note_create(owner=alice, title=title, content=filler + content)
    assert set(found(alice, query, typing=True)) == set(titles)


def test_search_sees_a_change_and_not_what_was_there_before(alice: User) -> None:
    note = note_create(owner=alice, title="t", content="milk")
    note_update(owner=alice, note_id=note.pk, content="eggs")
    assert found(alice, "eggs") == ["t"]
    assert found(alice, "milk") == []
    note_delete(owner=alice, note_id=note.pk)
    assert found(alice, "eggs") == []


@pytest.mark.parametrize("query", ["milk", "the", "日本", "-absent", "mil"])
def test_search_never_finds_the_notes_of_another(alice: User, mallory: User, query: str) -> None:
    note_create(owner=alice, title="hers", content="milk the 日本")
    assert found(alice, query) == ["hers"]
    assert search(owner=mallory, query=query) == SearchPage((), 0, "exact")


def test_search_filters_by_folder_tags_and_time(alice: User) -> None:
    first = note_create(owner=alice, title="1", content="milk", folder="a", tags=["x", "y"])
    note_create(owner=alice, title="2", content="milk", folder="a/b", tags=["X"])
    filters: list[tuple[SearchFilters, list[str]]] = [
        (SearchFilters(folder="/a/"), ["2", "1"]),
        (SearchFilters(folder="/a/", subfolders=False), ["1"]),
        (SearchFilters(tags=("x",)), ["2", "1"]),
        (SearchFilters(tags=("x", "Y")), ["1"]),
        (SearchFilters(updated_after=first.updated), ["2"]),
        (SearchFilters(updated_before=first.updated + timedelta(microseconds=1)), ["1"]),
        (SearchFilters(folder="/ab/"), []),
    ]
    for each, titles in filters:
        assert found(alice, "milk", filters=each) == titles
        assert found(alice, "mil", filters=each) == titles


def test_search_pages_hold_each_hit_once(alice: User) -> None:
    for number in range(7):
        note_create(owner=alice, title=str(number), content="milk")
    pages = [found(alice, "milk", page=Page(offset=at, limit=3)) for at in (0, 3, 6, 9)]
    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"], []]
    assert search(owner=alice, query="milk", page=Page(offset=9)).total == 7
    for page in (Page(offset=-1), Page(offset=1001), Page(limit=0), Page(limit=201)):
        with pytest.raises(NoteInvalid):
            search(owner=alice, query="milk", page=page)


def test_search_of_the_newest_notes_only_says_so(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "WINDOW", 3)
    for number in range(3):
        note_create(owner=alice, title=str(number), content="milk")
    page = search(owner=alice, query="milk")
    assert (page.total, page.total_is, page.windowed) == (3, "exact", False)
    note_create(owner=alice, title="3", content="milk")
    page = search(owner=alice, query="milk")
    assert (page.total, page.total_is, page.windowed) == (3, "at_least", True)
    assert [hit.title for hit in page.hits] == ["3", "2", "1"]
    monkeypatch.setattr(statements, "FEW_NOTES", 0)
    page = search(owner=alice, query="milk")
    assert (page.total, page.total_is, page.windowed) == (4, "exact", False)


def test_search_excerpt_is_plain_text_with_ranges(alice: User) -> None:
    content = "<img src=x onerror=alert(1)> &lt;b&gt; <mark>quarterly</mark> \ue000 report"
    note_create(owner=alice, content=content)
    hit = only(search(owner=alice, query="quarterly report"))
    assert hit.excerpt == content
    assert marked(hit.excerpt, hit.marks) == ["quarterly", "report"]


@pytest.mark.parametrize("query", ["needle", "needl", '"the needle"', "<needle"])
def test_search_excerpt_is_around_what_was_found(alice: User, query: str) -> None:
    before, after = "before " * 20_000, " after" * 20_000
    note_create(owner=alice, content=f"{before}\n\nthe needle\n{after}")
    hit = only(search(owner=alice, query=query))
    assert re.fullmatch(r"… (before )+the needle (after )*after …", hit.excerpt)
    assert marked(hit.excerpt, hit.marks)[0] in ("needle", "the needle")
    assert len(hit.excerpt) <= 250


@pytest.mark.parametrize(
    ("content", "query", "words"),
    [
        ("carpet care cars car", "car", ["cars", "car"]),
        ("tries try trial", "trying", ["tries", "try"]),
        ("The sensibility", "sensible", ["sensibility"]),
        ("hopping hope hops", "hop", ["hopping", "hops"]),
        ("jo.smith@example.com", "jo.smith@example.com", ["jo.smith@example.com"]),
        ("let it be, it is", '"let it be"', ["let it be"]),
        ("u1 u2 u288339 u299999 u3", "u299999", ["u299999"]),
        ("v1.2 userID", "userID v1.2", ["v1.2", "userID"]),
        ("go 部署 deployments", "go 部署 deployment", ["go", "部署", "deployments"]),
    ],
)
def test_search_marks_the_words_that_were_found_and_no_others(
    alice: User, content: str, query: str, words: list[str]
) -> None:
    note_create(owner=alice, content=content)
    hit = only(search(owner=alice, query=query))
    assert marked(hit.excerpt, hit.marks) == words


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_search_never_fails_on_a_hostile_query(alice: User, query: str) -> None:
    note_create(owner=alice, title="a note", content="of the 日本 % _ \\ 🎉 ' \"")
    search(owner=alice, query=query)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=QUERY_TEXT, content=QUERY_TEXT.filter(lambda text: "\x00" not in text))
def test_search_never_fails_on_any_query(alice: User, query: str, content: str) -> None:
    note = note_create(owner=alice, title="t", content=content.encode(errors="ignore").decode())
    for hit in search(owner=alice, query=query).hits:
        for text, marks in ((hit.excerpt, hit.marks), (hit.title, hit.title_marks)):
            ends = [0, *(position for span in marks for position in span), len(text)]
            assert ends == sorted(ends)
    note.delete()


@pytest.mark.thorough
@pytest.mark.parametrize("alphabet", ["latin", "cyrillic", "supplementary", "hyphens", "paths"])
def test_note_is_saved_whatever_words_it_holds(alice: User, alphabet: str) -> None:
    numbers = range(140_000)
    texts = {
        "latin": " ".join(f"{n:05x}" for n in numbers),
        "cyrillic": " ".join(f"ж{n:x}ы" for n in numbers),
        "supplementary": " ".join(
            chr(0x20000 + n % 0xA000) + chr(0x20000 + n // 7) for n in numbers
        ),
        "hyphens": " ".join(f"щ{n:x}-ы{n:x}-ю{n:x}" for n in numbers),
        "paths": " ".join(f"/ж{n:x}/ы{n:x}.example.com" for n in numbers),
    }
    text = texts[alphabet][:1_500_000]
    note = note_create(owner=alice, title="first", content=f"needle {text}")
    assert found(alice, "needle") == ["first"]
    fill()
    entries = NoteSearchEntry.objects.filter(note_id=note.pk, pending=False)
    assert entries.count() >= len(text) // 100_000


def test_search_that_takes_too_long_is_an_error_of_its_own(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(user: User, request: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(engine, "TIMEOUT_MS", 20)
    monkeypatch.setattr(engine, "_owner", sleep)
    with pytest.raises(SearchTimeout):
        search(owner=alice, query="milk")


@pytest.mark.thorough
def test_text_that_takes_too_long_to_read_is_no_error_where_words_decided(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_create(owner=alice, title="x", content="milk")
    slow = statements.Sql("SELECT pg_sleep(20)")
    monkeypatch.setattr(engine, "TIMEOUT_MS", 1000)
    monkeypatch.setattr(statements, "substring_statement", lambda *_: slow)
    nothing = SearchPage((), 0, "at_least", windowed=True)
    assert search(owner=alice, query="eggs -milk") == nothing
    assert found(alice, "milk -eggs") == ["x"]
    with pytest.raises(SearchTimeout):
        search(owner=alice, query="🎉")


def test_search_hides_no_other_failure_of_the_database(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(user: User, request: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(engine, "_owner", fail)
    with pytest.raises(OperationalError):
        search(owner=alice, query="milk")
