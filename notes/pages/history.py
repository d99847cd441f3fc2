"""The pages of a note's history and of the bin.

A version is shown as what changed in it; lines come from ``diffs`` as values and are escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from notes import history, selectors, services
from notes.diffs import Hunk
from notes.exceptions import NoteError, NoteNotFound, RevisionNotFound
from notes.history import Comparison, ListedRevision
from notes.models import Change, Note
from notes.pages.panes import PAGE_SIZE, marked, page_after, page_number
from notes.pages.views import PageRequest, author_of, notes_page, of_a_note
from notes.rules import name_shown
from web.pages import private_page

#: The text of an old version is shown whole up to so many characters.
SHOWN_WHOLE = 200_000

FIELDS = {"title": "Title", "folder": "Folder", "tags": "Tags", "language": "Language"}
CHANGES = {
    Change.BEFORE: "Before the first recorded change",
    Change.CREATED: "Created",
    Change.EDITED: "Edited",
    Change.RESTORED: "Restored version {0.restored_version}",
    Change.DELETED: "Deleted",
    Change.UNDELETED: "Taken out of the bin",
}
DOORS = {"rest": "over the API", "import": "by an import", "admin": "in the admin"}


@dataclass(frozen=True, slots=True)
class Version:
    """A revision as a person reads it: who did what when, and where to read more."""

    number: int
    who: str
    what: str
    created: datetime
    by_assistant: bool
    conversation_id: UUID | None
    message_id: UUID | None
    conversation_title: str


@dataclass(frozen=True, slots=True)
class ShownLine:
    kind: str
    html: SafeString


@dataclass(frozen=True, slots=True)
class ShownHunk:
    start: int
    lines: list[ShownLine]


@dataclass(frozen=True, slots=True)
class ShownField:
    name: str
    before: str
    after: str


@private_page
@require_safe
@of_a_note
def history_page(request: PageRequest, note_id: UUID, version: int | None = None) -> HttpResponse:
    """The versions of a note, and what changed in the chosen one, else in the newest."""
    note = _note_of(request, note_id)
    page = page_number(request.GET)
    start = (page - 1) * PAGE_SIZE
    found = history.revision_list(owner=request.user, note_id=note_id, binned_too=True)
    rows = list(found[start : start + PAGE_SIZE + 1])
    number = version if version is not None else rows[0].version if rows else None
    context: dict[str, Any] = {
        "versions": [_version(row, request) for row in rows[:PAGE_SIZE]],
        "older": page_after(page, has_more=len(rows) > PAGE_SIZE),
        "is_chosen": version is not None,
        "page": page,
    }
    if number is not None:
        context |= _shown(request, note_id, number)
    return notes_page(
        request,
        template="notes/history.html",
        note=note,
        in_bin=note.deleted is not None,
        **context,
    )


@private_page
@require_POST
@of_a_note
def revision_restore_view(request: PageRequest, note_id: UUID, version: int) -> HttpResponse:
    """Make the note what it was; the version that was there stays in the history."""
    try:
        services.revision_restore(
            owner=request.user, author=author_of(request), note_id=note_id, version=version
        )
    except (NoteNotFound, RevisionNotFound):
        raise
    except NoteError as error:
        messages.error(request, error.message)
        return redirect("notes:version", note_id, version)
    messages.success(request, f"Version {version} is restored.")
    return redirect("notes:note", note_id)


@private_page
@require_safe
def bin_page(request: PageRequest) -> HttpResponse:
    """What was deleted and can be restored."""
    page = page_number(request.GET)
    start = (page - 1) * PAGE_SIZE
    notes = list(selectors.bin_list(owner=request.user)[start : start + PAGE_SIZE + 1])
    return notes_page(
        request,
        template="notes/bin.html",
        binned=notes[:PAGE_SIZE],
        kept_days=services.KEPT_IN_BIN.days,
        older=page_after(page, has_more=len(notes) > PAGE_SIZE),
        page=page,
        in_bin=True,
    )


@private_page
@require_POST
@of_a_note
def note_restore_view(request: PageRequest, note_id: UUID) -> HttpResponse:
    """Out of the bin: the button there, and Undo after deleting."""
    note = services.note_restore(owner=request.user, author=author_of(request), note_id=note_id)
    messages.success(request, f"“{name_shown(note.title)}” is restored.")
    return redirect("notes:note", note_id)


def _note_of(request: PageRequest, note_id: UUID) -> Note:
    """The note, in the bin or out of it."""
    binned = selectors.bin_list(owner=request.user).filter(pk=note_id).first()
    return selectors.note_get(owner=request.user, note_id=note_id) if binned is None else binned


def _shown(request: PageRequest, note_id: UUID, number: int) -> dict[str, Any]:
    """One version with its differences, ready for the template."""
    found = history.revision_compare(
        owner=request.user, note_id=note_id, version=number, binned_too=True
    )
    text = found.revision.text
    return {
        "shown": _version(found.revision, request),
        "revision": found.revision,
        "against": found.against,
        "fields": list(_fields(found)),
        "hunks": [_hunk(hunk) for hunk in found.content.hunks],
        "diff": found.content,
        "text": text if len(text) <= SHOWN_WHOLE else "",
    }


def _version(row: ListedRevision, request: PageRequest) -> Version:
    return Version(
        number=row.version,
        who=_who(row, request),
        what=CHANGES[Change(row.change)].format(row),
        created=row.created,
        by_assistant=row.author_kind == "assistant",
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        conversation_title=row.conversation_title or "a conversation",
    )


def _who(row: ListedRevision, request: PageRequest) -> str:
    if row.author_kind == "assistant":
        return "the assistant"
    if not row.via:
        return ""
    who = "you" if row.user_id == request.user.pk else row.username or "a former user"
    door = f"with the token “{row.token_name}”" if row.token_id else DOORS.get(row.via, "")
    return f"{who} {door}".strip()


def _fields(found: Comparison) -> Iterable[ShownField]:
    for change in found.fields:
        yield ShownField(FIELDS[change.field], _value(change.before), _value(change.after))


def _value(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _hunk(hunk: Hunk) -> ShownHunk:
    lines = [ShownLine(line.kind, marked(line.text, line.marks)) for line in hunk.lines]
    return ShownHunk(hunk.new_start, lines)
