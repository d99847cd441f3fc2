"""The tools by which a model works with notes, as the person it works for.

Each calls the services and selectors that pages and REST call; what can be wrong with a request
becomes a ``ToolError`` that says what to do next. A call is one transaction, which is undone when
the call has run out of time. Results are cut here so that they stay whole JSON within the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from pydantic import Field

from notes import search, selectors, services
from notes.authors import Author
from notes.exceptions import (
    NoteError,
    NoteInBin,
    NoteInvalid,
    NoteNotFound,
    NotePassageError,
    NoteTooLarge,
    NoteVersionConflict,
)
from notes.folders import folder_normalised
from notes.history import versions_before
from notes.models import Note
from notes.previews import preview_of_creation, preview_of_update
from notes.rules import content_checked, title_checked
from notes.search import Page, SearchFilters
from notes.seen import seen_read, seen_whole_version, seen_written
from notes.tags import tags_normalised
from tools.deadline import atomic_until
from tools.definitions import Preview, ToolContext, ToolOutput, Touched
from tools.exceptions import ToolError
from tools.registry import tool
from tools.text import RESULT_BYTES, compact_json

TAGS_BYTES = 2000

NoteId = Annotated[UUID, Field(description="The id of the note, from note_search or note_list.")]
Folder = Annotated[str, Field(description="A folder such as /work/plans/; / is the root.")]
OptionalFolder = Annotated[
    str | None, Field(description="Only notes in this folder, such as /work/plans/.")
]
OptionalTags = Annotated[list[str] | None, Field(description="Only notes with all of these tags.")]
Offset = Annotated[
    int, Field(ge=0, le=100_000, description="How many to skip: next_offset goes on.")
]


def note_create_preview(
    context: ToolContext, title: str, content: str, folder: str, tags: list[str] | None
) -> Preview:
    with _as_user(context):
        return preview_of_creation(
            title=title_checked(title),
            content=content_checked(content),
            folder=folder_normalised(folder),
            tags=tags_normalised(tags or ())[0],
        )


@tool(effect="write", preview=note_create_preview)
def note_create(
    context: ToolContext,
    title: Annotated[str, Field(description="A short title.")],
    content: Annotated[str, Field(description="The text, in Markdown.")] = "",
    folder: Folder = "/",
    tags: Annotated[list[str] | None, Field(description="Tags, without #.")] = None,
) -> ToolOutput:
    """Make a new note. To change a note that exists, use note_update."""
    with _as_user(context) as owner:
        note = services.note_create(
            owner=owner,
            author=_author(context, owner),
            title=title,
            content=content,
            folder=folder,
            tags=tags or (),
            source_conversation_id=context.conversation_id,
            source_message_id=context.message_id,
        )
        if context.conversation_id is not None:
            seen_written(conversation_id=context.conversation_id, note=note, whole=True)
    return ToolOutput(_changed(note), f"created “{_name(note.title)}”", (_touched(note),))


@tool(effect="read", repeatable=True)
def note_search(
    context: ToolContext,
    query: Annotated[
        str, Field(description='Words to find; "a phrase", -without, one or another.')
    ],
    folder: OptionalFolder = None,
    tags: OptionalTags = None,
    limit: Annotated[int, Field(ge=1, le=20)] = 10,
    offset: Annotated[int, Field(ge=0, le=search.MAX_OFFSET)] = 0,
) -> ToolOutput:
    """Search the user's notes by their words, the best match first. note_read reads one whole."""
    with _as_user(context) as owner:
        page = search.search(
            owner=owner,
            query=query,
            filters=SearchFilters(folder=folder, tags=tuple(tags or ())),
            page=Page(offset=offset, limit=limit),
        )
        found_ids = [hit.note_id for hit in page.hits]
        from_outside = selectors.any_from_outside(owner=owner, note_ids=found_ids)
    rows: list[dict[str, object]] = [
        {
            "id": hit.note_id,
            "title": hit.title,
            "folder": hit.folder,
            "tags": _shown_tags(hit.tags),
            "updated": hit.updated,
            "excerpt": hit.excerpt,
            "found_by": hit.mode,
        }
        for hit in page.hits
    ]
    head = {"total": page.total, "total_is": page.total_is}
    content, shown = _rows_fitting(head, "results", rows, offset=offset, total=page.total)
    found = "1 result" if page.total == 1 else f"{page.total} results"
    summary = found if page.total_is == "exact" else f"at least {found}"
    touched = [Touched("note", str(hit.note_id), _name(hit.title)) for hit in page.hits[:shown]]
    return ToolOutput(content, summary, tuple(touched), from_outside=from_outside)


@tool(effect="read", repeatable=True)
def note_list(
    context: ToolContext,
    folder: OptionalFolder = None,
    subfolders: Annotated[bool, Field(description="Also notes in folders inside it.")] = True,
    tags: OptionalTags = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 20,
    offset: Offset = 0,
) -> ToolOutput:
    """List the user's notes, the last changed first, without their texts."""
    with _as_user(context) as owner:
        notes = selectors.note_list(
            owner=owner, folder=folder, subfolders=subfolders, tags=tags or ()
        )
        total = notes.count()
        page = list(notes[offset : offset + limit])
    rows: list[dict[str, object]] = [
        {
            "id": note.id,
            "title": note.title,
            "folder": note.folder,
            "tags": _shown_tags(note.tags),
            "updated": note.updated,
            "version": note.version,
            "bytes": note.size,
        }
        for note in page
    ]
    content, shown = _rows_fitting({"total": total}, "notes", rows, offset=offset, total=total)
    return ToolOutput(
        content,
        "1 note" if total == 1 else f"{total} notes",
        from_outside=any(note.from_outside for note in page[:shown]),
    )


@tool(effect="read", repeatable=True)
def note_read(
    context: ToolContext,
    note_id: NoteId,
    offset: Annotated[int, Field(ge=0, description="The first character to read.")] = 0,
    limit: Annotated[int, Field(ge=1, description="At most so many characters.")] = 12_000,
) -> ToolOutput:
    """Read a note. A long one comes in parts: go on from next_offset until there is none."""
    with _as_user(context) as owner:
        note = selectors.note_get(owner=owner, note_id=note_id)
        total = len(note.content)
        if offset > total:
            raise ToolError(f"offset: the note has {total} characters.")
        result = {
            "id": note.id,
            "title": note.title,
            "folder": note.folder,
            "tags": _shown_tags(note.tags),
            "updated": note.updated,
            "version": note.version,
            "total_characters": total,
            "offset": offset,
            "next_offset": total,
        }
        budget = RESULT_BYTES - _size({**result, "content": ""})
        content = _text_fitting(note.content[offset : offset + limit], budget)
        end = offset + len(content)
        result |= {"next_offset": end if end < total else None, "content": content}
        if context.conversation_id is not None:
            seen_read(
                conversation_id=context.conversation_id,
                note=note,
                start=offset,
                end=end,
                total=total,
            )
    read = f"{total} characters" if (offset, end) == (0, total) else f"{offset} to {end} of {total}"
    return ToolOutput(
        result,
        f"version {note.version}, {read}",
        (_touched(note),),
        from_outside=note.from_outside,
    )


def note_update_preview(
    context: ToolContext,
    note_id: UUID,
    mode: str,
    content: str,
    old_text: str | None,
    expected_version: int | None,
) -> Preview:
    with _as_user(context) as owner:
        _check_old_text(mode, old_text)
        if mode == "replace":
            _version_to_replace(context, owner, note_id, expected_version)
        note = selectors.note_get(owner=owner, note_id=note_id)
        if expected_version not in (None, note.version):
            raise NoteVersionConflict(note.version)
        preview = preview_of_update(
            note=note, mode=mode, content=content_checked(content), old_text=old_text or ""
        )
        earlier = versions_before(
            note_id=note.pk,
            version=note.version,
            conversation_id=context.conversation_id,
            call_ids=context.together,
        )
        return replace(preview, earlier=tuple(map(str, earlier)))


@tool(effect="write", preview=note_update_preview)
def note_update(
    context: ToolContext,
    note_id: NoteId,
    mode: Literal["append", "prepend", "edit", "replace"],
    content: Annotated[
        str, Field(description="The new text. It is joined exactly: begin with a line break if so.")
    ],
    old_text: Annotated[
        str | None,
        Field(description="For edit: the passage that content replaces; it must occur once."),
    ] = None,
    expected_version: Annotated[
        int | None, Field(description="Refuse if the note is at another version.")
    ] = None,
) -> ToolOutput:
    """Change a note's text: append, prepend, edit one passage, or replace a text read whole."""
    with _as_user(context) as owner:
        _check_old_text(mode, old_text)
        expected_version = _version_approved(context, expected_version)
        if mode == "edit":
            note = services.note_edit(
                owner=owner,
                author=_author(context, owner),
                note_id=note_id,
                old_text=old_text or "",
                new_text=content,
                expected_version=expected_version,
            )
        else:
            if mode == "replace":
                expected_version = _version_to_replace(context, owner, note_id, expected_version)
            note = services.note_update(
                owner=owner,
                author=_author(context, owner),
                note_id=note_id,
                content=content,
                mode=mode,
                expected_version=expected_version,
            )
        if context.conversation_id is not None:
            seen_written(
                conversation_id=context.conversation_id, note=note, whole=mode == "replace"
            )
    summary = f"{mode} “{_name(note.title)}”, version {note.version}"
    return ToolOutput(_changed(note), summary, (_touched(note),))


def _check_old_text(mode: str, old_text: str | None) -> None:
    if mode == "edit" and old_text is None:
        raise ToolError("mode edit needs old_text, the passage that content replaces.")
    if mode != "edit" and old_text is not None:
        raise ToolError(f"old_text goes with mode edit, not with {mode}.")


def _version_approved(context: ToolContext, expected: int | None) -> int | None:
    """What a person approved was a change of this version, and of no other."""
    if not context.approved_version:
        return expected
    approved = int(context.approved_version)
    if expected not in (None, approved):
        raise NoteVersionConflict(approved)
    return approved


def _version_to_replace(
    context: ToolContext, owner: AbstractBaseUser, note_id: UUID, expected: int | None
) -> int:
    """The note's version, if the conversation has seen all of it: a replacement loses the rest."""
    current = selectors.note_version(owner=owner, note_id=note_id)
    if expected is not None and expected != current:
        raise NoteVersionConflict(current)
    seen = None
    if context.conversation_id is not None:
        seen = seen_whole_version(conversation_id=context.conversation_id, note_id=note_id)
    if seen != current:
        raise ToolError(
            f"replace was refused: version {current} of the note was not read whole in this "
            "conversation, and what was not read would be lost. Read it with note_read from "
            "offset 0 until there is no next_offset and try again, or use edit, append or prepend."
        )
    return current


@contextmanager
def _as_user(context: ToolContext) -> Iterator[AbstractBaseUser]:
    """One transaction on behalf of the user."""
    try:
        with atomic_until(context.deadline):
            owner = get_user_model().objects.filter(pk=context.user_id, is_active=True).first()
            if owner is None:
                raise ToolError("The user's account is not active.")
            yield owner
    except NoteError as error:
        raise ToolError(_advice(error)) from error


def _author(context: ToolContext, owner: AbstractBaseUser) -> Author:
    return Author(
        kind="assistant",
        user=owner,
        via="tool",
        conversation_id=context.conversation_id,
        run_id=context.run_id,
        call_id=context.call_id,
        tainted=context.tainted,
    )


def _advice(error: NoteError) -> str:
    match error:
        case NoteInBin():
            return f"{error.message} Only the user can restore it: tell them."
        case NoteNotFound():
            return f"{error.message} Find the id with note_search or note_list."
        case NoteVersionConflict():
            return f"{error.message} Nothing was changed. Read it again and repeat the change."
        case NotePassageError(matches=0):
            return f"{error.message} Copy old_text exactly from what note_read returns."
        case NotePassageError():
            return f"{error.message} Give more of the text around it, so that it occurs once."
        case NoteTooLarge():
            return f"{error.message} Nothing was changed. Make another note for the rest."
        case NoteInvalid():
            return f"{error.field}: {error.message}"
        case _:
            return error.message


def _changed(note: Note) -> dict[str, object]:
    return {
        "id": note.id,
        "title": note.title,
        "folder": note.folder,
        "version": note.version,
        "total_characters": len(note.content),
    }


def _touched(note: Note) -> Touched:
    return Touched("note", str(note.id), _name(note.title))


def _name(title: str) -> str:
    return title.strip() or "Untitled"


def _size(value: object) -> int:
    return len(compact_json(value).encode())


def _text_fitting(text: str, budget: int) -> str:
    """The beginning of ``text`` that takes no more than ``budget`` bytes as JSON."""
    while (size := _size(text)) > budget:
        text = text[: len(text) * budget // size]
    return text


def _shown_tags(tags: Iterable[str]) -> list[str]:
    shown: list[str] = []
    left = TAGS_BYTES
    for tag in tags:
        left -= _size(tag)
        if left < 0:
            break
        shown.append(tag)
    return shown


def _rows_fitting(
    head: Mapping[str, object],
    name: str,
    rows: list[dict[str, object]],
    *,
    offset: int,
    total: int,
) -> tuple[dict[str, object], int]:
    """``head`` with as many of ``rows`` as fit, where to go on, and how many these are."""
    left = RESULT_BYTES - _size({**head, name: [], "next_offset": offset + len(rows)})
    shown = 0
    for row in rows:
        left -= _size(row) + 1
        if left < 0:
            break
        shown += 1
    end = offset + shown
    return {**head, name: rows[:shown], "next_offset": end if end < total else None}, shown
