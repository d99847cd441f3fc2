"""The one search: reads what was typed, chooses how to look, and shows what was found.

Owns the order in which ways to look are tried, and the time a search may take. Where there are
words: the words; where none of them is found, words that begin so; where there is nothing but stop
words and signs, or signs among words that are not found: the text itself. Every hit says which of
these found it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection

from notes.exceptions import NoteInvalid, SearchTimeout
from notes.rules import language_checked
from notes.search import statements
from notes.search.compiler import Compiled, Compiler, with_prefixes_of_all
from notes.search.excerpts import Finder, excerpt_of
from notes.search.grammar import Query, parse
from notes.search.statements import INDEXED, Plan, Sql
from notes.search.values import (
    Facet,
    Facets,
    Page,
    SearchFilters,
    SearchHit,
    SearchMode,
    SearchPage,
)
from notes.time_limits import atomic_within

TIMEOUT_MS = 2000
MAX_OFFSET = 1000
MAX_LIMIT = 200
EVERYTHING = SearchFilters()
FIRST_PAGE = Page()

#: For this transaction: sorting in memory, and no compiling of what runs for milliseconds.
_SETTINGS = "SELECT set_config('work_mem', '64MB', true), set_config('jit', 'off', true)"
_STEMS = """
SELECT word FROM unnest(%s::text[]) AS word WHERE EXISTS (
  SELECT FROM unnest(%s::text[]) AS language
  WHERE tsvector_to_array(to_tsvector(language::regconfig, word)) && %s::text[])
"""


@dataclass(frozen=True, slots=True)
class _Owner:
    """What is known of the owner's notes before looking; ``notes`` is counted to more than few."""

    user: AbstractBaseUser
    notes: int
    has_long_notes: bool
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """``rows``: note, first character to show, rank."""

    total: int
    rows: list[tuple[UUID, int, float]]
    facets: Facets | None
    windowed: bool


@dataclass(frozen=True, slots=True)
class _Request:
    query: Query
    filters: SearchFilters
    page: Page
    language: str
    typing: bool


def search(
    *,
    owner: AbstractBaseUser,
    query: str,
    filters: SearchFilters = EVERYTHING,
    page: Page = FIRST_PAGE,
    language: str = "",
    typing: bool = False,
) -> SearchPage:
    """The owner's notes that match, the best first; SearchTimeout where that takes too long.

    ``language``: read the words as of that one, not of all that the owner's notes are in.
    ``typing``: the last word may go on.
    """
    if not (0 <= page.offset <= MAX_OFFSET and 0 < page.limit <= MAX_LIMIT):
        message = f"An offset of 0 to {MAX_OFFSET} and a limit of 1 to {MAX_LIMIT}."
        raise NoteInvalid(message, field="offset")
    request = _Request(parse(query), filters, page, language_checked(language), typing)
    # Also refuses what is wrong with the filters before anything is looked for.
    statements.filter_lexemes(filters)
    if not request.query.text:
        return SearchPage((), 0, "exact")
    with atomic_within(milliseconds=TIMEOUT_MS, error=SearchTimeout):
        _rows(Sql(_SETTINGS))
        known = _owner(owner)
        return _searched(known, request) if known.notes else SearchPage((), 0, "exact")


def _searched(owner: _Owner, request: _Request) -> SearchPage:
    languages = (request.language,) if request.language else owner.languages
    complete = set(owner.languages) <= set(languages)
    compiler = Compiler(request.query, languages=languages, complete=complete)
    by_text_first = not compiler.says_something
    if by_text_first and (page := _by_text(owner, request)).total:
        return page
    if compiler.has_words:
        for compiled in _ways(compiler, request, languages, complete):
            page = _by_words(owner, request, compiled, languages)
            if page.total:
                return page
    if not by_text_first and _has_signs(request.query):
        return _by_text(owner, request)
    return SearchPage((), 0, "exact")


def _ways(
    compiler: Compiler, request: _Request, languages: Sequence[str], complete: bool
) -> Iterator[Compiled]:
    """The words as they are or as they begin; then, if nothing has them, all as beginnings."""
    first = compiler.compiled(prefixes=request.typing)
    if first.match:
        yield first
    query = with_prefixes_of_all(request.query)
    begun = Compiler(query, languages=languages, complete=complete).compiled(prefixes=True)
    if begun.has_prefix and begun.match != first.match:
        yield begun


def _has_signs(query: Query) -> bool:
    """Whether words alone do not say all that was typed."""
    return any(
        not (character.isalnum() or character.isspace() or character in "\"'-")
        for character in query.text
    )


def _by_words(
    owner: _Owner, request: _Request, compiled: Compiled, languages: Sequence[str]
) -> SearchPage:
    plan = _plan(owner, compiled)
    statement = statements.hits_statement(
        owner.user,
        compiled,
        request.filters,
        request.page,
        plan=plan,
        long_notes=owner.has_long_notes,
    )
    found = _found(statement, windowed=plan == "window" and _overflows(owner))
    finder = Finder(lexemes=compiled.lexemes, prefixes=compiled.prefixes, literals=compiled.runs)
    return _shown(owner, found, finder, compiled, languages)


def _by_text(owner: _Owner, request: _Request) -> SearchPage:
    literal = request.query.literal or request.query.text
    statement = statements.substring_statement(owner.user, literal, request.filters, request.page)
    found = _found(statement, windowed=_overflows(owner))
    return _shown(owner, found, Finder(literals=[literal]), None, ())


def _plan(owner: _Owner, compiled: Compiled) -> Plan:
    if compiled.only_negations:
        return "window"
    matches = 0
    if owner.notes > statements.FEW_NOTES:
        ((explained,),) = _rows(statements.estimate_statement(owner.user, compiled))
        matches = int(explained[0]["Plan"]["Plan Rows"])
    return statements.plan_of(notes=owner.notes, matches=matches)


def _overflows(owner: _Owner) -> bool:
    if owner.notes <= min(statements.FEW_NOTES, statements.WINDOW):
        return False
    ((more,),) = _rows(statements.overflow_statement(owner.user))
    return bool(more)


def _owner(user: AbstractBaseUser) -> _Owner:
    ((notes, has_long_notes, languages),) = _rows(statements.owner_statement(user))
    return _Owner(user, notes, has_long_notes, tuple(languages))


def _found(statement: Sql, *, windowed: bool) -> _Found:
    rows = _rows(statement)
    total, facets = rows[0][:2]
    hits = [(note_id, start, rank) for _, _, note_id, start, rank, _ in rows if note_id]
    return _Found(total, hits, _facets(facets), windowed)


def _facets(value: dict[str, list[tuple[str, int]] | None] | None) -> Facets | None:
    if value is None:
        return None
    folders, tags = (
        tuple(Facet(name, count) for name, count in value[key] or ()) for key in ("folders", "tags")
    )
    return Facets(folders, tags)


def _shown(
    owner: _Owner,
    found: _Found,
    finder: Finder,
    compiled: Compiled | None,
    languages: Sequence[str],
) -> SearchPage:
    """Contents are fetched for the notes of this page only: fetching them is what costs."""
    notes = _notes(owner, found, compiled)
    places = {note_id: finder.places(row[-1]) for note_id, row in notes.items()}
    candidates = finder.candidates(place for each in places.values() for place in each)
    candidates |= finder.candidates(
        place for row in notes.values() for place in finder.places(row[0])
    )
    if candidates:
        having = _rows(Sql(_STEMS, (sorted(candidates), list(languages), finder.lexemes)))
        finder.learn(candidates, {word for (word,) in having})
    hits = []
    for note_id, _, rank in found.rows:
        if note_id not in notes:
            continue
        title, folder, tags, updated, mode, text = notes[note_id]
        excerpt = excerpt_of(text, finder, places[note_id])
        hits.append(
            SearchHit(
                note_id=note_id,
                title=title,
                title_marks=finder.marks(title),
                folder=folder,
                tags=tuple(tags),
                updated=updated,
                excerpt=excerpt.text,
                marks=excerpt.marks,
                rank=rank,
                mode=mode,
            )
        )
    return SearchPage(
        hits=tuple(hits),
        total=found.total,
        total_is="at_least" if found.windowed else "exact",
        windowed=found.windowed,
        facets=found.facets,
    )


def _notes(
    owner: _Owner, found: _Found, compiled: Compiled | None
) -> dict[UUID, tuple[str, str, list[str], Any, SearchMode, str]]:
    """By id: title, folder, tags, time of change, mode, and the text to show a part of."""
    if not found.rows:
        return {}
    exact = compiled.exact if compiled is not None and compiled.has_prefix else None
    rows = _rows(
        Sql(
            """
SELECT id, title, folder, tags, n.updated,
  CASE WHEN %s THEN 'substring' WHEN %s::text IS NULL THEN 'words'
    WHEN (SELECT coalesce(own.tsv, '') || e.tsv @@ %s::tsquery FROM notes_notesearchentry AS e
          LEFT JOIN notes_notesearchentry AS own ON own.note_id = e.note_id AND own.start = 0
          WHERE e.note_id = id AND e.start = place.start) THEN 'words' ELSE 'prefix' END,
  substr(content, greatest(1, place.start), %s)
FROM unnest(%s::uuid[], %s::integer[]) AS place (note_id, start)
JOIN notes_note AS n ON id = place.note_id WHERE owner_id = %s AND deleted IS NULL
""",
            (
                compiled is None,
                exact,
                exact,
                INDEXED,
                [row[0] for row in found.rows],
                [row[1] for row in found.rows],
                owner.user.pk,
            ),
        )
    )
    return {row[0]: row[1:] for row in rows}


def _rows(statement: Sql) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement.text, statement.values)
        return list(cursor.fetchall())
