"""What a search is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

#: Ranges of characters [start, end).
Marks = tuple[tuple[int, int], ...]

#: What found a hit: its words, the beginning of one, or the text itself.
SearchMode = Literal["words", "prefix", "substring"]


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
    """A note that was found. ``marks`` are ranges of ``excerpt``, ``title_marks`` of ``title``;
    both are plain text, to be escaped where they are shown."""

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
class Facet:
    """A folder or tag, and how many of the hits are in it."""

    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Facets:
    folders: tuple[Facet, ...]
    tags: tuple[Facet, ...]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """``total`` is ``at_least`` where only the newest notes were looked at (``windowed``) or more
    were found than are counted. ``facets`` only where the hits are few enough to cost nothing."""

    hits: tuple[SearchHit, ...]
    total: int
    total_is: Literal["exact", "at_least"]
    windowed: bool = False
    facets: Facets | None = None
