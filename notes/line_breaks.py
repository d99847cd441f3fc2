"""Keeps the line breaks of a text that came through a browser, which sends them all alike. Pure."""

from __future__ import annotations

import re
from collections import Counter

_BREAK = re.compile(r"(\r\n|\r|\n)")


def line_breaks_alike(text: str) -> str:
    """Every line break as a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def line_breaks_kept(before: str, sent: str) -> str:
    """``sent`` with the line breaks that ``before`` has.

    Lines before and after the ones that were changed keep their own; those between get the one
    that is most frequent.
    """
    lines = line_breaks_alike(sent).split("\n")
    if "\r" not in before:
        return "\n".join(lines)
    pieces = _BREAK.split(before)
    old_lines, old_breaks = pieces[::2], pieces[1::2]
    most = min(len(lines), len(old_lines)) - 1
    head = _alike(lines, old_lines, most)
    tail = _alike(lines[::-1], old_lines[::-1], most - head)
    usual = Counter(old_breaks).most_common(1)[0][0]
    breaks = [
        *old_breaks[:head],
        *[usual] * (len(lines) - 1 - head - tail),
        *old_breaks[len(old_breaks) - tail :],
        "",
    ]
    for index in range(len(breaks) - 2, -1, -1):
        if breaks[index] == "\r" and not lines[index + 1] and breaks[index + 1][:1] == "\n":
            breaks[index] = "\n"  # side by side the two would be one break
    return "".join(line + end for line, end in zip(lines, breaks, strict=True))


def _alike(lines: list[str], others: list[str], most: int) -> int:
    """How many lines both begin with, up to ``most``."""
    pairs = zip(lines[:most], others[:most], strict=True)
    return next((n for n, (line, other) in enumerate(pairs) if line != other), max(most, 0))
