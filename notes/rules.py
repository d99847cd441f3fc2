"""What the plain fields of a note may hold: limits, and the checks that refuse with a field.

Folders and tags have rules of their own in ``folders`` and ``tags``.
"""

from __future__ import annotations

import unicodedata
from typing import Literal, get_args

from notes.exceptions import NoteInvalid, NoteTooLarge

MAX_CONTENT_BYTES = 5 * 1024 * 1024
MAX_TITLE = 500

#: PostgreSQL's text search configurations, by which a note's words are stemmed.
Language = Literal[
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "danish",
    "dutch",
    "english",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "simple",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
]
LANGUAGES: tuple[str, ...] = get_args(Language)

#: Unicode categories with no place in a name: controls, surrogates, line and paragraph separators.
_UNNAMEABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_visible(name: str) -> bool:
    """Whether there is anything to see of a name: neither only spaces nor only format marks."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in name)


def name_shown(title: str) -> str:
    """A title of which there is something to see, or what stands for it."""
    return title if is_visible(title) else "Untitled"


def text_checked(text: str, *, field: str) -> str:
    """``text`` as it is, unless PostgreSQL could not store it."""
    if "\x00" in text:
        raise NoteInvalid("Null characters are not allowed.", field=field, code="null_character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NoteInvalid("Half a surrogate pair is not text.", field=field) from None
    return text


def name_checked(text: str, *, field: str) -> str:
    """``text`` as it is, unless it holds what no name of a folder or tag may hold."""
    text_checked(text, field=field)
    if any(unicodedata.category(character) in _UNNAMEABLE for character in text):
        raise NoteInvalid("Control characters are not allowed.", field=field)
    return text


def title_checked(title: str) -> str:
    text_checked(title, field="title")
    if len(title) > MAX_TITLE:
        raise NoteInvalid(f"At most {MAX_TITLE} characters.", field="title")
    return title


def content_checked(content: str) -> str:
    if len(text_checked(content, field="content").encode()) > MAX_CONTENT_BYTES:
        raise NoteTooLarge(MAX_CONTENT_BYTES)
    return content


def language_checked(language: str) -> str:
    if language and language not in LANGUAGES:
        raise NoteInvalid(f"One of: {', '.join(LANGUAGES)}; or empty.", field="language")
    return language
