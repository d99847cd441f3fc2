"""The one search: reads what was typed, chooses how to look, and shows what was found.

Owns the order in which ways to look are tried, and the time a search may take. Where there are
words: the words; where none of them is found, words that begin so; where there is nothing but stop
words and signs, or signs among words that are not found: the text itself. Every hit says which of
these found it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection

from notes.exceptions import NoteInvalid, SearchTimeout
from notes.rules import language_checked
from notes.search import statements
from notes.search.compiler import Compiled, Compiler, Lexemes, with_prefixes_of_all
from notes.search.excerpts import Finder, excerpt_of
from notes.search.grammar import Query, parse
from notes.search.statements import Plan, Sql
from notes.search.values import (
    Facet,
    Facets,
    Marks,
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
#: Places of a note that are marked when it is opened from a search.
MAX_MARKS = 500
#: Letters of Thai, Lao, Burmese and Khmer.
_UNSPACED = re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]")
EVERYTHING = SearchFilters()
FIRST_PAGE = Page()

_STEMS = """
SELECT word FROM unnest(%s::text[]) AS word WHERE EXISTS (
  SELECT FROM unnest(%s::text[]) AS language
  WHERE tsvector_to_array(to_tsvector(notes_search_full(language), word)) && %s::text[])
"""


@dataclass(frozen=True, slots=True)
class _Owner:
    """What is known of the owner's notes before looking, and what the query's terms mean in
    their languages (``lexized``); ``has_many``: more of them than few."""

    user: AbstractBaseUser
    has_many: bool
    has_long_notes: bool
    languages: tuple[str, ...]
    lexized: tuple[Lexemes, ...]


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
        known = _owner(owner, request)
        return _searched(known, request) if known.languages else SearchPage((), 0, "exact")


def found_in(*, owner: AbstractBaseUser, query: str, text: str, most: int = MAX_MARKS) -> Marks:
    """What to mark in a text of one of the owner's notes, at the first ``most`` places."""
    request = _Request(parse(query), EVERYTHING, FIRST_PAGE, "", typing=False)
    if not request.query.text:
        return ()
    with atomic_within(milliseconds=TIMEOUT_MS, error=SearchTimeout):
        known = _owner(owner, request)
        for finder in _finders(known, request):
            places = finder.places_to(text, most)
            _learn(finder, finder.candidates(places), known.languages)
            if marks := finder.marks_at(places):
                return marks
    return ()


def first_found_in(*, owner: AbstractBaseUser, query: str, note_id: UUID, text: str) -> int | None:
    """Where in the long ``text`` of a note the first begins of what was looked for.

    The index tells in which piece: folding all of the longest texts takes seconds.
    """
    request = _Request(parse(query), EVERYTHING, FIRST_PAGE, "", typing=False)
    with atomic_within(milliseconds=TIMEOUT_MS, error=SearchTimeout):
        known = _owner(owner, request)
        compiler = _compiler(known, request.query, known.languages)
        ways = _ways(compiler, known, request, known.languages) if compiler.has_words else ()
        for compiled in filter(lambda way: way.ranked, ways):
            for (start,) in _rows(statements.piece_statement(owner, note_id, compiled)):
                piece = text[start - 1 : start - 1 + statements.INDEXED]
                finder = _finder(compiled)
                places = finder.places(piece, MAX_MARKS)
                _learn(finder, finder.candidates(places), known.languages)
                if marks := finder.marks_at(places):
                    return int(start) - 1 + marks[0][0]
    small = text.lower()
    places_of_text = (small.find(literal.lower()) for literal in request.query.literals)
    return next((place for place in places_of_text if place >= 0), None)


def _finders(owner: _Owner, request: _Request) -> Iterator[Finder]:
    """The ways of ``search``, in its order."""
    compiler = _compiler(owner, request.query, owner.languages)
    if compiler.has_words:
        yield from map(_finder, _ways(compiler, owner, request, owner.languages))
    yield Finder(literals=request.query.literals)


def _searched(owner: _Owner, request: _Request) -> SearchPage:
    languages = (request.language,) if request.language else owner.languages
    compiler = _compiler(owner, request.query, languages)
    begins = request.typing and compiler.short_is_alone
    by_text_first = not compiler.says_something and not begins
    if by_text_first and (page := _by_text(owner, request)).total:
        return page
    if compiler.has_words:
        for compiled in _ways(compiler, owner, request, languages):
            page = _by_words(owner, request, compiled, languages)
            if page.total:
                return page
    if not by_text_first and _may_be_text(request.query):
        return _by_text_in_time(owner, request)
    return SearchPage((), 0, "exact")


def _compiler(owner: _Owner, query: Query, languages: Sequence[str]) -> Compiler:
    return Compiler(
        query,
        lexized=owner.lexized,
        languages=languages,
        complete=set(owner.languages) <= set(languages),
    )


def _ways(
    compiler: Compiler, owner: _Owner, request: _Request, languages: Sequence[str]
) -> Iterator[Compiled]:
    """The words as they are or as they begin; then, if nothing has them, all as beginnings; then,
    while the last is being typed and is short yet, all but that one."""
    alone = request.typing and compiler.short_is_alone
    first = compiler.compiled(
        prefixes=request.typing, short="as a beginning" if alone else "as it is"
    )
    if first.match:
        yield first
    begun = _compiler(owner, with_prefixes_of_all(request.query), languages).compiled(prefixes=True)
    if begun.has_prefix and begun.match != first.match:
        yield begun
    if request.typing and compiler.ends_short and not alone:
        yield compiler.compiled(prefixes=True, short="left out")


def _may_be_text(query: Query) -> bool:
    """Whether words alone do not say all that was typed: there are signs, what was taken for a
    negation may be an option of a command, or no blanks part the words of its script."""
    return (
        any(term.negated for term in query.terms)
        or _UNSPACED.search(query.text) is not None
        or any(
            not (character.isalnum() or character.isspace() or character in "\"'-")
            for character in query.text
        )
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
    return _shown(owner, found, _finder(compiled), compiled, languages)


def _finder(compiled: Compiled) -> Finder:
    return Finder(
        lexemes=compiled.lexemes,
        prefixes=compiled.prefixes,
        literals=compiled.runs,
        phrases=compiled.phrases,
    )


def _by_text(owner: _Owner, request: _Request) -> SearchPage:
    page = SearchPage((), 0, "exact")
    for literal in request.query.literals:
        statement = statements.substring_statement(
            owner.user, literal, request.filters, request.page
        )
        found = _found(statement, windowed=_overflows(owner))
        page = _shown(owner, found, Finder(literals=[literal]), None, ())
        if page.total:
            break
    return page


def _by_text_in_time(owner: _Owner, request: _Request) -> SearchPage:
    """The words are nowhere: where reading all texts takes too long, that is the answer."""
    try:
        with atomic_within(milliseconds=TIMEOUT_MS // 2, error=SearchTimeout):
            return _by_text(owner, request)
    except SearchTimeout:
        return SearchPage((), 0, "at_least", windowed=True)


def _plan(owner: _Owner, compiled: Compiled) -> Plan:
    if compiled.only_negations or compiled.has_short_prefix:
        return "window"
    matches = 0
    if owner.has_many:
        ((explained,),) = _rows(statements.estimate_statement(owner.user, compiled))
        matches = int(explained[0]["Plan"]["Plan Rows"])
    return statements.plan_of(has_many=owner.has_many, matches=matches)


def _overflows(owner: _Owner) -> bool:
    if not owner.has_many and statements.FEW_NOTES <= statements.WINDOW:
        return False
    ((more,),) = _rows(statements.overflow_statement(owner.user))
    return bool(more)


def _owner(user: AbstractBaseUser, request: _Request) -> _Owner:
    statement = statements.read_statement(user, request.query, request.language)
    ((has_many, has_long_notes, languages, lexized),) = _rows(statement)
    return _Owner(user, has_many, has_long_notes, tuple(languages), tuple(lexized or ()))


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
    _learn(finder, candidates, languages)
    hits = []
    for note_id, _, rank in found.rows:
        if note_id not in notes:
            continue
        title, folder, tags, updated, by_words, text = notes[note_id]
        mode: SearchMode = "words" if by_words else "prefix"
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
                mode="substring" if compiled is None else mode,
            )
        )
    return SearchPage(
        hits=tuple(hits),
        total=found.total,
        total_is="at_least" if found.windowed else "exact",
        windowed=found.windowed,
        facets=found.facets,
    )


def _learn(finder: Finder, candidates: set[str], languages: Sequence[str]) -> None:
    if candidates:
        having = _rows(Sql(_STEMS, (sorted(candidates), list(languages), finder.lexemes)))
        finder.learn(candidates, {word for (word,) in having})


def _notes(
    owner: _Owner, found: _Found, compiled: Compiled | None
) -> dict[UUID, tuple[str, str, list[str], Any, bool, str]]:
    """By id: title, folder, tags, time of change, whether by words, the text to show a part of."""
    if not found.rows:
        return {}
    places = [(note_id, start) for note_id, start, _ in found.rows]
    rows = _rows(statements.show_statement(owner.user, places, compiled))
    return {row[0]: row[1:] for row in rows}


def _rows(statement: Sql) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement.text, statement.values)
        return list(cursor.fetchall())
