"""Ranked search in one owner's notes: one engine for page, REST and tools.

``values`` is what it is asked and answers, ``grammar`` what can be typed, ``compiler`` what that
means to PostgreSQL, ``statements`` the SQL and the choice of plan, ``engine`` the order of things,
``folding`` and ``excerpts`` what a hit shows, ``filling`` the refilling of the entries.
"""

from notes.search.engine import MAX_LIMIT, MAX_OFFSET, first_found_in, found_in, search
from notes.search.statements import FACETS
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

__all__ = [
    "FACETS",
    "MAX_LIMIT",
    "MAX_OFFSET",
    "Facet",
    "Facets",
    "Marks",
    "Page",
    "SearchFilters",
    "SearchHit",
    "SearchMode",
    "SearchPage",
    "first_found_in",
    "found_in",
    "search",
]
