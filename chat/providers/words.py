"""Text as it arrives, piece by piece, made fit to be stored at once."""

from __future__ import annotations

from tools.text import clean


class Words:
    """Pieces are cleaned one by one; a surrogate pair cut in two waits for its second half."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._half = ""

    def add(self, text: str) -> str:
        """What of ``text`` can be shown now."""
        if self._half:
            text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        if text := clean(text):
            self._parts.append(text)
        return text

    def whole(self) -> str:
        return "".join(self._parts)
