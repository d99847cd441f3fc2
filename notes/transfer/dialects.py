"""What a Markdown file says: fields and text, by the program that wrote it.

Three ways of writing are told apart. Notewire's own export (the field ``notewire``) says all a note
has, and its text is the rest of the file, byte for byte. Joplin's export has title, created and
updated; its tags are in the list alone. Anything else is a folder of Markdown as Obsidian keeps
it: title from the name, times from the file, ``#tags`` in the text count too, ``[[links]]`` stay.

Pure: what may become of a draft is decided by ``importing`` and the services.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from notes import tags as tag_rules
from notes.folders import ROOT
from notes.models import Note
from notes.transfer import front_matter, names

MARK = "notewire"
FORMAT = "1"
NOTE_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".txt"})

_CREATED = ("created", "date created", "created_at", "date")
_UPDATED = ("updated", "modified", "date modified", "updated_at", "lastmod")
_TAGS = ("tags", "tag")
_KNOWN = frozenset({"title", "id", *_TAGS, *_CREATED, *_UPDATED})
_OWN = frozenset(
    {
        "title",
        "tags",
        "folder",
        "language",
        "created",
        "updated",
        "source_conversation",
        "source_message",
        "id",
        "version",
        MARK,
    }
)
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
        drafted = _plain(title, folder, {}, text, modified)
        where = f" ({error})" if str(error) else ""
        drafted.remarks.append(f"The front matter is not valid YAML{where}: it is kept as text.")
        return drafted
    if fields is None:
        return _plain(title, folder, {}, text, modified)
    if fields.get(MARK) == FORMAT:
        return _own(title, folder, fields, body)
    return _plain(title, folder, fields, _without_blank_line(body), modified)


def as_file(note: Note, claim: names.UniqueNames) -> tuple[str, str]:
    """The name and the text of ``note`` in an export: ``draft`` turns them back."""
    folder = names.folder_safe(note.folder)
    name = claim.claim(folder + names.name_safe(note.title, otherwise="Untitled")) + ".md"
    fields: dict[str, object] = {
        "title": note.title,
        "tags": note.tags,
        "folder": None if f"/{folder}" == note.folder else note.folder,
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


def _own(title: str, folder: str, fields: dict[str, Any], body: str) -> Draft:
    version = _text(fields, "version")
    return Draft(
        title=_text(fields, "title") if isinstance(fields.get("title"), str) else title,
        content=body,
        folder=_text(fields, "folder") or folder,
        tags=_own_tags(fields.get("tags")),
        language=_text(fields, "language"),
        id=_uuid(fields, "id"),
        version=int(version) if re.fullmatch(r"[0-9]{1,9}", version) else None,
        created=_time(fields.get("created")),
        updated=_time(fields.get("updated")),
        source_conversation=_uuid(fields, "source_conversation"),
        source_message=_uuid(fields, "source_message"),
        remarks=_left_out(fields, _OWN),
    )


def _plain(
    title: str, folder: str, fields: dict[str, Any], content: str, modified: datetime | None
) -> Draft:
    created = _first_time(fields, _CREATED)
    updated = _first_time(fields, _UPDATED)
    listed = [tag for name in _TAGS for tag in _listed_tags(fields.get(name))]
    is_joplin = bool(created and updated and "title" in fields)
    written = () if is_joplin else hashtags(content)
    given = _text(fields, "title").strip()
    drafted = Draft(
        title=given or title,
        content=content,
        folder=folder,
        created=created or modified,
        updated=updated or modified or created,
        id=_uuid(fields, "id"),
    )
    _take_tags(drafted, chain(listed, written))
    drafted.remarks += _left_out(fields, _KNOWN)
    return drafted


def _left_out(fields: dict[str, Any], known: frozenset[str]) -> list[str]:
    left = [name for name, value in fields.items() if name not in known and value not in (None, [])]
    if not left:
        return []
    return [f"Fields of the front matter that notes do not have: {', '.join(left[:10])}."]


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


def _own_tags(value: object) -> list[str]:
    """As they are, unless another program rewrote the list."""
    if isinstance(value, list):
        return [tag for tag in value if isinstance(tag, str)]
    return _listed_tags(value)


def _listed_tags(value: object) -> list[str]:
    """A list, or a line of tags between commas or spaces; ``#`` before them is for show."""
    listed = re.split(r"[,\s]+", value) if isinstance(value, str) else value
    if not isinstance(listed, list):
        return []
    tags = (tag.strip().lstrip("#") for tag in listed if isinstance(tag, str))
    return [tag for tag in tags if tag]


def _without_blank_line(body: str) -> str:
    """One empty line after the block is a separator; the rest is the note's."""
    for blank in ("\r\n", "\n"):
        if body.startswith(blank):
            return body.removeprefix(blank)
    return body


def _shown(value: UUID | None) -> str | None:
    return str(value) if value else None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _uuid(fields: dict[str, Any], name: str) -> UUID | None:
    value = _text(fields, name)
    if not re.fullmatch(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}", value):
        return None
    return UUID(value)


def _first_time(fields: dict[str, Any], wanted: Iterable[str]) -> datetime | None:
    return next((time for name in wanted if (time := _time(fields.get(name)))), None)


def _time(value: object) -> datetime | None:
    """A time in ISO 8601, in UTC where it names no zone; None for what is none."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
