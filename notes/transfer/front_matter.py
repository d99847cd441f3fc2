"""The YAML block that may stand before a note's text, within bounds and byte for byte.

Owns where the block ends, what it may hold (an object; texts, lists and objects, no other types:
`no` stays the word and `2024-01-01` the title it is), and how it is written. What the fields mean
is said in ``dialects``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from notes.transfer.exceptions import FileRefused

MAX_BYTES = 64 * 1024
MAX_DEPTH = 10

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KINDS = {list: "a list", type(None): "empty"}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class FrontMatterInvalid(Exception):
    """The block is no YAML object, and why: perhaps it is the note's own text."""


class _Loader(yaml.CBaseLoader):
    """Every scalar is text, but for a plain ``null``."""

    def construct_scalar(self, node: Any) -> str | None:  # type: ignore[override]
        text: str = super().construct_scalar(node)
        return None if not node.style and text in _NULLS else text

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        fields: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(fields) < len(node.value):  # of two values of a name, one would be lost
            raise yaml.constructor.ConstructorError(None, None, "a name twice", node.start_mark)
        return fields


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_time(dumper: Any, value: datetime) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:timestamp", value.isoformat())


_Dumper.add_representer(datetime, _represent_time)


class NoteHandler(YAMLHandler):
    """python-frontmatter's YAML handler, with bounds; its own ``split`` eats blank lines."""

    def split(self, text: str) -> tuple[str, str]:
        """The block and exactly what follows it; an empty block where there is none."""
        opening = _OPENING.match(text)
        closing = _CLOSING.search(text, opening.end()) if opening else None
        if opening is None or closing is None:
            return "", text
        return text[opening.end() : closing.start()], text[closing.end() :]

    def load(self, fm: str, **kwargs: object) -> dict[str, Any]:
        if len(fm) > MAX_BYTES or len(fm.encode()) > MAX_BYTES:
            raise FileRefused("The front matter is larger than 64 KiB.")
        try:
            _check_events(fm)
            fields = super().load(fm, Loader=_Loader)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise FrontMatterInvalid(f"is not valid YAML{_where(error)}") from None
        if not isinstance(fields, dict):
            raise FrontMatterInvalid(f"is {_KINDS.get(type(fields), 'text')} and has no fields")
        return {str(name): value for name, value in fields.items()}

    def export(self, metadata: dict[str, object], **kwargs: object) -> str:
        return super().export(metadata, Dumper=_Dumper, sort_keys=False, width=1_000_000)


def _check_events(block: str) -> None:
    """Refuse what grows when it is put together, before it is."""
    depth = 0
    for event in yaml.parse(block, Loader=yaml.CBaseLoader):
        if isinstance(event, yaml.AliasEvent):
            raise FileRefused("The front matter has YAML aliases.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise FileRefused(f"The front matter is nested more than {MAX_DEPTH} levels deep.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 2})"


_handler = NoteHandler()


def read(text: str) -> tuple[dict[str, Any] | None, str]:
    """The fields, or None without a block, and the text after it as it is."""
    block, body = _handler.split(text)
    if not block.strip():
        return None, text
    return _handler.load(block), body


def commented(text: str) -> set[str]:
    """The fields of the block before ``text`` with a comment beside, before or under them."""
    block, _ = _handler.split(text)
    if "#" not in block:
        return set()
    places = [place for start, end in _between_tokens(block) for place in _signs(block, start, end)]
    at, found = 0, set()
    for name, lines in _pieces(block):
        if any(at <= place < at + len(lines) for place in places):
            found.add(name)
        at += len(lines)
    return found


def _between_tokens(block: str) -> Iterator[tuple[int, int]]:
    """The ranges of what is no part of any word or sign of YAML: blanks and comments."""
    at = 0
    for token in yaml.scan(block, Loader=yaml.CBaseLoader):
        yield at, token.start_mark.index
        at = max(at, token.end_mark.index)
    yield at, len(block)


def _signs(block: str, start: int, end: int) -> list[int]:
    return [start + match.start() for match in re.finditer("#", block[start:end])]


def rest(text: str, names: Collection[str]) -> str:
    """The block before ``text`` with the fields ``names`` alone, letter for letter, or nothing."""
    block, _ = _handler.split(text)
    fields = {name: value for name, value in _loaded(block).items() if name in names}
    if not fields:
        return ""
    kept = "".join(lines for name, lines in _pieces(block) if name in names)
    if _loaded(kept) != fields:  # written in some other way than line by line
        kept = f"{_handler.export(fields)}\n"
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    return f"---{end}{kept}---{end}"


def _pieces(block: str) -> Iterator[tuple[str, str]]:
    """Each field of a block and all that stands from there to the next one; the first with what
    stands before it."""
    root: Any = yaml.compose(block, Loader=yaml.CBaseLoader)
    keys = [(str(key.value), key.start_mark.index) for key, _ in root.value]
    keys[:1] = [(name, 0) for name, _ in keys[:1]]
    ends = [index for _, index in keys[1:]] + [len(block)]
    for (name, start), end in zip(keys, ends, strict=True):
        yield name, block[start:end]


def _loaded(block: str) -> dict[str, Any]:
    try:
        return _handler.load(block) if block.strip() else {}
    except (FrontMatterInvalid, FileRefused):
        return {}


def written(fields: dict[str, object], body: str) -> str:
    """``body`` behind a block that holds ``fields``, in their order."""
    return f"---\n{_handler.export(fields)}\n---\n{body}"
