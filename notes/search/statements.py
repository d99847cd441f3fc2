"""The SQL of a search: which entries match, how good each is, and which notes that makes.

``owner_id = %s`` decides whose notes are found, in every statement; the owner's lexeme only helps
the index. Values are bound, never formatted into a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any, Literal
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

from notes.folders import ROOT, folder_normalised
from notes.search.compiler import Compiled, quoted
from notes.search.grammar import Query
from notes.search.values import Page, SearchFilters
from notes.tags import tags_normalised

Plan = Literal["window", "index"]

#: The newest entries of an owner that are read where reading them is better than the index.
WINDOW = 20_000
#: An owner of so few notes never needs the index.
FEW_NOTES = 5_000
#: The index is worse than the window where it finds more than so many.
MANY_MATCHES = 6_000
#: Facets are counted of so few hits.
FACETED = 200
FACETS = 10
#: Characters of a content that an entry indexes at most.
INDEXED = 100_000

#: Weights of D (words without positions), C (tags), B (content), A (title).
WEIGHTS = "{0.02, 0.5, 1.0, 1.0}"
#: Divide by 1 + the logarithm of the number of words.
NORMALISATION = 1
#: What the rank of the words beside a long text is divided by: the logarithm of 16,000 words.
LONG = 14


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL and the values that are bound in it."""

    text: str
    values: tuple[Any, ...] = ()


def plan_of(*, has_many: bool, matches: int) -> Plan:
    """``has_many``: more notes than few; ``matches``: how many the planner expects."""
    return "window" if not has_many or matches > MANY_MATCHES else "index"


def read_statement(owner: AbstractBaseUser, query: Query, language: str) -> Sql:
    """Whether the owner has more entries than few, whether some notes have more than one, their
    languages, and what the query's terms mean in these, or in the given one."""
    return Sql(
        "SELECT * FROM notes_search_read(%s, %s, %s, %s, %s)",
        (
            owner.pk,
            FEW_NOTES,
            [term.text for term in query.terms],
            [term.phrase for term in query.terms],
            language,
        ),
    )


def show_statement(
    owner: AbstractBaseUser, places: Sequence[tuple[UUID, int]], compiled: Compiled | None
) -> Sql:
    """What is shown of notes: id, title, folder, tags, time of change, whether the words of the
    query themselves are in it, and the text from the given character on."""
    return Sql(
        "SELECT * FROM notes_search_show(%s, %s::uuid[], %s::integer[], %s, %s::tsquery)",
        (
            owner.pk,
            [note_id for note_id, _ in places],
            [start for _, start in places],
            INDEXED,
            compiled.exact if compiled is not None and compiled.has_prefix else None,
        ),
    )


def piece_statement(owner: AbstractBaseUser, note_id: UUID, compiled: Compiled) -> Sql:
    """The first entry of a note's content with something that is looked for."""
    return Sql(
        "SELECT start FROM notes_notesearchentry"
        " WHERE note_id = %s AND owner_id = %s AND start > 0 AND tsv @@ %s::tsquery"
        " ORDER BY start LIMIT 1",
        (note_id, owner.pk, " | ".join(f"({text})" for text in compiled.ranked)),
    )


def overflow_statement(owner: AbstractBaseUser) -> Sql:
    """Whether the owner has more entries than the window."""
    return Sql(
        "SELECT EXISTS (SELECT FROM notes_notesearchentry WHERE owner_id = %s OFFSET %s)",
        (owner.pk, WINDOW),
    )


def estimate_statement(owner: AbstractBaseUser, compiled: Compiled) -> Sql:
    return Sql(
        "EXPLAIN (FORMAT JSON) SELECT FROM notes_notesearchentry"
        " WHERE owner_id = %s AND tsv @@ %s::tsquery",
        (owner.pk, compiled.match),
    )


def filter_lexemes(filters: SearchFilters) -> str:
    """Folder and tags as the text of a ``tsquery``, empty where there are none."""
    lexemes = []
    if filters.folder is not None:
        folder = folder_normalised(filters.folder)
        if not filters.subfolders or folder != ROOT:
            digest = md5(folder.encode(), usedforsecurity=False).hexdigest()
            lexemes.append(f"={'f' if filters.subfolders else 'd'}:{digest}")
    lexemes += [f"=t:{tag[:300]}" for tag in tags_normalised(filters.tags, field="tag").folded]
    return " & ".join(map(quoted, lexemes))


def hits_statement(
    owner: AbstractBaseUser,
    compiled: Compiled,
    filters: SearchFilters,
    page: Page,
    *,
    plan: Plan,
    long_notes: bool,
) -> Sql:
    """One row at least: the total, the facets as JSON or NULL, and a hit's note, first character,
    rank and time of change, or NULLs."""
    found = [_whole_notes(owner, compiled, filters, plan)]
    if long_notes:
        found.append(_long_notes(owner, compiled, filters))
    return page_statement(found, page)


def page_statement(found: list[Sql], page: Page) -> Sql:
    union = "\nUNION ALL\n".join(each.text for each in found)
    values = tuple(value for each in found for value in each.values)
    faceted = FACETED if page.offset == 0 else 0
    return Sql(
        f"""
WITH found AS MATERIALIZED ({union}),
counted AS (SELECT count(*) AS total FROM found)
SELECT counted.total,
  (SELECT notes_search_facets(ARRAY(SELECT note_id FROM found), %s)
   FROM counted WHERE total BETWEEN 1 AND %s),
  hit.note_id, hit.start, hit.rank, hit.updated
FROM counted LEFT JOIN LATERAL (
  SELECT * FROM found ORDER BY rank DESC, updated DESC, note_id DESC LIMIT %s OFFSET %s
) AS hit ON TRUE
""",  # noqa: S608
        (*values, FACETS, faceted, page.limit, page.offset),
    )


def substring_statement(
    owner: AbstractBaseUser, string: str, filters: SearchFilters, page: Page
) -> Sql:
    """The newest notes whose title or content holds ``string``, in any case."""
    entries = _window(owner, filters, "note_id, start, updated, tsv")
    kept = _kept(filters)
    pattern = f"%{_like(string)}%"
    found = Sql(
        f"""
SELECT note_id, greatest(1, strpos(lower(content), lower(%s)) - 1000) AS start, w.updated,
  CASE WHEN title ILIKE %s THEN 1.0 ELSE 0.4 END::real AS rank
FROM ({entries.text}) AS w JOIN notes_note AS n ON n.id = note_id AND n.owner_id = %s
WHERE {kept.text} AND (title ILIKE %s OR content ILIKE %s)
""",  # noqa: S608
        (string, pattern, *entries.values, owner.pk, *kept.values, pattern, pattern),
    )
    return page_statement([found], page)


def _whole_notes(
    owner: AbstractBaseUser, compiled: Compiled, filters: SearchFilters, plan: Plan
) -> Sql:
    rank = _rank(compiled)
    if plan == "window":
        entries = _window(owner, filters, "note_id, start, updated, whole, tsv")
        source = Sql(f"({entries.text}) AS w WHERE whole", entries.values)
        lexemes = filter_lexemes(filters)
    else:
        updated = _updated(filters)
        # Not as a column alone: the planner would read the owner's part of another index as well,
        # which is all of the owner's entries, to spare itself the few rows that were found.
        source = Sql(
            f"notes_notesearchentry WHERE owner_id + 0 = %s AND whole AND {updated.text}",
            (owner.pk, *updated.values),
        )
        lexemes = " & ".join(filter(None, [quoted(f"=o:{owner.pk}"), filter_lexemes(filters)]))
    match = f"{lexemes} & ({compiled.match})" if lexemes else compiled.match
    return Sql(
        f"SELECT note_id, start, updated, {rank.text} AS rank"  # noqa: S608
        f" FROM {source.text} AND tsv @@ %s::tsquery",
        (*rank.values, *source.values, match),
    )


def _long_notes(owner: AbstractBaseUser, compiled: Compiled, filters: SearchFilters) -> Sql:
    """Notes in several entries: their terms may be in different ones, the best is shown.

    A piece is ranked with the note's own words, as an entry of a short note is.
    """
    kept, updated = _kept(filters, "own.tsv"), _updated(filters, "own.updated")
    piece = _rank(compiled, "own.tsv || p.tsv")
    alone = _rank(compiled, "own.tsv", normalisation=0)
    terms = [term for group in compiled.groups for term in group]
    narrowed = Sql("TRUE")
    if not compiled.has_short_prefix and all(
        any(not negated for _, negated in group) for group in compiled.groups
    ):
        looked_for = " | ".join(f"({text})" for text, negated in terms if not negated)
        narrowed = Sql("p.tsv @@ %s::tsquery", (f"{quoted(f'=o:{owner.pk}')} & ({looked_for})",))
    having = " OR ".join(
        "(" + " AND ".join(_ABSENT if negated else _PRESENT for _, negated in group) + ")"
        for group in compiled.groups
    )
    conditions = [
        value for text, negated in terms for value in ((owner.pk, text) if negated else (text,))
    ]
    return Sql(
        f"""
SELECT note_id, (array_agg(start ORDER BY rank DESC, start))[1], max(updated), max(rank)
FROM (
  SELECT p.note_id, p.start, p.tsv, own.updated,
    CASE WHEN p.start > 0 THEN {piece.text} ELSE ({alone.text}) / {LONG} END AS rank
  FROM notes_notesearchentry AS p
  JOIN notes_notesearchentry AS own ON own.note_id = p.note_id AND own.start = 0
  WHERE p.owner_id = %s AND NOT p.whole AND own.owner_id = %s
    AND {updated.text} AND {kept.text} AND {narrowed.text}
) AS p GROUP BY note_id HAVING {having}
""",  # noqa: S608
        (
            *piece.values,
            *alone.values,
            owner.pk,
            owner.pk,
            *updated.values,
            *kept.values,
            *narrowed.values,
            *conditions,
        ),
    )


_PRESENT = "bool_or(tsv @@ %s::tsquery)"
#: In all entries of the note, not only in those with a word that is looked for.
_ABSENT = (
    "NOT EXISTS (SELECT FROM notes_notesearchentry AS n"
    " WHERE n.note_id = p.note_id AND n.owner_id = %s AND n.tsv @@ %s::tsquery)"
)


def _window(owner: AbstractBaseUser, filters: SearchFilters, columns: str) -> Sql:
    """The first entry of each of the owner's newest notes."""
    updated = _updated(filters)
    return Sql(
        f"SELECT {columns} FROM notes_notesearchentry WHERE owner_id = %s AND {updated.text}"  # noqa: S608
        " AND (whole OR start = 0) ORDER BY updated DESC, note_id DESC LIMIT %s",
        (owner.pk, *updated.values, WINDOW),
    )


def _updated(filters: SearchFilters, column: str = "updated") -> Sql:
    bounds = [(">", filters.updated_after), ("<", filters.updated_before)]
    given = [(f"{column} {sign} %s", value) for sign, value in bounds if value is not None]
    return Sql(
        " AND ".join(text for text, _ in given) or "TRUE", tuple(value for _, value in given)
    )


def _kept(filters: SearchFilters, column: str = "tsv") -> Sql:
    lexemes = filter_lexemes(filters)
    return Sql(f"{column} @@ %s::tsquery", (lexemes,)) if lexemes else Sql("TRUE")


def _rank(compiled: Compiled, column: str = "tsv", *, normalisation: int = NORMALISATION) -> Sql:
    """The sum over the terms; with only negations all are equal."""
    if not compiled.ranked:
        return Sql("0::real")
    each = f"ts_rank('{WEIGHTS}'::real[], {column}, %s::tsquery, {normalisation})"
    return Sql(" + ".join([each] * len(compiled.ranked)), compiled.ranked)


def _like(string: str) -> str:
    return string.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
