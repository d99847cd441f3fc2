"""Writes of notes: the one way that pages, REST, tools and admin change them.

Every write begins at the owner's notes: another person's note and a missing one are the same
NoteNotFound. A change locks its row, compares the version that was expected, and is one UPDATE:
texts are joined and measured by PostgreSQL, so that two appends at once are both kept and one
that would pass the limit changes nothing. A change to what is already there is no change; every
other one is kept as a revision with its author, whom each service must be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal, cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models
from django.db.models import F, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Concat, Left, StrIndex, Substr
from django.utils import timezone

from notes.authors import Author
from notes.exceptions import (
    NoteInvalid,
    NotePassageError,
    NoteSaveTimeout,
    NoteTooLarge,
    NoteVersionConflict,
)
from notes.folders import ROOT, folder_normalised
from notes.history import WholeRevision, revision_get
from notes.models import NEVER, Change, Note, NoteQuerySet, OctetLength
from notes.recording import change_recorded, creations_recorded, state_kept
from notes.rules import (
    MAX_CONTENT_BYTES,
    content_checked,
    language_checked,
    text_checked,
    title_checked,
)
from notes.search.filling import fill_soon
from notes.selectors import note_get, note_missing
from notes.tags import tags_normalised
from notes.time_limits import atomic_within

#: Saving indexes words, which takes longer the more of them there are. A hundredth is usual.
SAVE_TIMEOUT_MS = 10_000

#: What a given content is to the one that is there. Joined exactly: nothing is put in between.
UpdateMode = Literal["replace", "append", "prepend"]

#: What a note may come from, and whose that is.
SOURCES = {"source_conversation": "owner", "source_message": "conversation__owner"}

#: How long a deleted note can be restored.
KEPT_IN_BIN = timedelta(days=30)
#: Notes that a purge deletes in one transaction.
PURGED_AT_ONCE = 100


def note_create(
    *,
    owner: AbstractBaseUser,
    author: Author,
    title: str = "",
    content: str = "",
    folder: str = ROOT,
    tags: Iterable[str] = (),
    language: str = "",
    source_conversation_id: UUID | None = None,
    source_message_id: UUID | None = None,
) -> Note:
    """Store a new note. A source is one of the owner's own conversations or messages."""
    note = note_checked(
        owner=owner, title=title, content=content, folder=folder, tags=tags, language=language
    )
    note.source_conversation_id = source_conversation_id
    note.source_message_id = source_message_id
    note.from_outside = author.brings_outside
    with _saving():
        source_checked(owner=owner, field="source_conversation", source_id=source_conversation_id)
        source_checked(owner=owner, field="source_message", source_id=source_message_id)
        note.save(force_insert=True)
        change_recorded(note=note, author=author, change=Change.CREATED)
    return note


def note_checked(
    *,
    owner: AbstractBaseUser,
    title: str = "",
    content: str = "",
    folder: str = ROOT,
    tags: Iterable[str] = (),
    language: str = "",
) -> Note:
    """A note that follows every rule, not yet stored."""
    shown, folded = tags_normalised(tags)
    return Note(
        owner_id=owner.pk,
        title=title_checked(title),
        content=content_checked(content),
        folder=folder_normalised(folder),
        tags=shown,
        tags_folded=folded,
        language=language_checked(language),
    )


def source_checked(*, owner: AbstractBaseUser, field: str, source_id: UUID | None) -> None:
    """Refuse a source that is not the owner's."""
    if source_id is not None and not _sources_owned({source_id}, owner=owner, field=field):
        raise NoteInvalid("There is no such source.", field=field)


def notes_store(*, owner: AbstractBaseUser, author: Author, notes: Sequence[Note]) -> None:
    """Store many new notes, each made by ``note_checked``, in one go.

    Sources that are not the owner's are dropped: notes of an import come from elsewhere.
    """
    for note in notes:
        note.from_outside = author.brings_outside
    with _saving():
        for field in SOURCES:
            _sources_keep(notes, owner=owner, field=field)
        Note.objects.bulk_create(notes)
        creations_recorded(notes=notes, author=author)


def note_update(
    *,
    owner: AbstractBaseUser,
    author: Author,
    note_id: UUID,
    title: str | None = None,
    content: str | None = None,
    folder: str | None = None,
    tags: Iterable[str] | None = None,
    language: str | None = None,
    from_outside: Literal[False] | None = None,
    mode: UpdateMode = "replace",
    expected_version: int | None = None,
    over: bool = False,
) -> Note:
    """Change the fields that are given, and no other; ``mode`` concerns the content.

    ``from_outside`` is False where the person vouches for what the note holds. ``over``: what is
    stored was not part of this editing, so that its history keeps it.
    """
    changes: dict[str, Any] = {}
    if title is not None:
        changes["title"] = title_checked(title)
    if content is not None:
        changes["content"] = _content_joined(content_checked(content), mode)
    if folder is not None:
        changes["folder"] = folder_normalised(folder)
    if tags is not None:
        changes["tags"], changes["tags_folded"] = tags_normalised(tags)
    if language is not None:
        changes["language"] = language_checked(language)
    if from_outside is not None:
        changes["from_outside"] = from_outside
    with _saving():
        row = _locked(owner, note_id, expected_version)
        _write(
            row,
            changes,
            note_id=note_id,
            author=author,
            change=Change.EDITED,
            may_fold=not over,
        )
        return note_get(owner=owner, note_id=note_id)


def note_edit(
    *,
    owner: AbstractBaseUser,
    author: Author,
    note_id: UUID,
    old_text: str,
    new_text: str,
    expected_version: int | None = None,
) -> Note:
    """Put ``new_text`` in the place of ``old_text``, which must occur exactly once."""
    if not text_checked(old_text, field="old_text"):
        raise NoteInvalid("The passage to replace is empty.", field="old_text")
    content_checked(new_text)
    place = StrIndex("content", Value(old_text))
    again = StrIndex(Substr("content", place + 1), Value(old_text))
    edited = Concat(
        Left("content", place - 1),
        Value(new_text),
        Substr("content", place + len(old_text)),
        output_field=TextField(),
    )
    with _saving():
        row = _locked(owner, note_id, expected_version)
        first, second = row.values_list(place, again).get()
        if not first or second:
            raise NotePassageError(matches=2 if first else 0)
        _write(row, {"content": edited}, note_id=note_id, author=author, change=Change.EDITED)
        return note_get(owner=owner, note_id=note_id)


def revision_restore(
    *,
    owner: AbstractBaseUser,
    author: Author,
    note_id: UUID,
    version: int,
    expected_version: int | None = None,
) -> Note:
    """Make the note what it was at ``version``: a change like any other, so nothing is lost."""
    with _saving():
        row = _locked(owner, note_id, expected_version)
        revision = revision_get(owner=owner, note_id=note_id, version=version)
        _write(
            row,
            _state_of(revision),
            note_id=note_id,
            author=author,
            change=Change.RESTORED,
            restored_version=version,
        )
        return note_get(owner=owner, note_id=note_id)


def note_delete(
    *,
    owner: AbstractBaseUser,
    author: Author,
    note_id: UUID,
    expected_version: int | None = None,
) -> None:
    """Put the note into the bin: it vanishes from every list, search and read."""
    with _saving():
        row = _locked(owner, note_id, expected_version)
        now = timezone.now()
        _write(row, {"deleted": now}, note_id=note_id, author=author, change=Change.DELETED)


def note_restore(
    *,
    owner: AbstractBaseUser,
    author: Author,
    note_id: UUID,
    expected_version: int | None = None,
) -> Note:
    """Take the note out of the bin. One that is not in it stays as it is."""
    with _saving():
        row = _locked(owner, note_id, expected_version, binned_too=True)
        _write(row, {"deleted": None}, note_id=note_id, author=author, change=Change.UNDELETED)
        return note_get(owner=owner, note_id=note_id)


def note_put_back(*, owner: AbstractBaseUser, author: Author, note_id: UUID, version: int) -> None:
    """Make the note what it was at ``version``, in the bin or out of it; at 0 it was not there.

    Other than a restored revision this is recorded even where nothing differs, so that the
    revisions tell which changes were taken back.
    """
    with _saving():
        row = _locked(owner, note_id, None, binned_too=True)
        in_bin = row.filter(deleted__isnull=False).exists()
        changes, change = {}, Change.DELETED
        if version != NEVER:
            revision = revision_get(owner=owner, note_id=note_id, version=version, binned_too=True)
            changes = _state_of(revision)
            if revision.change != Change.DELETED:
                change = Change.UNDELETED if in_bin else Change.RESTORED
        changes["deleted"] = timezone.now() if change == Change.DELETED else None
        _write(
            row,
            changes,
            note_id=note_id,
            author=author,
            change=change,
            restored_version=version,
            even_if_same=True,
        )


def bin_purge(*, before: datetime) -> int:
    """Delete for good, with all revisions, what everybody put into the bin before that time."""
    purged = 0
    old = Note.objects.filter(deleted__lt=before).order_by("deleted")
    while some := list(old.values_list("pk", flat=True)[:PURGED_AT_ONCE]):
        # Asked again, as one may have been restored meanwhile. Without the contents, which
        # Django would read to delete what hangs on the notes.
        gone = Note.objects.filter(pk__in=some, deleted__lt=before).only("pk")
        _, rows = gone.delete()
        purged += rows.get(Note._meta.label, 0)
    return purged


@contextmanager
def _saving() -> Iterator[None]:
    """One transaction of a bounded time; what it leaves to index is done soon after it."""
    with atomic_within(milliseconds=SAVE_TIMEOUT_MS, error=NoteSaveTimeout):
        yield
        fill_soon()


def _locked(
    owner: AbstractBaseUser,
    note_id: UUID,
    expected_version: int | None,
    *,
    binned_too: bool = False,
) -> NoteQuerySet:
    """A query for the one row, which nobody else can change before the transaction ends."""
    notes = Note.objects.filter(owner_id=owner.pk) if binned_too else Note.objects.owned_by(owner)
    row = notes.filter(pk=note_id)
    version = row.select_for_update().values_list("version", flat=True).first()
    if version is None:
        raise note_missing(owner=owner, note_id=note_id)
    if expected_version is not None and expected_version != version:
        raise NoteVersionConflict(version)
    return row


def _write(
    row: NoteQuerySet,
    changes: dict[str, Any],
    *,
    note_id: UUID,
    author: Author,
    change: Change,
    restored_version: int | None = None,
    even_if_same: bool = False,
    may_fold: bool = True,
) -> None:
    """Change and record the locked row, unless it is like that already."""
    content = changes.pop("content", None)
    if content is not None and row.filter(content=content).exists():
        content = None
    if content is None and not even_if_same and row.filter(**changes).exists():
        return
    if author.brings_outside and change == Change.EDITED:
        changes["from_outside"] = True
    into = state_kept(
        note_id=note_id,
        author=author,
        change=change,
        content_changes=content is not None,
        may_fold=may_fold,
    )
    if content is not None:
        changes["content"] = content
        row = row.annotate(size_after=OctetLength(content)).filter(
            size_after__lte=MAX_CONTENT_BYTES
        )
    if not row.update(**changes, version=F("version") + 1, updated=timezone.now()):
        raise NoteTooLarge(MAX_CONTENT_BYTES)
    change_recorded(
        note=Note.objects.defer("content").get(pk=note_id),
        author=author,
        change=change,
        into=into,
        restored_version=restored_version,
    )


def _state_of(revision: WholeRevision) -> dict[str, Any]:
    shown, folded = tags_normalised(revision.tags)
    return {
        "title": revision.title,
        "content": Value(revision.text, output_field=TextField()),
        "folder": revision.folder,
        "tags": shown,
        "tags_folded": folded,
        "language": revision.language,
    }


def _content_joined(content: str, mode: UpdateMode) -> Combinable:
    match mode:
        case "append":
            return Concat(F("content"), Value(content), output_field=TextField())
        case "prepend":
            return Concat(Value(content), F("content"), output_field=TextField())
        case "replace":
            return Value(content, output_field=TextField())


def _sources_keep(notes: Iterable[Note], *, owner: AbstractBaseUser, field: str) -> None:
    asked: dict[Note, UUID | None] = {note: getattr(note, f"{field}_id") for note in notes}
    found = _sources_owned({each for each in asked.values() if each}, owner=owner, field=field)
    for note, source_id in asked.items():
        setattr(note, f"{field}_id", source_id if source_id in found else None)


def _sources_owned(source_ids: set[UUID], *, owner: AbstractBaseUser, field: str) -> set[UUID]:
    """Those that are the owner's; what model they have is known by the key alone."""
    if not source_ids:
        return set()
    model = cast("type[models.Model]", Note._meta.get_field(field).related_model)
    return set(
        model._default_manager.filter(pk__in=source_ids, **{SOURCES[field]: owner}).values_list(
            "pk", flat=True
        )
    )
