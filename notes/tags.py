"""Tags: what they may be, and when two of them are the same.

A tag is shown as it was first written and compared without case, in one canonical Unicode form.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from notes.exceptions import NoteInvalid
from notes.rules import is_visible, name_checked

MAX_TAGS = 64
MAX_LENGTH = 100


class Tags(NamedTuple):
    """Tags without doubles: as written, and in the same order as they are compared."""

    shown: list[str]
    folded: list[str]


def tags_normalised(tags: Iterable[str], *, field: str = "tags") -> Tags:
    """Trim, drop empty ones and later spellings of the same tag, or say what is wrong."""
    given = list(tags)
    if len(given) > MAX_TAGS:
        raise NoteInvalid(f"At most {MAX_TAGS} tags.", field=field)
    first_spelling: dict[str, str] = {}
    for tag in given:
        shown = _tag_normalised(tag, field=field)
        if shown:
            first_spelling.setdefault(tag_folded(shown), shown)
    return Tags(shown=list(first_spelling.values()), folded=list(first_spelling))


def tag_folded(tag: str) -> str:
    """Equal for two spellings of one tag (Unicode's canonical caseless match)."""
    decomposed = unicodedata.normalize("NFD", tag)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", decomposed.casefold()))


def _tag_normalised(tag: str, *, field: str) -> str:
    if len(tag) <= 2 * MAX_LENGTH:
        shown = unicodedata.normalize("NFC", name_checked(tag, field=field)).strip()
        if len(shown) <= MAX_LENGTH:
            return shown if is_visible(shown) else ""
    raise NoteInvalid(f"At most {MAX_LENGTH} characters for a tag.", field=field)
