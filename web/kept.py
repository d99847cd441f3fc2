"""Texts that were made of other texts, kept while there is room: the ones used last stay.

Bounded by characters rather than by number, so that a long transcript of short messages is kept
whole, and many long ones cannot fill the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock


class Kept:
    """``make`` with a memory of ``room`` characters. For any number of threads."""

    def __init__(self, make: Callable[[str], str], *, room: int) -> None:
        self._make = make
        self._left = room
        self._made: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    def __call__(self, text: str) -> str:
        with self._lock:
            if (made := self._made.get(text)) is not None:
                self._made.move_to_end(text)
                return made
        made = self._make(text)
        with self._lock:
            if text not in self._made:
                self._made[text] = made
                self._left -= len(text) + len(made)
            while self._left < 0:
                old, its = self._made.popitem(last=False)
                self._left += len(old) + len(its)
        return made

    def clear(self) -> None:
        with self._lock:
            self._left += sum(len(old) + len(its) for old, its in self._made.items())
            self._made.clear()
