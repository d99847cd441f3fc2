"""A page in miniature: applies the frames of the HTML stream to a tree as the script does."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "path", "circle", "rect"}


class _Finder(HTMLParser):
    """Where the content of the element with an id begins and ends, and the element itself."""

    def __init__(self, html: str, wanted: str) -> None:
        super().__init__(convert_charrefs=False)
        self.wanted = wanted
        self.lines = [0]
        for line in html.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.depth = 0
        self.span: tuple[int, int, int, int] | None = None
        self._open: tuple[int, int, int] | None = None
        self.feed(html)

    def _offset(self) -> int:
        line, column = self.getpos()
        return self.lines[line - 1] + column

    def handle_starttag(self, tag, attrs) -> None:
        if tag in VOID or (self.get_starttag_text() or "").endswith("/>"):
            return
        self.depth += 1
        if dict(attrs).get("id") == self.wanted:
            assert self._open is None, f"two elements with the id {self.wanted}"
            start = self._offset()
            self._open = (start, start + len(self.get_starttag_text() or ""), self.depth)

    def handle_startendtag(self, tag, attrs) -> None:
        return

    def handle_endtag(self, tag) -> None:
        if self._open and self.span is None and self.depth == self._open[2]:
            end = self._offset()
            self.span = (self._open[0], self._open[1], end, end + len(f"</{tag}>"))
        self.depth -= 1


class MiniPage:
    def __init__(self, html: str) -> None:
        self.html = html
        self.blocks: dict[str, list[str]] = {}

    def span(self, target: str) -> tuple[int, int, int, int]:
        span = _Finder(self.html, target).span
        assert span is not None, f"no element {target}"
        return span

    def inner(self, target: str) -> str:
        _, start, end, _ = self.span(target)
        return self.html[start:end]

    def apply(self, name: str, data: dict) -> None:
        match name:
            case "fragment":
                self._fragment(**data)
            case "block":
                self._block(**data)
            case _:
                assert name == "done"

    def _fragment(self, target: str, how: str, html: str) -> None:
        begin, start, end, stop = self.span(target)
        match how:
            case "replace":
                self.html = self.html[:begin] + html + self.html[stop:]
            case "inner":
                self.html = self.html[:start] + html + self.html[end:]
            case "append":
                self.html = self.html[:end] + html + self.html[end:]
        if how == "replace":
            self.blocks = {}

    def _block(self, target: str, index: int, keep: int, html: str) -> None:
        inner = self.inner(target)
        blocks = self.blocks.get(target)
        if blocks is None:
            # What stood there before is counted as the blocks that come first.
            blocks = [inner] + [""] * (index - 1) if index else []
        kept = blocks[index] if index < len(blocks) else ""
        kept = kept.encode("utf-16-le")[: keep * 2].decode("utf-16-le")
        self.blocks[target] = blocks = [*blocks[:index], kept + html]
        _, start, end, _ = self.span(target)
        self.html = self.html[:start] + "".join(blocks) + self.html[end:]
