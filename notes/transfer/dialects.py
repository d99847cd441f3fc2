"""What a Markdown file says: fields and text, by the program that wrote it.

Three ways of writing are told apart. Notewire's own export (the field ``notewire``) says all a note
has, and its text is the rest of the file, byte for byte. Joplin's export has title, created and
updated; its tags are in the list alone. Anything else is a folder of Markdown as Obsidian keeps
it: title from the name, times from the file, ``#tags`` in the text count too, ``[[links]]`` stay.

Pure: what may become of a draft is decided by ``importing`` and the services.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, TypeVar
from uuid import UUID

from notes import tags as tag_rules
from notes.folders import ROOT
from notes.models import Note
from notes.rules import LANGUAGES
from notes.transfer import front_matter, names

T = TypeVar("T")

MARK = "notewire"
FORMAT = "1"
NOTE_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".txt"})

_CREATED = ("created", "date created", "created_at", "date")
_UPDATED = ("updated", "modified", "date modified", "updated_at", "lastmod")
_TAGS = ("tags", "tag")
_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_CODE = re.compile(r"`[^`\n]*`")
_HASHTAG = re.compile(r"(?<!\S)#([\w/-]+)")


@dataclass(slots=True)
class Draft:
    """What a file wants to be. ``id`` and ``version`` are what the file says of itself."""

    title: str
    content: str
    folder: str
    tags: list[str] = field(default_factory=list)
    language: str = ""
    id: UUID | None = None
    version: int | None = None
    created: datetime | None = None
    updated: datetime | None = None
    source_conversation: UUID | None = None
    source_message: UUID | None = None
    remarks: list[str] = field(default_factory=list)


def skipped(parts: Sequence[str]) -> str:
    """Why a file is passed over, though nothing is wrong with it."""
    if any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return "A hidden file of some program."
    if PurePosixPath(parts[-1]).suffix.lower() not in NOTE_SUFFIXES:
        return "An attachment: only Markdown and text become notes."
    return ""


def draft(parts: Sequence[str], text: str, modified: datetime | None) -> Draft:
    """What the file at ``parts`` with this ``text`` wants to be."""
    folder = f"/{'/'.join(parts[:-1])}/" if len(parts) > 1 else ROOT
    title = PurePosixPath(parts[-1]).stem
    try:
        fields, body = front_matter.read(text)
    except front_matter.FrontMatterInvalid as error:
        drafted = _plain(title, folder, _Taking({}), text, modified)
        drafted.remarks.append(f"The front matter {error}: it is kept as text.")
        return drafted
    if fields is None:
        return _plain(title, folder, _Taking({}), text, modified)
    taking = _Taking(fields)
    if fields.get(MARK) == FORMAT:
        drafted = _own(title, folder, taking, body)
    else:
        drafted = _plain(title, folder, taking, body, modified)
    taking.keep(front_matter.commented(text))
    # Whatever a note has no place for stays in its text as it was written.
    if kept := front_matter.rest(text, taking.left()):
        drafted.content = kept + body
    elif fields.get(MARK) != FORMAT:
        drafted.content = _without_blank_line(body)
    drafted.remarks += taking.remarks
    return drafted


def as_file(note: Note, claim: names.UniqueNames) -> tuple[str, str]:
    """The name and the text of ``note`` in an export: ``draft`` turns them back."""
    folder = names.folder_safe(note.folder)
    is_said = f"/{folder}" == note.folder and claim.is_spelled_alike(folder)
    name = claim.claim(folder + names.name_safe(note.title, otherwise="Untitled")) + ".md"
    fields: dict[str, object] = {
        "title": note.title,
        "tags": note.tags,
        "folder": None if is_said else note.folder,
        "language": note.language,
        "created": note.created,
        "updated": note.updated,
        "source_conversation": _shown(note.source_conversation_id),
        "source_message": _shown(note.source_message_id),
        "id": str(note.id),
        "version": note.version,
    }
    kept = {key: value for key, value in fields.items() if value or key == "title"}
    return name, front_matter.written({**kept, MARK: int(FORMAT)}, note.content)


class _Taking:
    """The fields of a front matter, of which some are taken into a note; the others stay."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self._taken: set[str] = set()
        self._misread: list[str] = []

    def has(self, name: str) -> bool:
        return name in self._fields

    def take(self, name: str, read: Callable[[Any], T | None]) -> T | None:
        """What ``read`` makes of a field. What it makes nothing of stays, and is said."""
        value = self._fields.get(name)
        if value is None or value in ("", []):
            self._taken.add(name)
            return None
        taken = read(value)
        if taken is None:
            self._misread.append(name)
        else:
            self._taken.add(name)
        return taken

    def first(self, names: Iterable[str], read: Callable[[Any], T | None]) -> T | None:
        """The first of several fields that says something; the others stay as they are."""
        given = (self.take(name, read) for name in names if self.has(name))
        return next((taken for taken in given if taken is not None), None)

    def keep(self, names: Iterable[str]) -> None:
        """Fields that stay, taken or not."""
        self._taken.difference_update(names)

    def left(self) -> set[str]:
        return set(self._fields) - self._taken

    @property
    def remarks(self) -> list[str]:
        said = [
            f"{name}: {_shortened(self._fields[name])} is not understood." for name in self._misread
        ]
        if left := [name for name in self._fields if name not in self._taken]:
            said.append(f"Kept at the top of the text as front matter: {', '.join(left[:10])}.")
        return said


def _shortened(value: object) -> str:
    text = value if isinstance(value, str) else "what it holds"
    return f"\N{LEFT DOUBLE QUOTATION MARK}{text[:40]}\N{RIGHT DOUBLE QUOTATION MARK}"


def _own(title: str, folder: str, taking: _Taking, body: str) -> Draft:
    taking.take(MARK, _text)
    given = taking.take("title", _text)
    return Draft(
        title=title if given is None and not taking.has("title") else given or "",
        content=body,
        folder=taking.take("folder", _text) or folder,
        tags=taking.take("tags", _own_tags) or [],
        language=taking.take("language", _language) or "",
        id=taking.take("id", _uuid),
        version=taking.take("version", _version),
        created=taking.take("created", _time),
        updated=taking.take("updated", _time),
        source_conversation=taking.take("source_conversation", _uuid),
        source_message=taking.take("source_message", _uuid),
    )


def _plain(
    title: str, folder: str, taking: _Taking, content: str, modified: datetime | None
) -> Draft:
    created = taking.first(_CREATED, _time)
    updated = taking.first(_UPDATED, _time)
    listed = [taking.take(name, _listed_tags) or [] for name in _TAGS]
    is_joplin = bool(created and updated and taking.has("title"))
    written = () if is_joplin else hashtags(content)
    drafted = Draft(
        title=(taking.take("title", _text) or "").strip() or title,
        content=content,
        folder=folder,
        language=taking.take("language", _language) or "",
        created=created or modified,
        updated=updated or modified or created,
        id=taking.take("id", _uuid),
    )
    _take_tags(drafted, chain(*listed, written))
    return drafted


def hashtags(text: str) -> Iterator[str]:
    """The ``#tags`` of a text outside code; one is not of digits alone."""
    fence = ""
    for line in _LINE.finditer(text) if "#" in text else ():
        mark = _FENCE.match(line[0])
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1] == fence:
            fence = ""
        elif not fence and "#" in line[0]:
            for found in _HASHTAG.finditer(_CODE.sub(" ", line[0])):
                tag = found[1].strip("/")
                if tag and not tag.replace("/", "").isdigit():
                    yield tag


def _take_tags(drafted: Draft, tags: Iterable[str]) -> None:
    """As many as a note may have; what does not fit is said."""
    kept: dict[str, str] = {}
    seen: set[str] = set()
    are_all = True
    for tag in tags:
        if tag in seen:
            continue
        seen.add(tag)
        folded = tag_rules.tag_folded(tag) if len(tag) <= tag_rules.MAX_LENGTH else ""
        if folded and (folded in kept or len(kept) < tag_rules.MAX_TAGS):
            kept.setdefault(folded, tag)
            continue
        are_all = False
        if len(kept) == tag_rules.MAX_TAGS:
            break
    drafted.tags = list(kept.values())
    if not are_all:
        drafted.remarks.append(
            f"Some of its tags are left out: a note has at most {tag_rules.MAX_TAGS},"
            f" of at most {tag_rules.MAX_LENGTH} characters."
        )


def _own_tags(value: object) -> list[str] | None:
    """As they are, unless another program rewrote the list."""
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return value
    return _listed_tags(value)


def _listed_tags(value: object) -> list[str] | None:
    """A list, or a line of tags between commas or spaces; ``#`` before them is for show."""
    listed = re.split(r"[,\s]+", value) if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(tag, str | None) for tag in listed):
        return None
    tags = (tag.strip().lstrip("#") for tag in listed if tag is not None)
    return [tag for tag in tags if tag]


def _without_blank_line(body: str) -> str:
    """One empty line after the block is a separator; the rest is the note's."""
    for blank in ("\r\n", "\n"):
        if body.startswith(blank):
            return body.removeprefix(blank)
    return body


def _shown(value: UUID | None) -> str | None:
    return str(value) if value else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _language(value: object) -> str | None:
    return value if isinstance(value, str) and value in LANGUAGES else None


def _version(value: object) -> int | None:
    text = _text(value) or ""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _uuid(value: object) -> UUID | None:
    text = _text(value) or ""
    if not re.fullmatch(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}", text):
        return None
    return UUID(text)


def _time(value: object) -> datetime | None:
    """A time in ISO 8601, in UTC where it names no zone; None for what is none."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
