"""A parsed query as PostgreSQL's ``tsquery``, term by term.

Each term is any of its variants: its stems in each language that the owner's notes are indexed in,
the parts of an identifier, the exact word, all pairs of a run of CJK characters. Being joined per
term, a negation holds in every language. Variants come out of PostgreSQL's own parser (by
``notes_search_lexize``), and so does the lexeme that a prefix is made of: nothing that was typed
gets into a ``tsquery`` as it is.

A word that says nothing in one language (``die`` in German) asks nothing of the notes in it,
unless nothing else was typed: then the exact word is asked for. In a phrase every word is asked
for: a quoted one, or what was typed with nothing but signs between its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from notes.search.folding import cjk_runs
from notes.search.grammar import Query, Term

#: Shorter beginnings of words would match too much.
MIN_PREFIX = 3

#: Shorter words of a phrase, and parts of an identifier, are marked within it only.
MIN_ALONE = 4

#: An entry has this lexeme where words occur more often than PostgreSQL keeps positions of.
CROWDED = "=m"

#: What becomes of a last word that is too short yet for the index to look for its beginning.
ShortWord = Literal["as it is", "as a beginning", "left out"]

#: A row of ``notes_search_lexize``: a term's place in the query, from 1, folded, its exact words,
#: and in one language its stems and the parts of an identifier.
Lexemes = tuple[int, str, str, str, str, str | None]

_LEXEME = re.compile(r"'((?:[^']|'')*)'")


@dataclass(slots=True)
class _Lexized:
    """What PostgreSQL makes of one term."""

    term: Term
    folded: str = ""
    exact: str = ""
    stems: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.exact and not cjk_runs(self.folded)

    @property
    def words(self) -> list[str]:
        return [lexeme for lexeme, _ in _lexemes(self.exact)]

    @property
    def is_phrase(self) -> bool:
        return self.term.phrase or len(self.words) > 1

    @property
    def is_short(self) -> bool:
        """Unfinished, and so far too short for a beginning to look for in the index."""
        if not self.term.unfinished or _ends_in_pairs(self.folded) or not self.words:
            return False
        return len(self.words[-1]) < MIN_PREFIX

    def without_last(self) -> _Lexized | None:
        """The words of the same term without the last, as they are, and its CJK characters."""
        words = " & ".join(map(quoted, self.words[:-1]))
        if not words and not cjk_runs(self.folded):
            return None
        return replace(
            self,
            term=replace(self.term, unfinished=False),
            exact=words,
            stems=dict.fromkeys(self.stems, words),
            parts={},
        )

    def stemmed(self, language: str) -> str:
        """The stems there; those of a phrase side by side."""
        stems = self.stems[language]
        if self.is_phrase:
            return _side_by_side(self.words, stems)
        # So little is left that it may well be another word elsewhere: Turkish "isik" is "is".
        is_remnant = stems != self.exact and len(stems.strip("'")) < MIN_PREFIX
        return f"{stems} & {quoted(f'=l:{language}')}" if stems and is_remnant else stems

    def silent_in(self, language: str) -> bool:
        """A stop word there."""
        says = self.stems[language] or self.parts.get(language) or cjk_runs(self.folded)
        return not says


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query as text of ``tsquery`` values.

    ``match`` decides; ``exact`` is the same without prefixes. ``ranked`` are the terms that are
    looked for, each on its own, ``groups`` the terms of each alternative with whether they must be
    absent: for notes in several entries. ``lexemes``, ``prefixes``, ``runs`` and
    ``phrases`` are what to mark in a text.
    """

    match: str
    exact: str
    ranked: tuple[str, ...]
    groups: tuple[tuple[tuple[str, bool], ...], ...]
    lexemes: frozenset[str]
    prefixes: frozenset[str]
    runs: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    has_prefix: bool = False
    has_short_prefix: bool = False

    @property
    def only_negations(self) -> bool:
        return not self.ranked


class Compiler:
    """The terms of one query as PostgreSQL reads them, from which the ways to look are made."""

    def __init__(
        self, query: Query, *, lexized: Sequence[Lexemes], languages: Sequence[str], complete: bool
    ) -> None:
        """``lexized``: what the query's terms mean in each of ``languages``, phrases in all
        that the owner's notes are indexed in; ``complete``: ``languages`` are all of these."""
        self._languages = list(languages)
        self._complete = complete
        self._groups = _groups(query, lexized)

    @property
    def says_something(self) -> bool:
        """Whether there is more to look for than stop words and signs."""
        return any(
            lexized.term.negated or not all(map(lexized.silent_in, self._languages))
            for group in self._groups
            for lexized in group
        )

    @property
    def has_words(self) -> bool:
        return bool(self._groups)

    @property
    def ends_short(self) -> bool:
        """Whether the last word is too short yet to be looked for as a beginning."""
        return bool(self._groups) and self._groups[-1][-1].is_short

    @property
    def short_is_alone(self) -> bool:
        """Whether that is all there is to look for, so that it cannot be left out."""
        if not self.ends_short:
            return False
        *before, last = self._groups[-1]
        return len(last.words) == 1 and all(
            lexized.term.negated or all(map(lexized.silent_in, self._languages))
            for lexized in before
        )

    def compiled(self, *, prefixes: bool = False, short: ShortWord = "as it is") -> Compiled:
        """``prefixes``: an unfinished word may go on; ``short``: what becomes of a short one."""
        groups, ranked, runs, phrases = [], [], [], []
        marked: list[tuple[str, bool]] = []
        has_prefix = False
        for group in self._groups:
            terms = []
            ignoring = self._languages_to_ignore_in(group)
            for each in group:
                cut = short == "left out" and each.is_short
                lexized = each.without_last() if cut else each
                if lexized is None:
                    continue
                least = 1 if short == "as a beginning" else MIN_PREFIX
                prefix = _prefix(lexized, least) if prefixes else ""
                text, shown = self._term(lexized, ignoring, prefix)
                if not text:
                    continue
                terms.append((text, lexized.term.negated))
                if not lexized.term.negated:
                    has_prefix |= bool(prefix)
                    ranked.append(shown)
                    marked += _marked(lexized, shown)
                    if lexized.is_phrase:
                        phrases.append(tuple(lexized.words))
                    runs += cjk_runs(lexized.folded)
            groups.append(tuple(terms))
        match = " | ".join(
            f"({' & '.join(_signed(*term) for term in terms)})" for terms in groups if terms
        )
        return Compiled(
            match=match,
            exact=self.compiled().match if has_prefix else match,
            ranked=tuple(dict.fromkeys(ranked)),
            groups=tuple(terms for terms in groups if terms),
            lexemes=frozenset(text for text, is_prefix in marked if not is_prefix),
            prefixes=frozenset(text for text, is_prefix in marked if is_prefix),
            runs=tuple(runs),
            phrases=tuple(phrases),
            has_prefix=has_prefix,
            has_short_prefix=has_prefix and short == "as a beginning",
        )

    def _languages_to_ignore_in(self, group: Sequence[_Lexized]) -> set[str]:
        """The languages in which a stop word of this group is no condition."""
        wanted = [lexized for lexized in group if not lexized.term.negated]
        return {
            language
            for language in self._languages
            if not all(lexized.silent_in(language) for lexized in wanted)
        }

    def _term(self, lexized: _Lexized, ignoring: set[str], prefix: str) -> tuple[str, str]:
        """The term as a condition, and as what is ranked and marked; empty where it asks nothing.

        The exact word is implied by the stem of its language: it is asked for where a language of
        the notes has no stem for it or is not looked at.
        """
        term, languages = lexized.term, self._languages
        silent = [each for each in languages if lexized.silent_in(each)]
        free = [] if term.negated else [each for each in silent if each in ignoring]
        if len(free) == len(languages):
            return "", ""
        read_in = lexized.stems if lexized.is_phrase else languages
        variants = [lexized.stemmed(each) for each in read_in]
        variants += [lexized.parts[each] for each in languages if each in lexized.parts]
        if len(silent) == len(languages) or (
            not lexized.is_phrase and (silent or term.negated or not self._complete)
        ):
            variants.append(lexized.exact)
        shown = _any([*variants, prefix])
        words = _any([shown, *(f"'=l:{language}'" for language in free)])
        pairs = _pairs(cjk_runs(lexized.folded))
        return _all([words, pairs]), _all([shown, pairs])


def _groups(query: Query, lexized: Sequence[Lexemes]) -> list[list[_Lexized]]:
    flat = [_Lexized(term) for term in query.terms]
    for place, folded, exact, language, stems, parts in lexized:
        term = flat[place - 1]
        term.folded, term.exact = folded, exact
        term.stems[language] = stems
        if parts:
            term.parts[language] = parts
    rest = iter(flat)
    groups = [[next(rest) for _ in group] for group in query.groups]
    return [kept for group in groups if (kept := [each for each in group if not each.is_empty])]


def _prefix(lexized: _Lexized, least: int) -> str:
    """The exact word as the beginning of one, from its parsed lexemes."""
    if not lexized.term.unfinished or _ends_in_pairs(lexized.folded):
        return ""
    lexemes = lexized.words
    if not lexemes or len(lexemes[-1]) < least:
        return ""
    *before, last = map(quoted, lexemes)
    return " & ".join([*before, f"{last}:*"])


def _ends_in_pairs(folded: str) -> bool:
    """Whether the last letter is one that is indexed in pairs."""
    last = next((letter for letter in reversed(folded) if letter.isalnum()), "")
    return bool(cjk_runs(last))


def _marked(lexized: _Lexized, shown: str) -> list[tuple[str, bool]]:
    """The lexemes to mark by themselves: of a phrase or an identifier not the short ones."""
    lexemes = _lexemes(shown)
    if not lexized.is_phrase and not lexized.parts:
        return lexemes
    return [each for each in lexemes if each[1] or len(each[0]) >= MIN_ALONE]


def _side_by_side(words: Sequence[str], phrase: str) -> str:
    """``phrase``, or in a crowded entry each two of ``words`` by position or as neighbours."""
    stems = [quoted(lexeme) for lexeme, _ in _lexemes(phrase)]
    if len(stems) != len(words) or len(stems) < 2:
        return phrase
    neighbours = [
        f"({quoted(f'=p:{word} {after}')} | {stem} <-> {stem_after})"
        for word, after, stem, stem_after in zip(
            words[:-1], words[1:], stems[:-1], stems[1:], strict=True
        )
    ]
    return f"({phrase}) | ({' & '.join([quoted(CROWDED), *dict.fromkeys(neighbours)])})"


def _pairs(runs: Sequence[str]) -> str:
    """All pairs of each run; a single character is the beginning of a pair or the end of a run."""
    pairs = [
        f"{quoted(run)}:*" if len(run) == 1 else quoted(run[place : place + 2])
        for run in runs
        for place in range(max(1, len(run) - 1))
    ]
    return " & ".join(dict.fromkeys(pairs))


def _lexemes(text: str) -> list[tuple[str, bool]]:
    """The lexemes of a ``tsquery``, and whether each is a prefix."""
    return [
        (match[1].replace("''", "'").replace("\\\\", "\\"), text.startswith(":*", match.end()))
        for match in _LEXEME.finditer(text)
        if not match[1].startswith("=")
    ]


def quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _any(variants: Sequence[str]) -> str:
    found = list(dict.fromkeys(text for text in variants if text))
    return found[0] if len(found) == 1 else " | ".join(f"({text})" for text in found)


def _all(parts: Sequence[str]) -> str:
    found = [text for text in parts if text]
    return found[0] if len(found) == 1 else " & ".join(f"({text})" for text in found)


def _signed(text: str, negated: bool) -> str:
    return f"!({text})" if negated else f"({text})"


def with_prefixes_of_all(query: Query) -> Query:
    """The same query with every word as the beginning of one."""
    return replace(
        query,
        groups=tuple(
            tuple(replace(term, unfinished=not term.phrase and not term.negated) for term in group)
            for group in query.groups
        ),
    )
