"""What the side of every notes page shows: folders, tags, and the notes listed or found.

Owns the reading of ``q``, ``folder``, ``tag`` and ``page`` from a URL, leniently: a link that
means nothing shows everything, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import QueryDict
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from notes import search, selectors
from notes.exceptions import NoteError
from notes.folders import ROOT
from notes.search import FACETS, Facet, Facets, Page, SearchFilters
from notes.selectors import FolderCount

PAGE_SIZE = 50
#: The database reads, to skip them, all rows of the pages before.
MAX_PAGE = 200
#: Folders, and tags, by which a search can be narrowed at once.
NARROWINGS = 3


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows the list. ``page`` counts from 1; ``typing``: the query is being typed."""

    query: str = ""
    folder: str = ""
    tag: str = ""
    page: int = 1
    typing: bool = False

    def link(self, **changes: str | int) -> str:
        """The query string of these filters with some of them changed, or nothing."""
        fields: dict[str, str | int] = {
            "q": self.query,
            "folder": self.folder,
            "tag": self.tag,
            **changes,
        }
        chosen = {name: value for name, value in fields.items() if value}
        return f"?{urlencode(chosen)}" if chosen else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the list; ``title`` and ``excerpt`` are HTML, escaped and then marked."""

    id: UUID
    title: SafeString
    excerpt: SafeString
    folder: str
    tags: list[str]
    updated: object
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A link to those of the hits that are in a folder or have a tag. ``count`` is None where some
    of them may not have been counted."""

    name: str
    link: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """``is_cut``: there are more, which no page shows."""

    entries: list[Entry]
    total: int
    total_is: str
    has_more: bool
    windowed: bool = False
    problem: str = ""
    is_past_end: bool = False
    is_cut: bool = False
    folders: tuple[Narrowing, ...] = ()
    tags: tuple[Narrowing, ...] = ()


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the tree with the notes in it and below it."""

    path: str
    name: str
    depth: int
    count: int


def filters_of(query: QueryDict) -> Filters:
    return Filters(
        query=query.get("q", "").strip(),
        folder=query.get("folder", ""),
        tag=query.get("tag", ""),
        page=page_number(query),
        typing=bool(query.get("typing")),
    )


def page_number(query: QueryDict) -> int:
    """The page that a URL asks for, from 1 to the last that there may be."""
    return min(number_in(query, "page"), MAX_PAGE)


def page_after(page: int, *, has_more: bool) -> int | None:
    """The next page, where there is one that can be asked for."""
    return page + 1 if has_more and page < MAX_PAGE else None


def number_in(query: QueryDict, name: str) -> int:
    """The number that a URL gives, from 1 on; 1 for what is none."""
    text = query.get(name, "")
    return max(int(text[:9]), 1) if text.isascii() and text.isdecimal() else 1


def listing(*, owner: AbstractBaseUser, filters: Filters) -> Listing:
    """The notes that the filters leave, found by words or the newest first."""
    try:
        return (_found if filters.query else _listed)(owner, filters)
    except NoteError as error:
        return Listing([], 0, "exact", has_more=False, problem=error.message)


def folder_tree(counts: Iterable[FolderCount]) -> list[Folder]:
    """Every folder with its parents, in order; a parent counts what is below it."""
    below: dict[str, int] = {}
    for row in counts:
        names = row.folder.strip("/").split("/") if row.folder != ROOT else []
        for depth in range(1, len(names) + 1):
            path = f"/{'/'.join(names[:depth])}/"
            below[path] = below.get(path, 0) + row.count
    ordered = sorted(below, key=lambda path: path.casefold().split("/"))
    return [Folder(path, path.split("/")[-2], path.count("/") - 2, below[path]) for path in ordered]


def marked(text: str, marks: Iterable[tuple[int, int]]) -> SafeString:
    """``text`` as HTML with its ranges marked. Everything is escaped before anything is marked."""
    parts: list[str] = []
    done = 0
    for start, end in marks:
        parts += [escape(text[done:start]), "<mark>", escape(text[start:end]), "</mark>"]
        done = end
    return mark_safe("".join([*parts, escape(text[done:])]))  # noqa: S308


def _found(owner: AbstractBaseUser, filters: Filters) -> Listing:
    offset = (filters.page - 1) * PAGE_SIZE
    if offset > search.MAX_OFFSET:
        return Listing([], 0, "exact", has_more=False, is_past_end=True)
    found = search.search(
        owner=owner,
        query=filters.query,
        filters=SearchFilters(
            folder=filters.folder or None, tags=(filters.tag,) if filters.tag else ()
        ),
        page=Page(offset=offset, limit=PAGE_SIZE),
        typing=filters.typing,
    )
    entries = [
        Entry(
            hit.note_id,
            marked(hit.title, hit.title_marks),
            marked(hit.excerpt, hit.marks),
            hit.folder,
            list(hit.tags),
            hit.updated,
            hit.mode,
        )
        for hit in found.hits
    ]
    end = offset + len(entries)
    is_cut = end < found.total and end > search.MAX_OFFSET
    has_more = bool(entries) and end < found.total and not is_cut
    facets = found.facets or Facets((), ())
    return Listing(
        entries,
        found.total,
        found.total_is,
        has_more,
        windowed=found.windowed,
        is_past_end=bool(found.total and not entries),
        is_cut=is_cut,
        folders=_folders_to_narrow(facets.folders, filters, found.total),
        tags=_tags_to_narrow(facets.tags, filters, found.total),
    )


def _folders_to_narrow(
    facets: Sequence[Facet], filters: Filters, total: int
) -> tuple[Narrowing, ...]:
    """A folder's notes are those below it, too."""
    complete = len(facets) < FACETS
    below = {
        facet.value: sum(each.count for each in facets if each.value.startswith(facet.value))
        for facet in facets
        if facet.value not in (ROOT, filters.folder)
    }
    return tuple(
        Narrowing(folder.strip("/"), filters.link(folder=folder), count if complete else None)
        for folder, count in below.items()
        if count < total
    )[:NARROWINGS]


def _tags_to_narrow(facets: Sequence[Facet], filters: Filters, total: int) -> tuple[Narrowing, ...]:
    if filters.tag:
        return ()
    return tuple(
        Narrowing(facet.value, filters.link(tag=facet.value), facet.count)
        for facet in facets
        if facet.count < total
    )[:NARROWINGS]


def _listed(owner: AbstractBaseUser, filters: Filters) -> Listing:
    notes = selectors.note_list(
        owner=owner,
        folder=filters.folder or None,
        subfolders=True,
        tags=[filters.tag] if filters.tag else (),
    )
    offset = (filters.page - 1) * PAGE_SIZE
    total = notes.count()
    entries = [
        Entry(
            note.id,
            marked(note.title, ()),
            marked(note.preview, ()),
            note.folder,
            note.tags,
            note.updated,
        )
        for note in notes[offset : offset + PAGE_SIZE]
    ]
    has_more = offset + len(entries) < total
    is_last = page_after(filters.page, has_more=has_more) is None
    return Listing(
        entries,
        total,
        "exact",
        has_more=has_more and not is_last,
        is_past_end=bool(total and not entries),
        is_cut=has_more and is_last,
    )
