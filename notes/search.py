"""Ranked search in one owner's notes: one engine for page, REST and tools.

Owns the interface and the plan: words by PostgreSQL's full-text search, where there is nothing to
look for or nothing found, the text itself. Every hit says which of them found it. No query text
makes a search fail. What a hit shows of its note is made in ``excerpts``.
Each content's first 250,000 characters are indexed by words.

The grammar is that of ``websearch_to_tsquery``: words, "phrases", -not, or. A run of Chinese,
Japanese or Korean characters, which has no words for PostgreSQL, must occur as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db import OperationalError, connection, transaction
from django.db.models import Case, F, FloatField, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest, Left, StrIndex, Substr, Upper
from psycopg.errors import QueryCanceled

from notes.exceptions import NoteInvalid, SearchTimeout
from notes.excerpts import Finder, Marks, candidates, excerpt_of, finder_of, marks_of, with_words
from notes.models import Note, NoteQuerySet
from notes.selectors import notes_filtered

CONFIGURATION = "english"
TIMEOUT_MS = 2000
MAX_QUERY = 1000
MAX_OFFSET = 1000
MAX_LIMIT = 200
#: Hits are counted up to here; beyond, a total says "at least".
COUNTED = 1000
#: Characters of a content that are indexed, among which an excerpt is chosen.
INDEXED = 250_000

SearchMode = Literal["words", "prefix", "substring"]

_CJK = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_LEXEME = re.compile(r"'((?:[^']|'')*)'")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Which notes to look in; ``tags``: those that have all of them."""

    folder: str | None = None
    subfolders: bool = True
    tags: tuple[str, ...] = ()
    updated_after: datetime | None = None
    updated_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Which hits to return, the best first."""

    offset: int = 0
    limit: int = 20


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A note that was found. ``marks`` are ranges of characters [start, end) of ``excerpt``,
    ``title_marks`` of ``title``; both are plain text, to be escaped where they are shown."""

    note_id: UUID
    title: str
    title_marks: Marks
    folder: str
    tags: tuple[str, ...]
    updated: datetime
    excerpt: str
    marks: Marks
    rank: float
    mode: SearchMode


@dataclass(frozen=True, slots=True)
class SearchPage:
    hits: tuple[SearchHit, ...]
    total: int
    total_is: Literal["exact", "at_least"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """One way to look: which notes, how good each is, and what to show and mark of them."""

    mode: SearchMode
    where: Q
    rank: Combinable
    shown: Combinable
    finder: Finder
    lexemes: tuple[str, ...] = ()


def search(
    *,
    owner: AbstractBaseUser,
    query: str,
    filters: SearchFilters = SearchFilters(),
    page: Page = Page(),
) -> SearchPage:
    """The owner's notes that match, the best first; SearchTimeout where that takes too long."""
    if not (0 <= page.offset <= MAX_OFFSET and 0 < page.limit <= MAX_LIMIT):
        message = f"An offset of 0 to {MAX_OFFSET} and a limit of 1 to {MAX_LIMIT}."
        raise NoteInvalid(message, field="offset")
    text = _UNSTORABLE.sub("", query)[:MAX_QUERY].strip()
    with _bounded_time():
        notes = notes_filtered(
            Note.objects.owned_by(owner),
            folder=filters.folder,
            subfolders=filters.subfolders,
            tags=filters.tags,
            updated_after=filters.updated_after,
            updated_before=filters.updated_before,
        )
        for plan in _plans(text) if text else ():
            found = notes.filter(plan.where)
            total = found.order_by()[: COUNTED + 1].count()
            if total:
                hits = _hits(found, plan, page)
                return SearchPage(
                    hits, min(total, COUNTED), "exact" if total <= COUNTED else "at_least"
                )
    return SearchPage((), 0, "exact")


def _plans(text: str) -> Iterator[_Plan]:
    """The ways to look for ``text`` in the order in which to try them."""
    runs = _CJK.findall(text)
    words = _CJK.sub(" ", text) if runs else text
    lexemes = _lexemes(words)
    if lexemes:
        yield _words_plan(words, lexemes, runs)
    elif runs:
        yield _substring_plan(runs)
    yield _substring_plan([text])


def _words_plan(words: str, lexemes: tuple[str, ...], runs: list[str]) -> _Plan:
    query = SearchQuery(words, config=CONFIGURATION, search_type="websearch")
    return _Plan(
        mode="words",
        where=Q(search_entry__vector=query) & _containing(runs),
        rank=SearchRank(F("search_entry__vector"), query),
        shown=Left("content", INDEXED),
        finder=finder_of(literals=runs, lexemes=lexemes),
        lexemes=lexemes,
    )


def _substring_plan(strings: list[str]) -> _Plan:
    first = StrIndex(Upper("content"), Upper(Value(strings[0])))
    return _Plan(
        mode="substring",
        where=_containing(strings),
        rank=Case(
            When(Q(title__icontains=strings[0]), then=Value(1.0)),
            default=Value(0.4),
            output_field=FloatField(),
        ),
        shown=Substr("content", Greatest(Value(1), first - 500), 2000, output_field=TextField()),
        finder=finder_of(literals=strings),
    )


def _containing(strings: list[str]) -> Q:
    every = Q()
    for string in strings:
        every &= Q(title__icontains=string) | Q(content__icontains=string)
    return every


def _lexemes(text: str) -> tuple[str, ...]:
    """What the text search would look for: nothing, where there are only stop words or signs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT websearch_to_tsquery(%s, %s)::text", [CONFIGURATION, text])
        (compiled,) = cursor.fetchone()
    return tuple(lexeme.replace("''", "'") for lexeme in _LEXEME.findall(compiled))


def _hits(found: NoteQuerySet, plan: _Plan, page: Page) -> tuple[SearchHit, ...]:
    """Contents are fetched for the notes of this page only: fetching them is what costs."""
    ranked = (
        found.annotate(rank=plan.rank)
        .order_by("-rank", "-updated", "-id")
        .values_list("id", "title", "folder", "tags", "updated", "rank")
    )[page.offset : page.offset + page.limit]
    rows = list(ranked)
    texts = dict(
        found.filter(pk__in=[row[0] for row in rows])
        .annotate(shown=plan.shown)
        .values_list("id", "shown")
    )
    finder = _checked(plan, [*texts.values(), *(row[1] for row in rows)])
    hits = []
    for note_id, title, folder, tags, updated, rank in rows:
        excerpt = excerpt_of(texts.get(note_id, ""), finder)
        hits.append(
            SearchHit(
                note_id=note_id,
                title=title,
                title_marks=marks_of(title, finder),
                folder=folder,
                tags=tuple(tags),
                updated=updated,
                excerpt=excerpt.text,
                marks=excerpt.marks,
                rank=rank,
                mode=plan.mode,
            )
        )
    return tuple(hits)


def _checked(plan: _Plan, texts: list[str]) -> Finder:
    """The plan's finder with the words that PostgreSQL reduces to one of its stems."""
    words = sorted({word for text in texts for word in candidates(plan.finder, text)})
    if not words:
        return plan.finder
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT word FROM unnest(%s::text[]) AS word"
            " WHERE tsvector_to_array(to_tsvector(%s, word)) && %s::text[]",
            [words, CONFIGURATION, list(plan.lexemes)],
        )
        return with_words(plan.finder, {word for (word,) in cursor.fetchall()})


@contextmanager
def _bounded_time() -> Iterator[None]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {TIMEOUT_MS}")
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise SearchTimeout from error
        raise
