"""Reads of notes, each inside its owner's. Ranked search is in ``search``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Left

from notes.exceptions import NoteInBin, NoteNotFound
from notes.folders import folder_normalised
from notes.models import Note, NoteQuerySet, OctetLength
from notes.tags import tags_normalised

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

#: Characters of the content that a list shows.
PREVIEW = 200


class _Shown(TypedDict):
    preview: str
    size: int


ListedNote: TypeAlias = "WithAnnotations[Note, _Shown]"


@dataclass(frozen=True, slots=True)
class FolderCount:
    folder: str
    count: int


@dataclass(frozen=True, slots=True)
class TagCount:
    tag: str
    count: int


def note_get(*, owner: AbstractBaseUser, note_id: UUID) -> Note:
    """The note with its content; else ``note_missing``."""
    note = Note.objects.owned_by(owner).filter(pk=note_id).first()
    if note is None:
        raise note_missing(owner=owner, note_id=note_id)
    return note


def note_version(*, owner: AbstractBaseUser, note_id: UUID, binned_too: bool = False) -> int:
    """The version that the note is at."""
    notes = Note.objects.filter(owner_id=owner.pk) if binned_too else Note.objects.owned_by(owner)
    version = notes.filter(pk=note_id).values_list("version", flat=True).first()
    if version is None:
        raise note_missing(owner=owner, note_id=note_id)
    return version


def any_from_outside(*, owner: AbstractBaseUser, note_ids: Collection[UUID]) -> bool:
    """Whether text from outside is in one of these notes."""
    notes = Note.objects.owned_by(owner).filter(pk__in=note_ids, from_outside=True)
    return bool(note_ids) and notes.exists()


def note_missing(*, owner: AbstractBaseUser, note_id: UUID) -> NoteNotFound:
    """What to raise for a note that is not among the owner's: theirs in the bin is told apart."""
    in_bin = Note.objects.in_bin_of(owner).filter(pk=note_id).exists()
    return NoteInBin() if in_bin else NoteNotFound()


def bin_list(*, owner: AbstractBaseUser) -> QuerySet[ListedNote]:
    """What is in the owner's bin, the last deleted first, as ``note_list`` shows notes."""
    return _listed(Note.objects.in_bin_of(owner)).order_by("-deleted", "-id")


def note_list(
    *,
    owner: AbstractBaseUser,
    folder: str | None = None,
    subfolders: bool = False,
    tags: Iterable[str] = (),
    updated_after: datetime | None = None,
    updated_before: datetime | None = None,
) -> QuerySet[ListedNote]:
    """The newest change first, without contents: each note has ``preview`` and ``size`` (bytes).

    ``tags``: those that have all of them. ``folder`` alone means the notes right inside it.
    """
    notes = notes_filtered(
        Note.objects.owned_by(owner),
        folder=folder,
        subfolders=subfolders,
        tags=tags,
        updated_after=updated_after,
        updated_before=updated_before,
    )
    return _listed(notes).order_by("-updated", "-id")


def _listed(notes: NoteQuerySet) -> QuerySet[ListedNote]:
    shown = notes.defer("content").annotate(
        preview=Left("content", PREVIEW), size=OctetLength("content")
    )
    return cast("QuerySet[ListedNote]", shown)


def notes_filtered(
    notes: NoteQuerySet,
    *,
    folder: str | None = None,
    subfolders: bool = False,
    tags: Iterable[str] = (),
    updated_after: datetime | None = None,
    updated_before: datetime | None = None,
) -> NoteQuerySet:
    """Narrow ``notes``; what lists and search have in common."""
    if folder is not None:
        path = folder_normalised(folder)
        # `startswith` escapes the wildcards that a folder's name may hold.
        notes = notes.filter(folder__startswith=path) if subfolders else notes.filter(folder=path)
    wanted = tags_normalised(tags, field="tag").folded
    if wanted:
        notes = notes.filter(tags_folded__contains=wanted)
    if updated_after is not None:
        notes = notes.filter(updated__gt=updated_after)
    if updated_before is not None:
        notes = notes.filter(updated__lt=updated_before)
    return notes


def folder_counts(*, owner: AbstractBaseUser) -> list[FolderCount]:
    """Every folder that holds notes, with the number right inside it, by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT folder, count(*) FROM notes_note"
            " WHERE owner_id = %s AND deleted IS NULL GROUP BY folder ORDER BY folder",
            [owner.pk],
        )
        return [FolderCount(*row) for row in cursor.fetchall()]


def tag_counts(*, owner: AbstractBaseUser) -> list[TagCount]:
    """Every tag, in the spelling of its oldest note, the most used first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (array_agg(tag ORDER BY created, id))[1], count(*)"
            " FROM notes_note, unnest(tags, tags_folded) AS pair (tag, folded)"
            " WHERE owner_id = %s AND deleted IS NULL"
            " GROUP BY folded ORDER BY count(*) DESC, folded",
            [owner.pk],
        )
        return [TagCount(*row) for row in cursor.fetchall()]
