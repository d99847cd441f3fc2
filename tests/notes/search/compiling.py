"""Queries as PostgreSQL is asked them, without an owner's notes."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from notes.search.compiler import Compiler
from notes.search.grammar import Query


def compiler(query: Query, *, languages: Sequence[str], complete: bool = True) -> Compiler:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM notes_search_lexize(%s, %s, %s)",
            [
                [term.text for term in query.terms],
                [term.phrase for term in query.terms],
                list(languages),
            ],
        )
        lexized = cursor.fetchall()
    return Compiler(query, lexized=lexized, languages=languages, complete=complete)
