"""What was typed, read as words, phrases, negations and alternatives. No text is an error.

::

    query  = group { "or" group }        a note needs one of the groups
    group  = { ["-"] (word | phrase) }   all of the words, none of those with a minus
    phrase = '"' { any but '"' } ['"']   its words one after the other; the end closes it, too
    word   = what stands between white space and quotes

``or`` in any case; at the beginning, the end or twice it is nothing. Quoted it is a word. What a
word means in a language is ``compiler``'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARACTERS = 1000
MAX_TERMS = 32

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_TOKEN = re.compile(r'(?P<minus>-*)"(?P<phrase>[^"]*)(?P<closed>"?)|(?P<word>[^\s"]+)')


@dataclass(frozen=True, slots=True)
class Term:
    """``unfinished``: a word that nothing stands behind, so that it may still be being typed."""

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
    def literal(self) -> str:
        """The text without the quotes around phrases."""
        return " ".join(self.text.replace('"', " ").split())


def parse(typed: str) -> Query:
    """Read at most so many characters and terms of what was typed."""
    text = _UNSTORABLE.sub("", typed)[:MAX_CHARACTERS]
    groups: list[list[Term]] = [[]]
    count = 0
    for match in _TOKEN.finditer(text):
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
        return Term(phrase, phrase=True, negated=bool(match["minus"])) if phrase.strip() else None
    word = match["word"].lstrip("-")
    negated = word != match["word"]
    return Term(word, negated=negated, unfinished=at_end and not negated) if word else None
