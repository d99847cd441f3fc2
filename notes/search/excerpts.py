"""What a hit shows of its note: plain text, and the ranges of it that were looked for.

A text is read under the folding of the index. A word that only may have one of the stems that were
looked for is marked when PostgreSQL says that it has (``Finder.learn``). Nothing here is HTML:
whoever shows a text escapes it first and marks the ranges afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from notes.search.folding import Folded, fold
from notes.search.values import Marks

#: Characters that an excerpt shows before its first mark, and in all.
BEFORE = 60
LENGTH = 240
#: A text is read in pieces, each longer than the last, no further than to one with something in it.
FIRST_PIECE = 4000
GROWTH = 4
OVERLAP = 200
#: Terms and places beyond these are found, but not marked.
MARKED_TERMS = 64
#: So few terms are looked for one by one first: that is quicker than all at once.
FEW_TERMS = 8
#: Characters between two words of a phrase that is marked.
BETWEEN = 20
MAX_PLACES = 40
LONGEST_WORD = 100


@dataclass(frozen=True, slots=True)
class Excerpt:
    text: str
    marks: Marks


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a text that may be marked: surely, or if one of ``words`` has a wanted stem."""

    start: int
    end: int
    term: str
    words: tuple[tuple[int, str], ...] = ()

    def moved(self, by: int) -> Place:
        words = tuple((end + by, word) for end, word in self.words)
        return Place(self.start + by, self.end + by, self.term, words)


class Finder:
    """Finds in texts what a query looked for."""

    def __init__(
        self,
        *,
        lexemes: Iterable[str] = (),
        prefixes: Iterable[str] = (),
        literals: Iterable[str] = (),
        phrases: Iterable[Sequence[str]] = (),
    ) -> None:
        """``literals`` occur anywhere, the words of ``phrases`` with signs and blanks between them;
        words with a stem of ``lexemes`` or a beginning of ``prefixes`` begin where a word or a part
        of an identifier does."""
        self._prefixes = tuple(prefixes)
        self._lexemes = frozenset(lexemes)
        self._stems: dict[str, bool] = {}
        anywhere = {fold(each).lower() for each in literals if each}
        begins = {each for each in self._lexemes if not each.isalnum()}
        words = {_shortened(each) for each in self._lexemes if each.isalnum()} | set(prefixes)
        kinds = {
            name: sorted(each, key=lambda term: (-len(term), term))[:MARKED_TERMS]
            for name, each in (("anywhere", anywhere), ("literal", begins), ("word", words))
            if each
        }
        self._terms = [term for terms in kinds.values() for term in terms]
        patterns = {name: "|".join(map(re.escape, terms)) for name, terms in kinds.items()}
        if quoted := [words for words in phrases if words][:MARKED_TERMS]:
            self._terms += [words[0] for words in quoted]
            patterns = {"phrase": "|".join(map(_phrase, quoted))} | patterns
        self._pattern = re.compile(
            "|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns.items())
        )

    def candidates(self, places: Iterable[Place]) -> set[str]:
        """Words of which it is not known yet whether they have one of the stems."""
        return {
            word
            for place in places
            for _, word in place.words
            if word not in self._stems and len(word) <= LONGEST_WORD
        }

    def learn(self, candidates: Collection[str], having: Collection[str]) -> None:
        """Of ``candidates``, those ``having`` a wanted stem are marked from now on."""
        self._stems |= {word: word in having for word in candidates}

    @property
    def lexemes(self) -> list[str]:
        return sorted(self._lexemes)

    def places(self, text: str, most: int = MAX_PLACES) -> list[Place]:
        """Where something begins that may be marked, as far as one needs to read for the first."""
        found: list[Place] = []
        begin, length = 0, FIRST_PIECE
        while begin < len(text) and all(place.words for place in found):
            for place in self._places(Folded(text[begin : begin + length + OVERLAP])):
                if place.start >= length or len(found) == most:
                    break
                found.append(place.moved(begin))
            if len(found) == most:
                break
            begin, length = begin + length, length * GROWTH
        return found

    def places_to(self, text: str, most: int) -> list[Place]:
        """The first places of a text where something begins that may be marked."""
        return list(islice(self._places(Folded(text)), most))

    def marks(self, text: str) -> Marks:
        """The ranges of a short text to mark, of what is known."""
        return self.marks_at(self._places(Folded(text)))

    def marks_at(self, places: Iterable[Place]) -> Marks:
        """The ranges to mark at these places, of what is known."""
        marks: list[tuple[int, int]] = []
        for place in places:
            end = self.end(place)
            if end and (not marks or place.start >= marks[-1][1]):
                marks.append((place.start, end))
        return tuple(marks)

    def end(self, place: Place) -> int:
        """Where the mark ends, 0 where there is none."""
        if not place.words:
            return place.end
        return next((end for end, word in place.words if self._stems.get(word)), 0)

    def _places(self, folded: Folded) -> Iterator[Place]:
        lower = folded.lower
        for match in self._pattern.finditer(lower, self._first(lower)) if self._terms else ():
            start, end = match.span()
            if start == end:
                continue
            if match.lastgroup in ("anywhere", "phrase"):
                yield Place(*folded.span(start, end), match.group())
                continue
            if not _begins_word(folded.cased, start):
                continue
            if match.lastgroup == "literal":
                yield Place(*folded.span(start, end), match.group())
                continue
            yield self._word(folded, start, match.group())

    def _first(self, lower: str) -> int:
        """No term is before this place, which is the end where there is none."""
        if len(self._terms) > FEW_TERMS:
            return 0
        places = [place for term in self._terms if (place := lower.find(term)) >= 0]
        return min(places, default=len(lower))

    def _word(self, folded: Folded, start: int, term: str) -> Place:
        ends = dict.fromkeys((_word_end(folded.lower, start), _part_end(folded.cased, start)))
        words = [(end, folded.lower[start:end]) for end in ends]
        for end, word in words:
            if word in self._lexemes or word.startswith(self._prefixes):
                return Place(*folded.span(start, end), term)
        spans = tuple((folded.span(start, end)[1], word) for end, word in words)
        return Place(*folded.span(start, words[0][0]), term, spans)


def excerpt_of(text: str, finder: Finder, places: Iterable[Place]) -> Excerpt:
    """The text around most of what was found, else its beginning, with white space made single."""
    first = _best_start([place for place in places if finder.end(place)])
    start = _cut_before(text, max(0, first - BEFORE), first)
    end = _cut_after(text, start + LENGTH)
    shown = " ".join(text[start:end].split())
    before, after = "… " if start else "", " …" if end < len(text) else ""
    marks = tuple((first + len(before), last + len(before)) for first, last in finder.marks(shown))
    return Excerpt(f"{before}{shown}{after}", marks)


def _best_start(places: list[Place]) -> int:
    """Where most different terms follow one another closely."""
    best, start = 0, 0
    for index, place in enumerate(places):
        reach = place.start + LENGTH - BEFORE
        terms = {other.term for other in places[index:] if other.end <= reach}
        if len(terms) > best or index == 0:
            best, start = len(terms), place.start
    return start


def _phrase(words: Sequence[str]) -> str:
    """As a pattern: these words with no others between, before or behind them."""
    between = rf"[\W_]{{1,{BETWEEN}}}"
    return rf"(?<![^\W_]){between.join(map(re.escape, words))}(?![^\W_])"


def _shortened(stem: str) -> str:
    """A stem may differ from its words in the last letter ("parti", "party")."""
    return stem[:-1] if len(stem) > 3 or (len(stem) > 1 and stem.endswith("i")) else stem


def _begins_word(cased: str, start: int) -> bool:
    """At the start of a word or of a part of an identifier."""
    if start == 0:
        return True
    before, first = cased[start - 1], cased[start]
    if not before.isalnum():
        return True
    if first.isupper():
        return before.islower() or before.isdigit() or cased[start + 1 : start + 2].islower()
    return before.isdigit() != first.isdigit()


def _word_end(lower: str, start: int) -> int:
    end = start
    limit = min(len(lower), start + LONGEST_WORD + 1)
    while end < limit and lower[end].isalnum():
        end += 1
    return end


def _part_end(cased: str, start: int) -> int:
    """The end of the part of an identifier that begins here."""
    end = start + 1
    limit = min(len(cased), start + LONGEST_WORD + 1)
    while end < limit and cased[end].isalnum() and not _begins_word(cased, end):
        end += 1
    return end


def _cut_before(text: str, position: int, limit: int) -> int:
    """The first start of a word from ``position`` on, so that no word is cut in two."""
    if position == 0:
        return 0
    for index in range(position, limit):
        if text[index - 1].isspace():
            return index
    return position


def _cut_after(text: str, position: int) -> int:
    if position >= len(text):
        return len(text)
    for index in range(position, position - 40, -1):
        if text[index].isspace():
            return index
    return position
