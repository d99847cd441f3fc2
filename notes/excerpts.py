"""What a hit shows of its note: plain text, and the ranges of it that were looked for.

Nothing here is HTML: whoever shows a text escapes it first and marks the ranges afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

Marks = tuple[tuple[int, int], ...]

#: Characters that an excerpt shows before its first mark, and in all.
BEFORE = 60
LENGTH = 240
#: Terms beyond these are found, but not marked.
MARKED_TERMS = 32
#: Different words of one text that are checked for their stem, and how long they may be.
CANDIDATES = 300
LONGEST_WORD = 100


@dataclass(frozen=True, slots=True)
class Excerpt:
    text: str
    marks: Marks


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds in a text what a query looked for: literal strings, and whole words of a set."""

    pattern: re.Pattern[str] | None
    words: frozenset[str] = frozenset()

    def ranges(self, text: str) -> Iterator[tuple[int, int]]:
        for match in self.pattern.finditer(text) if self.pattern else ():
            if match.lastgroup or match.group().lower() in self.words:
                yield match.span()


def finder_of(*, literals: Iterable[str] = (), lexemes: Iterable[str] = ()) -> Finder:
    """Of ``lexemes``, which are stems, only candidates: ``candidates`` lists them for a check."""
    exact = [re.escape(each) for each in literals if each][:MARKED_TERMS]
    stems: set[str] = set()
    for lexeme in list(lexemes)[:MARKED_TERMS]:
        if lexeme.isalnum():
            # A stem may differ from its words in the last letter ("parti", "party").
            shorter = len(lexeme) > 3 or (len(lexeme) > 1 and lexeme.endswith("i"))
            stems.add(re.escape(lexeme[:-1] if shorter else lexeme))
        else:
            exact.append(re.escape(lexeme))
    parts = []
    if exact:
        parts.append(f"(?P<literal>{'|'.join(exact)})")
    if stems:
        parts.append(rf"\b(?:{'|'.join(sorted(stems))})\w*")
    return Finder(re.compile("|".join(parts), re.IGNORECASE) if parts else None)


def candidates(finder: Finder, text: str) -> set[str]:
    """The words of ``text``, in lower case, that may have one of the finder's stems.

    Only so many: a text may be made of nothing else.
    """
    words: set[str] = set()
    for match in finder.pattern.finditer(text) if finder.pattern else ():
        if not match.lastgroup and len(match.group()) <= LONGEST_WORD:
            words.add(match.group().lower())
            if len(words) >= CANDIDATES:
                break
    return words


def with_words(finder: Finder, words: Collection[str]) -> Finder:
    return Finder(finder.pattern, frozenset(words))


def marks_of(text: str, finder: Finder) -> Marks:
    return tuple(finder.ranges(text))


def excerpt_of(text: str, finder: Finder) -> Excerpt:
    """The text around the first thing found, else its beginning, with white space made single."""
    first = next(finder.ranges(text), (0, 0))[0]
    start = _word_start(text, max(0, first - BEFORE), first)
    end = _word_end(text, start + LENGTH)
    shown = " ".join(text[start:end].split())
    shown = f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"
    return Excerpt(shown, marks_of(shown, finder))


def _word_start(text: str, position: int, limit: int) -> int:
    """The first start of a word from ``position`` on, so that no word is cut in two."""
    if position == 0:
        return 0
    for index in range(position, limit):
        if text[index - 1].isspace():
            return index
    return position


def _word_end(text: str, position: int) -> int:
    if position >= len(text):
        return len(text)
    for index in range(position, position - 40, -1):
        if text[index].isspace():
            return index
    return position
