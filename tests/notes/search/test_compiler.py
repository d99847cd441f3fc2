"""What was typed, as the grammar reads it and as PostgreSQL is asked."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notes.search.compiler import Compiled
from notes.search.grammar import MAX_CHARACTERS, MAX_TERMS, parse
from notes.search.statements import plan_of
from tests.notes.search.compiling import compiler

ANY = st.text(
    st.sampled_from("ab \"'-|&!()<>:*\\%=.@/\x00é日本ア🎉\u0301\n") | st.characters(), max_size=80
)


def terms(typed: str) -> list[list[str]]:
    return [
        [
            f"{'-' if term.negated else ''}{repr(term.text) if term.phrase else term.text}"
            f"{'…' if term.unfinished else ''}"
            for term in group
        ]
        for group in parse(typed).groups
    ]


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    """PostgreSQL's parser reads what is typed."""


def compiled(
    typed: str, *languages: str, prefixes: bool = False, complete: bool = True
) -> Compiled:
    read = compiler(parse(typed), languages=languages or ("english",), complete=complete)
    return read.compiled(prefixes=prefixes)


@pytest.mark.parametrize(
    ("typed", "groups"),
    [
        ("milk eggs", [["milk", "eggs…"]]),
        ("milk eggs ", [["milk", "eggs"]]),
        ('"new york" -cats', [["'new york'", "-cats"]]),
        ('-"new york', [["-'new york'"]]),
        ("red or blue OR green", [["red"], ["blue"], ["green…"]]),
        ("or red or or blue or", [["red"], ["blue"]]),
        ('"or" x', [["'or'", "x…"]]),
        ('foo"bar baz"qux', [["foo", "'bar baz'", "qux…"]]),
        ("-x - \"\" ''", [["-x", "''…"]]),
        ('run --rm -x --"a b" ---', [["run", "rm", "-x", "'a b'"]]),
        ("--hel", [["hel…"]]),
        ("state-of-the-art", [["state-of-the-art…"]]),
        ("a\x00b\ud800c", [["abc…"]]),
        ("  ", []),
        ('milk "new yo', [["milk", "'new yo'…"]]),
        ('"new yo ', [["'new yo '"]]),
        ("x" * 999 + " half", [["x" * 999 + "…"]]),
        ("x" * 997 + " half", [["x" * 997 + "…"]]),
        ("\u201cnew york\u201d \u201ea b\u201c", [["'new york'", "'a b'"]]),
        (" " + "x" * 2000, [["x" * 1000 + "…"]]),
    ],
)
def test_grammar_reads(typed: str, groups: list[list[str]]) -> None:
    assert terms(typed) == groups


def test_grammar_is_bounded() -> None:
    assert sum(map(len, terms("a " * 5000))) == MAX_TERMS
    assert terms("x" * 5000) == [["x" * MAX_CHARACTERS + "…"]]


@pytest.mark.parametrize(
    ("typed", "languages", "match"),
    [
        ("running", ["english"], "(('run'))"),
        (
            "running häuser",
            ["english", "german"],
            "(('run') | ('running')) & (('hauser') | ('haus'))",
        ),
        ("the cat", ["english"], "('cat')"),
        ("the", ["english"], "('the')"),
        ("garden -cats", ["english"], "('garden') & !(('cat') | ('cats'))"),
        ("東京都", ["simple"], "('東京' & '京都')"),
        ("我", ["simple"], "('我':*)"),
    ],
)
def test_terms_are_asked_in_every_language(typed: str, languages: list[str], match: str) -> None:
    def bare(text: str) -> str:
        return text.replace("(", "").replace(")", "")

    assert bare(compiled(typed, *languages).match) == bare(match)


def test_stop_word_of_one_language_asks_nothing_of_its_notes() -> None:
    assert "'=l:german'" in compiled("die hauser", "english", "german").match
    assert "=" not in compiled("die", "english", "german").match
    assert "=" not in compiled("hauser -die", "english", "german").match


def test_prefix_is_made_of_the_last_word_only() -> None:
    assert compiled("sho runni", prefixes=True).prefixes == {"runni"}
    assert compiled('sho "new yor', prefixes=True).prefixes == {"yor"}
    for typed in ("ru", "runni ", '"runni"', '"runni ', "-runni", '-"runni', "runni -x", "=o:1"):
        assert not compiled(typed, prefixes=True).prefixes, typed
    assert compiled("Node.jso", prefixes=True).prefixes == {"jso"}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(typed=ANY, languages=st.sets(st.sampled_from(["english", "german", "simple", "arabic"])))
def test_whatever_is_typed_is_a_query(typed: str, languages: set[str]) -> None:
    for complete in (True, False):
        way = compiled(typed, *sorted(languages), prefixes=True, complete=complete)
        with connection.cursor() as cursor:
            for text in (way.match, way.exact, *way.ranked):
                cursor.execute("SELECT %s::tsquery::text", [text])
                (read,) = cursor.fetchone()
                assert "'=o" not in read
        assert not any(prefix.startswith("=") for prefix in way.prefixes)


def test_small_owners_and_common_words_are_read_from_the_window() -> None:
    assert plan_of(has_many=False, matches=6_001) == "window"
    assert plan_of(has_many=True, matches=6_001) == "window"
    assert plan_of(has_many=True, matches=6_000) == "index"
