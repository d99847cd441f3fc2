"""Parts of a note that is too long for one page: where they begin and end. Pure.

A part is a range of the content's characters. Where it can, it ends with a paragraph.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Longer contents are shown and edited in parts, each of at most so many characters.
WHOLE = 256 * 1024
PART = 128 * 1024

_ENDS = ("\n\n", "\n", " ")
_FENCES = ("\n```", "\n~~~")


@dataclass(frozen=True, slots=True)
class Part:
    """Part ``number`` of ``count``, from 1: ``content[start:end]``."""

    number: int
    count: int
    start: int
    end: int


def parts_of(content: str) -> list[Part]:
    """All parts, in order; one where the content is short enough."""
    edges = [0]
    while len(content) > WHOLE and edges[-1] + PART < len(content):
        edges.append(_end_of(content, edges[-1] + PART))
    edges.append(len(content))
    count = len(edges) - 1
    return [Part(n + 1, count, edges[n], edges[n + 1]) for n in range(count)]


def part_of(content: str, *, number: int = 1) -> Part:
    """The part of that number, or the one nearest to it."""
    parts = parts_of(content)
    return parts[min(max(number, 1), len(parts)) - 1]


def part_at(content: str, place: int) -> Part:
    """The part in which the character at ``place`` is."""
    return next(part for part in reversed(parts_of(content)) if part.start <= place)


def markdown_of(content: str, part: Part) -> str:
    """The text of a part, in a code block where the part before it ended in one."""
    text = content[part.start : part.end]
    before = "\n" + content[: part.start]
    fences = [(before.rfind(fence), fence) for fence in _FENCES]
    if sum(before.count(fence) for _, fence in fences) % 2:
        text = f"{max(fences)[1].strip()}\n{text}"
    return text


def _end_of(content: str, most: int) -> int:
    for end in _ENDS:
        place = content.rfind(end, most - PART // 4, most)
        if place >= 0:
            return place + len(end)
    return most - 1 if content[most - 1] == "\r" else most
