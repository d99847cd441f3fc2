"""Two people who use the same words: neither ever sees a note, a count or a facet of the other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from accounts.models import User
from notes.models import Note
from notes.search import Page, SearchFilters, search, statements
from notes.search.compiler import Compiled
from notes.search.grammar import parse
from notes.search.statements import Plan, Sql
from tests.notes.search.compiling import compiler
from tests.notes.writing import note_create

SHARED = "milk eggs run running the who 日本語 東京 getUserName café =o:1 c++ état die Haus"
WORDS = SHARED.split()
SIGNS = ["-", '"', "or ", ":*", "=o:", "'", "& ", "| ", "!", "(", ")", "\\", "%", "🎉 "]
QUERIES = 500
VARIATIONS = 20


@pytest.fixture
def people(alice: User, mallory: User) -> list[User]:
    chance = random.Random(7)
    for person, name in ((alice, "a"), (mallory, "m")):
        for number in range(8):
            note_create(
                owner=person,
                title=f"{name}{number} {chance.choice(WORDS)}",
                content=" ".join(chance.choices(WORDS, k=12)),
                folder=f"{name}/{chance.choice('xy')}" if number % 2 else "shared",
                tags=[name, chance.choice(["x", "y"])],
                language=chance.choice(["", "english", "german", "simple"]),
            )
    # One note in several entries each, so that their statement is tried as well.
    for person, name in ((alice, "a"), (mallory, "m")):
        note_create(owner=person, title=f"{name} long", content="milk " * 20_500 + "eggs")
    return [alice, mallory]


def any_query(chance: random.Random) -> str:
    parts = chance.choices(WORDS + SIGNS, k=chance.randint(1, 5))
    return "".join(part + (" " if chance.random() < 0.7 else "") for part in parts)


def asked(people: list[User], chance: random.Random) -> Iterator[tuple[User, Sql]]:
    folders = [None, "/", "/shared/", "/a/", "/m/"]
    for _ in range(QUERIES):
        query = parse(any_query(chance))
        read = compiler(query, languages=["english", "german", "simple"])
        ways = [read.compiled(), read.compiled(prefixes=True)]
        for _ in range(VARIATIONS):
            person = chance.choice(people)
            filters = SearchFilters(
                folder=chance.choice(folders),
                subfolders=chance.random() < 0.5,
                tags=tuple(chance.sample(["a", "m", "x"], k=chance.choice([0, 0, 1, 2]))),
            )
            yield person, statement(person, query.text, chance.choice(ways), filters, chance)


def statement(
    person: User, text: str, compiled: Compiled, filters: SearchFilters, chance: random.Random
) -> Sql:
    page = Page(limit=100)
    if not compiled.match or chance.random() < 0.03:
        return statements.substring_statement(person, text or "m", filters, page)
    plan: Plan = chance.choice(["window", "index"])
    long_notes = chance.random() < 0.1
    return statements.hits_statement(
        person, compiled, filters, page, plan=plan, long_notes=long_notes
    )


def answers(queries: Iterator[tuple[User, Sql]]) -> Iterator[tuple[User, list[Any]]]:
    """Each statement's rows. Statements of the same shape are planned once."""
    raw = connection.connection
    with psycopg.Cursor(raw) as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        for person, sql in queries:
            cursor.execute(sql.text, sql.values, prepare=True)
            yield person, cursor.fetchall()


@pytest.mark.thorough
def test_ten_thousand_queries_show_nothing_of_another(people: list[User]) -> None:
    own = {
        person.pk: set(Note.objects.owned_by(person).values_list("pk", flat=True))
        for person in people
    }
    foreign = {
        person.pk: {name, f"/{name}/x/", f"/{name}/y/"}
        for person, name in zip(people, "ma", strict=True)
    }
    number = hits = 0
    for person, rows in answers(asked(people, random.Random(11))):
        number += 1
        total, facets = rows[0][:2]
        found = {note_id for _, _, note_id, *_ in rows if note_id is not None}
        assert found <= own[person.pk]
        assert total == len(found)
        for counted in (facets or {}).values():
            assert not foreign[person.pk] & {value for value, _ in counted or ()}
        hits += len(found)
    assert number == QUERIES * VARIATIONS == 10_000
    assert hits > 5_000


def test_whole_searches_show_nothing_of_another(people: list[User]) -> None:
    chance = random.Random(13)
    for _ in range(60):
        person, name = chance.choice([(people[0], "a"), (people[1], "m")])
        page = search(owner=person, query=any_query(chance), typing=chance.random() < 0.5)
        assert all(hit.title.startswith(name) for hit in page.hits)
        if page.facets is not None:
            folders = {facet.value for facet in page.facets.folders}
            assert folders <= {"/shared/", f"/{name}/x/", f"/{name}/y/", "/"}
            assert all(facet.value in {name, "x", "y"} for facet in page.facets.tags)
