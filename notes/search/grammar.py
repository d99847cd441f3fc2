"""What was typed, read as words, phrases, negations and alternatives. No text is an error.

::

    query  = group { "or" group }        a note needs one of the groups
    group  = { ["-"] (word | phrase) }   all of the words, none of those with a minus
    phrase = '"' { any but '"' } ['"']   its words one after the other; the end closes it, too
    word   = what stands between white space and quotes

A quote may be a curly one, too. Two minus signs are the beginning of an option, not a negation.

``or`` in any case; at the beginning, the end or twice it is nothing. Quoted it is a word. What a
word means in a language is ``compiler``'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARACTERS = 1000
MAX_TERMS = 32

_DRAWN = "\ufe0e\ufe0f"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
#: The quotes that phones and word processors put in the place of the one that was typed.
_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f", '"'))
_LAST_WORD = re.compile(r"\s\S*\Z")
_TOKEN = re.compile(r'(?P<minus>-*)"(?P<phrase>[^"]*)(?P<closed>"?)|(?P<word>[^\s"]+)')


@dataclass(frozen=True, slots=True)
class Term:
    """``unfinished``: nothing stands behind its last word, which may still be being typed."""

    text: str
    phrase: bool = False
    negated: bool = False
    unfinished: bool = False


Group = tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """``text``: what was typed, cleaned; ``groups``: what it says."""

    text: str
    groups: tuple[Group, ...]

    @property
    def terms(self) -> list[Term]:
        return [term for group in self.groups for term in group]

    @property
    def literals(self) -> list[str]:
        """The text without the quotes around phrases, and with them; without the mark of how to
        draw a sign at its end, which some keyboards send."""
        spaced = " ".join(self.text.translate(_QUOTES).replace('"', " ").split())
        drawn = (text.rstrip(_DRAWN) for text in (spaced, self.text))
        return list(dict.fromkeys(text for text in drawn if text))


def parse(typed: str) -> Query:
    """Read at most so many characters and terms of what was typed."""
    whole = _UNSTORABLE.sub("", typed).lstrip()
    text = whole[:MAX_CHARACTERS]
    if whole[MAX_CHARACTERS:] and not whole[MAX_CHARACTERS].isspace():
        text = _LAST_WORD.sub("", text)  # a part of one that no note may have
    groups: list[list[Term]] = [[]]
    count = 0
    for match in _TOKEN.finditer(text.translate(_QUOTES)):
        if (match["word"] or "").lower() == "or":
            groups.append([])
            continue
        term = _term(match, at_end=match.end() == len(text))
        if term is not None and count < MAX_TERMS:
            groups[-1].append(term)
            count += 1
    return Query(text.strip(), tuple(tuple(group) for group in groups if group))


def _term(match: re.Match[str], *, at_end: bool) -> Term | None:
    if (phrase := match["phrase"]) is not None:
        if not phrase.strip():
            return None
        negated = match["minus"] == "-"
        is_open = at_end and not match["closed"] and not phrase[-1].isspace()
        return Term(phrase, phrase=True, negated=negated, unfinished=is_open and not negated)
    word = match["word"].lstrip("-")
    negated = match["word"] == f"-{word}"
    return Term(word, negated=negated, unfinished=at_end and not negated) if word else None
