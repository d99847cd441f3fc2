"""Marks in the HTML of a rendered note what a search found there.

Owns the way from HTML to its texts and back. What is found is the search's to say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from html import unescape
from itertools import accumulate

from notes.pages.panes import marked
from notes.search import Marks

#: Where a link from a hit leads: the first mark.
FIRST = "found"

# The cleaner writes every value in double quotes, with whatever signs in it.
_TAG = re.compile(r'(<[a-z/][^>"]*(?:"[^"]*"[^>"]*)*>)')


def html_marked(html: str, find: Callable[[str], Marks]) -> str:
    """Clean HTML with marks around what ``find`` finds in its texts."""
    pieces = _TAG.split(html)
    texts = [unescape(piece) for piece in pieces[::2]]
    # A word ends where an element does: a line break between two texts joins nothing.
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    found: dict[int, list[tuple[int, int]]] = {}
    for first, last in find("\n".join(texts)):
        index = bisect_right(starts, first) - 1
        start, end = first - starts[index], min(last - starts[index], len(texts[index]))
        if start < end:
            found.setdefault(index, []).append((start, end))
    for index, marks in found.items():
        pieces[2 * index] = marked(texts[index], marks)
    return "".join(pieces).replace("<mark>", f'<mark id="{FIRST}">', 1)
