"""Thinking that a local model writes into its answer: ``<think>…</think>`` at the very beginning.

Sits above ``assembly``: servers that know their model's template send thinking in a field of its
own, the others pass the tags through. Tags further on are text, for someone may write about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chat.types import Completion, Delta, TextDelta, ThinkingDelta

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Feed it the deltas of one model call, then its completion."""

    def __init__(self) -> None:
        self._step = self._before
        self._held = ""
        self._found = False
        self._thought: list[str] = []
        self._said: list[str] = []

    def take(self, deltas: Iterable[Delta]) -> tuple[Delta, ...]:
        """The deltas, with text inside the tags as thinking; a tag may be cut anywhere."""
        out: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, TextDelta):
                self._held += delta.text
                self._run(out)
            else:
                out.append(delta)
        return tuple(out)

    def close(self) -> tuple[Delta, ...]:
        """What was held back because it could have become a tag."""
        out: list[Delta] = []
        if self._held:
            kind = self._think if self._step == self._inside else self._say
            kind(self._held, out)
            self._held = ""
        return tuple(out)

    def complete(self, completion: Completion) -> Completion:
        if not self._found:
            return completion
        return replace(
            completion,
            text="".join(self._said),
            thinking=completion.thinking + "".join(self._thought),
        )

    def _run(self, out: list[Delta]) -> None:
        before = None
        while self._held and self._step != before:
            before = self._step
            self._step(out)

    def _before(self, out: list[Delta]) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._held = start[len(_OPEN) :]
            self._found = True
            self._step = self._inside
        elif not _OPEN.startswith(start):
            self._step = self._after

    def _inside(self, out: list[Delta]) -> None:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._think(thought, out)
            self._held, self._step = rest, self._between
            return
        kept = next(n for n in range(len(_CLOSE), -1, -1) if thought.endswith(_CLOSE[:n]))
        self._think(thought[: len(thought) - kept], out)
        self._held = thought[len(thought) - kept :]

    def _between(self, out: list[Delta]) -> None:
        """The blank lines after the closing tag belong to neither."""
        self._held = self._held.lstrip()
        if self._held:
            self._step = self._after

    def _after(self, out: list[Delta]) -> None:
        self._say(self._held, out)
        self._held = ""

    def _think(self, text: str, out: list[Delta]) -> None:
        if not self._thought:
            text = text.lstrip()
        if text:
            self._thought.append(text)
            out.append(ThinkingDelta(text))

    def _say(self, text: str, out: list[Delta]) -> None:
        self._said.append(text)
        out.append(TextDelta(text))
