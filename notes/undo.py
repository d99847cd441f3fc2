"""Taking back what an assistant did to notes, in one call or in a whole run.

What is taken back is read from revisions alone. A note is made of the changes that are in effect:
a person who restores a version, or takes a note out of the bin, takes the changes since then out
of effect. A change that is on top can be undone; one below another's could be undone only by losing
the other, and is left as it is. An undo is itself a restored version of the person's: so it can
be taken back on the History page, and undoing twice finds nothing in effect. But a note whose
making was undone and that a person took out of the bin is theirs to keep: it is not undone again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, takewhile
from typing import Literal, NamedTuple, cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models, transaction

from notes.authors import Author
from notes.exceptions import NoteNotFound
from notes.models import NEVER, Change, Note, NoteRevision
from notes.services import note_put_back

Why = Literal["changed_by_person", "changed_by_assistant", "in_bin", "taken_from_bin"]

Standing = Literal["possible", "undone"] | Why

REASONS: dict[Why, str] = {
    "changed_by_person": "You changed it since.",
    "changed_by_assistant": "The assistant changed it since: undo that first.",
    "in_bin": "You deleted it since: it is in the bin.",
    "taken_from_bin": "You took it out of the bin since.",
}


@dataclass(frozen=True, slots=True)
class RevertedNote:
    """A note that is what it was before; ``in_bin``: it was not there before."""

    note_id: UUID
    title: str
    version: int
    in_bin: bool


@dataclass(frozen=True, slots=True)
class SkippedNote:
    """A note with a change that stays, as somebody changed it since."""

    note_id: UUID
    title: str
    why: Why

    @property
    def reason(self) -> str:
        return REASONS[self.why]


@dataclass(frozen=True, slots=True)
class Undone:
    """The last changed first. A note of which only the newest changes went back is in both."""

    reverted: tuple[RevertedNote, ...]
    skipped: tuple[SkippedNote, ...]

    @property
    def message(self) -> str:
        """What came of it, in a sentence or two."""
        said = []
        if self.reverted:
            count = len(self.reverted)
            said.append(f"Undone in {count} notes." if count > 1 else "Undone.")
        said += [f"“{each.title}” stays. {each.reason}" for each in self.skipped]
        return " ".join(said) or "There is nothing to undo."


def run_undo(*, owner: AbstractBaseUser, run_id: UUID, author: Author) -> Undone:
    """Take back all that a run of the owner's changed and that is on top of its note."""
    _check_owned("run", run_id, owner)
    return _undo(owner, author, run_id=run_id)


def call_undo(*, owner: AbstractBaseUser, tool_call_id: UUID, author: Author) -> Undone:
    """As ``run_undo``, of one tool call."""
    _check_owned("tool_call", tool_call_id, owner)
    return _undo(owner, author, tool_call_id=tool_call_id)


def calls_standing(
    *, owner: AbstractBaseUser, tool_call_ids: Collection[UUID]
) -> dict[UUID, Standing]:
    """Of each call that changed notes which are still there: what an undo of it would find now.

    ``possible`` where it would take anything back, ``undone`` where nothing is left to take back,
    else why it would leave everything as it is.
    """
    asked = NoteRevision.objects.filter(note__owner_id=owner.pk, tool_call_id__in=tool_call_ids)
    changes = list(asked.order_by().values_list("pk", "tool_call_id", "note_id"))
    calls = {pk: call for pk, call, _ in changes}
    found: dict[UUID, Standing] = dict.fromkeys(calls.values(), "undone")
    for rows in _histories({note_id for _, _, note_id in changes}):
        standing = _in_effect(rows)
        for row in standing:
            call = calls.get(row.pk)
            if call is None:
                continue
            if row is standing[0]:
                found[call] = "possible"
            elif found[call] == "undone":
                found[call] = _why(standing[0])
    return found


class _Row(NamedTuple):
    note_id: UUID
    pk: int
    version: int
    change: str
    restored_version: int | None
    author_kind: str
    created: datetime


@transaction.atomic
def _undo(owner: AbstractBaseUser, author: Author, **by: UUID) -> Undone:
    asked = NoteRevision.objects.filter(note__owner_id=owner.pk, **by)
    note_ids = list(asked.order_by().values_list("note_id", flat=True).distinct())
    # Always in the same order: two undos at once wait for one another.
    locked = Note.objects.filter(pk__in=note_ids).order_by("pk").select_for_update()
    list(locked.values_list("pk", flat=True))
    theirs = set(asked.values_list("pk", flat=True))
    histories = sorted(
        _histories(note_ids),
        key=lambda rows: max((row.created, row.version) for row in rows if row.pk in theirs),
        reverse=True,
    )
    reverted, skipped = [], []
    for rows in histories:
        note_id = rows[0].note_id
        standing = _in_effect(rows)
        top = list(takewhile(lambda row: row.pk in theirs, standing))
        below = standing[len(top) :]
        if top:
            before = max(
                (row.version for row in rows if row.version < top[-1].version), default=NEVER
            )
            note_put_back(owner=owner, author=author, note_id=note_id, version=before)
        note = Note.objects.defer("content").get(pk=note_id)
        title = note.title.strip() or "Untitled"
        if top:
            reverted.append(RevertedNote(note_id, title, note.version, note.deleted is not None))
        if any(row.pk in theirs for row in below):
            skipped.append(SkippedNote(note_id, title, _why(below[0])))
    return Undone(tuple(reverted), tuple(skipped))


_WHY: dict[str, Why] = {Change.DELETED: "in_bin", Change.UNDELETED: "taken_from_bin"}


def _why(above: _Row) -> Why:
    if above.author_kind != "person":
        return "changed_by_assistant"
    return _WHY.get(above.change, "changed_by_person")


def _histories(note_ids: Iterable[UUID]) -> list[list[_Row]]:
    """The revisions of each note, the oldest first."""
    found = NoteRevision.objects.filter(note_id__in=note_ids).order_by("note_id", "version")
    rows = map(_Row._make, found.values_list(*_Row._fields))
    return [list(group) for _, group in groupby(rows, key=lambda row: row.note_id)]


def _in_effect(rows: Sequence[_Row]) -> list[_Row]:
    """Of a note's revisions those whose change is part of what it is, the newest first."""
    places = {row.version: place for place, row in enumerate(rows)}
    found = []
    place = len(rows) - 1
    while place >= 0:
        row = rows[place]
        by_person = row.author_kind == "person"
        if by_person and row.restored_version is not None:
            place = places.get(row.restored_version, -1)
        elif by_person and row.change == Change.UNDELETED:
            # What it takes back is right below: nothing changes a note in the bin. Who keeps a note
            # whose making was undone has chosen so, and that is a change of theirs.
            if rows[place - 1].restored_version == NEVER:
                found.append(row)
            place -= 2
        else:
            found.append(row)
            place -= 1
    return found


def _check_owned(field: str, key: UUID, owner: AbstractBaseUser) -> None:
    """Chat owns runs and calls: their models are known by the foreign keys alone."""
    model = cast("type[models.Model]", NoteRevision._meta.get_field(field).related_model)
    if not model._default_manager.filter(pk=key, owner_id=owner.pk).exists():
        raise NoteNotFound("There is no such answer, or no such step of one.")
