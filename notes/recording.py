"""How a change of a note becomes a revision. Called by ``services``, inside their transaction.

The newest revision describes the note as it is and holds no content: the note does. When the
content changes, the old one moves, inside PostgreSQL, to the revision that described it. So a
change of title or folder copies no text, and neither does a save that is folded into the one
before it: a person who saves every second makes one revision a minute. Whoever calls has locked
the note's row, which keeps revisions in the order of the versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from django.db import models
from django.db.models import Subquery
from django.utils import timezone

from notes.authors import Author
from notes.models import Change, Note, NoteRevision
from web import feed
from web.models import OwnerEventKind

#: A person's edits through one door within so long of the first are one revision.
FOLDED_WITHIN = timedelta(minutes=1)
#: Doors at which a person saves again and again. A tool call is always a revision of its own.
FOLDED_DOORS = frozenset({"page", "rest"})

#: What listeners are told; every other change is just one.
_KINDS = {
    Change.CREATED: OwnerEventKind.NOTE_CREATED,
    Change.DELETED: OwnerEventKind.NOTE_DELETED,
    Change.UNDELETED: OwnerEventKind.NOTE_RESTORED,
}


def state_kept(
    *, note_id: UUID, author: Author, change: Change, content_changes: bool, may_fold: bool = True
) -> NoteRevision | None:
    """Keep the state that the next UPDATE replaces; tell which revision the change folds into.

    A note whose beginning was not recorded gets a revision of what it was.
    """
    revisions = NoteRevision.objects.filter(note_id=note_id)
    newest = revisions.defer("content").first() or _before(note_id)
    folds = may_fold and _folds(newest, author, change)
    if content_changes:
        if folds:
            revisions = revisions.filter(version__lt=newest.version)
        described = revisions.values("pk")[:1]
        present = Note.objects.filter(pk=note_id).values("content")
        kept = NoteRevision.objects.filter(pk=Subquery(described), content=None)
        kept.update(content=Subquery(present))
    return newest if folds else None


def change_recorded(
    *,
    note: Note,
    author: Author,
    change: Change,
    into: NoteRevision | None = None,
    restored_version: int | None = None,
) -> None:
    """Describe the note as it is now, in a revision of its own or ``into`` the newest one.

    Whoever listens to the owner's feed hears that it changed.
    """
    kind = _KINDS.get(change, OwnerEventKind.NOTE_CHANGED)
    feed.owner_events_record(owner_id=note.owner_id, changes=[feed.Change(kind, note.pk)])
    if into is not None:
        NoteRevision.objects.filter(pk=into.pk).update(**_state(note))
        return
    NoteRevision.objects.create(
        note_id=note.pk,
        change=change,
        restored_version=restored_version,
        created=timezone.now(),
        **_state(note),
        **_written_by(author),
    )


def creations_recorded(*, notes: Iterable[Note], author: Author) -> None:
    """Describe new notes, in one go."""
    common = _written_by(author) | {"change": Change.CREATED, "created": timezone.now()}
    NoteRevision.objects.bulk_create(
        NoteRevision(note_id=note.pk, **_state(note), **common) for note in notes
    )


def _before(note_id: UUID) -> NoteRevision:
    note = Note.objects.defer("content").get(pk=note_id)
    return NoteRevision.objects.create(
        note_id=note_id, change=Change.BEFORE, created=note.updated, **_state(note)
    )


def _folds(newest: NoteRevision, author: Author, change: Change) -> bool:
    """Only an edit into an edit: what was there before the first of them stays reachable."""
    return (
        newest.change == change == Change.EDITED
        and newest.author_kind == author.kind == "person"
        and newest.via == author.via
        and author.via in FOLDED_DOORS
        and (newest.user_id, newest.token_id) == (author.user.pk, author.token_id)
        and timezone.now() - newest.created < FOLDED_WITHIN
    )


def _state(note: Note) -> dict[str, Any]:
    names = ("version", "title", "folder", "tags", "language")
    return {name: getattr(note, name) for name in names}


def _written_by(author: Author) -> dict[str, Any]:
    called = {"conversation_id": author.conversation_id, "call_id": author.call_id}
    return {
        "author_kind": author.kind,
        "user_id": author.user.pk,
        "via": author.via,
        "token_id": author.token_id,
        "token_name": author.token_name,
        "run_id": author.run_id and _key("run", author, pk=author.run_id),
        "tool_call_id": author.call_id and _key("tool_call", author, **called) or None,
    }


def _key(field: str, author: Author, **named: object) -> UUID | None:
    """The key of a row that chat owns, whose model is known by the foreign key alone."""
    model = cast("type[models.Model]", NoteRevision._meta.get_field(field).related_model)
    rows = model._default_manager.filter(owner_id=author.user.pk, **named)
    return cast("UUID | None", rows.values_list("pk", flat=True).first())
