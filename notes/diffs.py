"""What changed between two states of a note, as values with ranges: no HTML, no database.

Lines are compared first, then the words of the lines that changed. Both are longest common
subsequences by RapidFuzz, whose bit-parallel search stays within milliseconds where `difflib`
takes minutes (lines that are all rewritten, or all the same). What is larger than the limits
gets less detail: lines without marks, then only their number. Texts of very many lines are first
cut at lines that are in both of them once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, Protocol

from rapidfuzz.distance import LCSseq

#: Lines before and after a change that are shown with it.
CONTEXT = 3
#: Between two lines that surely stayed, so many are compared; in all, so many may have changed,
#: and so many characters are shown. Beyond that there is only a summary.
COMPARED_LINES = 10_000
CHANGED_LINES = 100_000
SHOWN_CHARACTERS = 200_000
#: Words are compared in lines of at most so many, and in all of so many on each side.
LINE_WORDS = 2_000
COMPARED_WORDS = 10_000
#: Of a line's words, those that must have stayed: else it counts as new, and nothing is marked.
ALIKE = 0.3
#: What stayed between two changed words and is no longer than this is marked with them.
ISLAND = 2

#: A word, one character of a script that is written without spaces, or one other character.
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_word = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")

Kind = Literal["same", "removed", "added"]
Detail = Literal["words", "lines", "summary"]
Marks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """``marks`` are the ranges of characters that changed in a line that changed in part."""

    kind: Kind
    text: str
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that belong together, and the numbers of the first one, counted from 1."""

    old_start: int
    new_start: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class TextDiff:
    """``detail`` says how closely it was compared; a ``summary`` has no hunks."""

    detail: Detail = "words"
    added: int = 0
    removed: int = 0
    hunks: tuple[Hunk, ...] = ()


class State(Protocol):
    """What a revision keeps besides its text."""

    title: str
    folder: str
    tags: list[str]
    language: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: Literal["title", "folder", "tags", "language"]
    before: str | list[str]
    after: str | list[str]


def field_changes(before: State, after: State) -> tuple[FieldChange, ...]:
    pairs = (
        FieldChange("title", before.title, after.title),
        FieldChange("folder", before.folder, after.folder),
        FieldChange("tags", list(before.tags), list(after.tags)),
        FieldChange("language", before.language, after.language),
    )
    return tuple(pair for pair in pairs if pair.before != pair.after)


def text_diff(before: str, after: str) -> TextDiff:
    return lines_diff(_lines(before), _lines(after))


def lines_diff(old: list[str], new: list[str]) -> TextDiff:
    if old == new:
        return TextDiff()
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    blocks = _line_blocks(gone, come)
    if blocks is None or _changed(blocks, gone, come) > SHOWN_CHARACTERS:
        return _summary(gone, come)
    words = _Words()
    lines = [Line("same", text) for text in old[max(0, start - CONTEXT) : start]]
    at = 0
    for block in blocks:
        lines += [Line("same", text) for text in gone[at : block.old]]
        lines += words.compared(gone[block.old : block.old_end], come[block.new : block.new_end])
        at = block.old_end
    lines += [Line("same", text) for text in gone[at:]]
    lines += [Line("same", text) for text in old[len(old) - end :][:CONTEXT]]
    first = max(0, start - CONTEXT) + 1
    hunks = tuple(_hunks(lines, first))
    if sum(len(line.text) for hunk in hunks for line in hunk.lines) > SHOWN_CHARACTERS:
        return _summary(gone, come)
    return TextDiff(
        "words" if words.complete else "lines",
        added=sum(block.new_end - block.new for block in blocks),
        removed=sum(block.old_end - block.old for block in blocks),
        hunks=hunks,
    )


class _Block(NamedTuple):
    """Lines (or words) ``old`` to ``old_end`` became ``new`` to ``new_end``."""

    old: int
    old_end: int
    new: int
    new_end: int


def _lines(text: str) -> list[str]:
    # Not `splitlines`, which also ends a line at U+2028 and others that a line may hold.
    return text.split("\n") if text else []


def _common(some: Sequence[str], others: Sequence[str]) -> int:
    """How many of the first lines are the same."""
    at, step = 0, 1000
    while at < len(some) and some[at : at + step] == others[at : at + step]:
        at += step
    shorter = min(len(some), len(others))
    pairs = enumerate(zip(some[at : at + step], others[at : at + step], strict=False), at)
    return next((place for place, (one, other) in pairs if one != other), shorter)


def _summary(gone: Sequence[str], come: Sequence[str]) -> TextDiff:
    """Numbers alone; a line that only moved counts as neither added nor removed."""
    before, after = Counter(gone), Counter(come)
    return TextDiff("summary", added=(after - before).total(), removed=(before - after).total())


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
    """What differs, between the runs that are the same."""
    at = _Block(0, 0, 0, 0)
    for step in LCSseq.opcodes(old, new):
        if step.tag == "equal":
            if at.old_end > at.old or at.new_end > at.new:
                yield at
            at = _Block(step.src_end, step.src_end, step.dest_end, step.dest_end)
        else:
            at = at._replace(old_end=step.src_end, new_end=step.dest_end)
    if at.old_end > at.old or at.new_end > at.new:
        yield at


def _changed(blocks: Iterable[_Block], old: Sequence[str], new: Sequence[str]) -> int:
    """The characters of all lines that are not the same."""
    return sum(
        sum(map(len, old[block.old : block.old_end]))
        + sum(map(len, new[block.new : block.new_end]))
        for block in blocks
    )


def _line_blocks(old: Sequence[str], new: Sequence[str]) -> list[_Block] | None:
    """As ``_blocks``, for texts whose lines are too many to compare each with each."""
    if max(len(old), len(new)) <= COMPARED_LINES:
        return list(_blocks(old, new))
    if max(len(old), len(new)) > CHANGED_LINES:
        return None
    blocks: list[_Block] = []
    old_at = new_at = 0
    for old_end, new_end in [*_anchors(old, new), (len(old), len(new))]:
        if max(old_end - old_at, new_end - new_at) > COMPARED_LINES:
            return None
        for block in _blocks(old[old_at:old_end], new[new_at:new_end]):
            blocks.append(
                _Block(
                    block.old + old_at,
                    block.old_end + old_at,
                    block.new + new_at,
                    block.new_end + new_at,
                )
            )
        old_at, new_at = old_end + 1, new_end + 1
    return blocks


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that are in both texts once: the most that are in the same order."""
    counts, others = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new) if others[line] == 1}
    # Patience sorting: each pile's top, and for each pair the pair before it.
    tops: list[int] = []
    piles: list[tuple[int, int]] = []
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    for at, line in enumerate(old):
        if counts[line] != 1 or line not in places:
            continue
        pair = (at, places[line])
        pile = bisect_left(tops, pair[1])
        before[pair] = piles[pile - 1] if pile else None
        tops[pile : pile + 1] = [pair[1]]
        piles[pile : pile + 1] = [pair]
    longest: list[tuple[int, int]] = []
    last = piles[-1] if piles else None
    while last is not None:
        longest.append(last)
        last = before[last]
    return longest[::-1]


def _hunks(lines: Sequence[Line], first: int) -> Iterator[Hunk]:
    """Changes with the lines around them; what is far from every change is left out."""
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(at - CONTEXT, at + CONTEXT + 1))
    old = new = first
    for is_near, run in groupby(enumerate(lines), lambda pair: pair[0] in near):
        together = tuple(line for _, line in run)
        if is_near:
            yield Hunk(old, new, together)
        old += sum(line.kind != "added" for line in together)
        new += sum(line.kind != "removed" for line in together)


class _Token(NamedTuple):
    line: int
    start: int
    end: int


class _Words:
    """Compares the words of changed lines until its budget is spent."""

    def __init__(self) -> None:
        self._left = COMPARED_WORDS
        self.complete = True

    def compared(self, gone: Sequence[str], come: Sequence[str]) -> list[Line]:
        removed, added = self._marks(gone, come) if gone and come else ({}, {})
        return [
            *(Line("removed", text, removed.get(at, ())) for at, text in enumerate(gone)),
            *(Line("added", text, added.get(at, ())) for at, text in enumerate(come)),
        ]

    def _marks(
        self, gone: Sequence[str], come: Sequence[str]
    ) -> tuple[dict[int, Marks], dict[int, Marks]]:
        old, new = self._tokens(gone), self._tokens(come)
        if old is None or new is None or max(len(old), len(new)) > self._left:
            self.complete = False
            return {}, {}
        self._left -= max(len(old), len(new))
        blocks = _joined(_blocks(_texts(gone, old), _texts(come, new)), old, new)
        return (
            _ranges(old, ((block.old, block.old_end) for block in blocks)),
            _ranges(new, ((block.new, block.new_end) for block in blocks)),
        )

    def _tokens(self, lines: Sequence[str]) -> list[_Token] | None:
        """The words of all lines with their places, unless they are too many."""
        found: list[_Token] = []
        for at, line in enumerate(lines):
            limit = min(len(found) + LINE_WORDS, self._left)
            for match in _word.finditer(line):
                if len(found) == limit:
                    return None
                found.append(_Token(at, match.start(), match.end()))
        return found


def _texts(lines: Sequence[str], tokens: Iterable[_Token]) -> list[str]:
    return [lines[token.line][token.start : token.end] for token in tokens]


def _joined(blocks: Iterable[_Block], old: Sequence[_Token], new: Sequence[_Token]) -> list[_Block]:
    """The blocks, those that only an island in one line keeps apart made one."""
    joined: list[_Block] = []
    for block in blocks:
        if joined:
            last = joined[-1]
            island = old[last.old_end : block.old]
            if (
                sum(token.end - token.start for token in island) <= ISLAND
                and _in_one_line(old, last.old_end, block.old)
                and _in_one_line(new, last.new_end, block.new)
            ):
                block = joined.pop()._replace(old_end=block.old_end, new_end=block.new_end)
        joined.append(block)
    return joined


def _in_one_line(tokens: Sequence[_Token], first: int, last: int) -> bool:
    return tokens[first].line == tokens[min(last, len(tokens) - 1)].line


def _ranges(tokens: Sequence[_Token], runs: Iterable[tuple[int, int]]) -> dict[int, Marks]:
    """For each line that is still alike, the ranges from the first to the last word of its runs."""
    words = Counter(token.line for token in tokens)
    changed: Counter[int] = Counter()
    marks: dict[int, list[tuple[int, int]]] = {}
    for first, end in runs:
        for line, run in groupby(tokens[first:end], lambda token: token.line):
            together = list(run)
            changed[line] += len(together)
            marks.setdefault(line, []).append((together[0].start, together[-1].end))
    return {
        line: tuple(spans)
        for line, spans in marks.items()
        if words[line] - changed[line] >= ALIKE * words[line]
    }
