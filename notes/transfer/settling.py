"""What becomes of a batch of files in the database: new notes, changed ones, or nothing.

A file is met again by ``NoteOrigin``, or by an id that is the owner's own note. What a person
changed since stays as it is, unless the import was told to overwrite. Only a note's own fields come
in; ids of others are made anew.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DatabaseError, transaction
from django.db.models.functions import MD5

from notes import services
from notes.authors import Author
from notes.exceptions import NoteNotFound, NoteSaveTimeout, NoteVersionConflict
from notes.folders import ROOT
from notes.models import FileOutcome, Note, NoteOrigin, NoteTransfer, NoteTransferFile
from notes.transfer.dialects import Draft

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

logger = logging.getLogger(__name__)

MAX_REASON = 1000
CHANGED_HERE = "The note was changed here since: it stays as it is."
IN_THE_BIN = "The note is in the bin, and stays there."
#: PostgreSQL's classes of errors that are about what was to be stored.
_ABOUT_THE_DATA = ("22", "23", "54")


class _Hashed(TypedDict):
    content_md5: str


StoredNote: TypeAlias = "WithAnnotations[Note, _Hashed]"


@dataclass(slots=True)
class File:
    """One file on its way from an entry of a source to what became of it.

    ``keys`` are what tells it from other files, the surest first; the one it was stored under
    stays alone. ``wanted`` is the note it wants to be, None where it cannot be one.
    """

    position: int
    path: str
    outcome: FileOutcome = FileOutcome.REFUSED
    reasons: list[str] = field(default_factory=list)
    note_id: UUID | None = None
    draft: Draft | None = None
    wanted: Note | None = None
    digest: bytes = b""
    keys: tuple[bytes, ...] = ()

    def end(self, outcome: FileOutcome, *reasons: str) -> None:
        self.outcome = outcome
        self.reasons += reasons


class Batch:
    """Files that were read. ``settle`` runs inside a transaction, one at a time for an owner."""

    def __init__(self, owner: AbstractBaseUser, transfer: NoteTransfer, files: list[File]) -> None:
        self._owner = owner
        self._transfer = transfer
        self._author = replace(Author.person(owner, "import"), vouches=transfer.trusted)
        self._files = files
        self._readable = [file for file in files if file.wanted is not None]
        self._new: list[File] = []
        self._moved: list[NoteOrigin] = []

    def settle(self) -> None:
        self._look_up()
        for file in self._readable:
            self._meet(file)
        self._create()
        self._report()

    def _look_up(self) -> None:
        """What earlier imports made of these files, and which notes this import met already."""
        keys = [key for file in self._readable for key in file.keys]
        origins = NoteOrigin.objects.filter(owner_id=self._owner.pk, key__in=keys)
        self._origins = {bytes(origin.key): origin for origin in origins}
        note_ids = {origin.note_id for origin in self._origins.values()} | self._own_ids()
        notes = Note.objects.filter(owner_id=self._owner.pk, pk__in=note_ids)
        hashed = notes.defer("content").annotate(content_md5=MD5("content"))
        self._notes = {note.pk: note for note in cast("Iterable[StoredNote]", hashed)}
        met = NoteTransferFile.objects.filter(transfer=self._transfer, note_id__in=self._notes)
        self._met: set[UUID] = set(met.values_list("note_id", flat=True))

    def _own_ids(self) -> set[UUID]:
        """Ids that files name. An import into a folder makes copies, so there they mean nothing."""
        if self._transfer.folder != ROOT:
            return set()
        return {file.draft.id for file in self._readable if file.draft and file.draft.id}

    def _meet(self, file: File) -> None:
        """Find the note of a file. One that this import met already belongs to another file:
        copies of a file name the same id."""
        for key in file.keys:
            origin = self._origins.get(key)
            by_id = (
                file.draft.id if file.draft and len(file.keys) > 1 and key == file.keys[0] else None
            )
            note_id = origin.note_id if origin else by_id
            if note_id in self._met:
                continue
            note = self._notes.get(note_id) if note_id else None
            if note is None:
                return self._plan(file, key)
            self._met.add(note.pk)
            file.note_id = note.pk
            return self._compare(file, note, origin, key)
        self._plan(file, file.keys[-1])

    def _plan(self, file: File, key: bytes) -> None:
        note = _wanted(file)
        self._new.append(file)
        self._met.add(note.pk)
        self._origins[key] = NoteOrigin(
            owner_id=self._owner.pk, key=key, note_id=note.pk, digest=file.digest, version=1
        )
        file.keys = (key,)

    def _compare(self, file: File, note: StoredNote, origin: NoteOrigin | None, key: bytes) -> None:
        in_bin = note.deleted is not None
        may_replace = self._transfer.overwrite
        if in_bin and not may_replace:
            return file.end(FileOutcome.KEPT, IN_THE_BIN)
        if origin is not None and bytes(origin.digest) == file.digest and not may_replace:
            return file.end(FileOutcome.UNCHANGED)
        is_same = _is_same(note, _wanted(file))
        if not is_same and not may_replace and _version_before(file, note, origin) != note.version:
            return file.end(FileOutcome.KEPT, CHANGED_HERE)
        try:
            version = self._brought(note, None if is_same else _wanted(file))
        except NoteVersionConflict:
            return file.end(FileOutcome.KEPT, CHANGED_HERE)
        except NoteNotFound:  # deleted at this moment
            return file.end(FileOutcome.KEPT, IN_THE_BIN)
        except (DatabaseError, NoteSaveTimeout) as error:
            return file.end(FileOutcome.REFUSED, _why_not_stored(error))
        if in_bin:
            file.reasons.append("Taken out of the bin.")
        file.end(FileOutcome.UNCHANGED if is_same and not in_bin else FileOutcome.UPDATED)
        self._moved.append(
            NoteOrigin(
                owner_id=self._owner.pk,
                key=key,
                note_id=note.pk,
                digest=file.digest,
                version=version,
            )
        )

    @transaction.atomic
    def _brought(self, note: StoredNote, wanted: Note | None) -> int:
        """The version of the note once it is out of the bin and, if that differs, as wanted."""
        version = note.version
        if note.deleted is not None:
            restored = services.note_restore(
                owner=self._owner, author=self._author, note_id=note.pk
            )
            version = restored.version
        return version if wanted is None else self._update(wanted, note, version)

    def _update(self, wanted: Note, note: StoredNote, version: int) -> int:
        updated = services.note_update(
            owner=self._owner,
            author=self._author,
            note_id=note.pk,
            title=wanted.title,
            content=wanted.content,
            folder=wanted.folder,
            tags=wanted.tags,
            language=wanted.language,
            from_outside=False if self._transfer.trusted else None,
            expected_version=version,
        )
        return updated.version

    def _create(self) -> None:
        for file in self._new:
            _complete(_wanted(file), file.draft)
        if self._stored(self._new):
            # One of them is what PostgreSQL does not take: the others are stored without it.
            for file in self._new:
                if refusal := self._stored([file]):
                    file.end(FileOutcome.REFUSED, refusal)
        stored = [file for file in self._new if file.note_id]
        self._moved += [self._origins[file.keys[0]] for file in stored]
        NoteOrigin.objects.bulk_create(
            self._moved,
            update_conflicts=True,
            unique_fields=["owner", "key"],
            update_fields=["note", "digest", "version"],
        )

    def _stored(self, files: list[File]) -> str:
        """Store notes; empty, or why they cannot be stored."""
        try:
            with transaction.atomic():
                notes = [_wanted(file) for file in files]
                services.notes_store(owner=self._owner, author=self._author, notes=notes)
        except (DatabaseError, NoteSaveTimeout) as error:
            return _why_not_stored(error)
        for file in files:
            file.note_id = _wanted(file).pk
            file.end(FileOutcome.CREATED)
        return ""

    def _report(self) -> None:
        NoteTransferFile.objects.bulk_create(
            NoteTransferFile(
                transfer=self._transfer,
                position=file.position,
                path=file.path,
                outcome=file.outcome,
                reason=" ".join(file.reasons)[:MAX_REASON].replace("\0", ""),
                note_id=file.note_id,
            )
            for file in self._files
        )


def _wanted(file: File) -> Note:
    if file.wanted is None:
        raise TypeError("A file that cannot be a note came this far.")
    return file.wanted


def _why_not_stored(error: DatabaseError | NoteSaveTimeout) -> str:
    """What is wrong with a text; what is not about it is raised again."""
    if isinstance(error, NoteSaveTimeout):
        return error.message
    if str(getattr(error.__cause__, "sqlstate", ""))[:2] not in _ABOUT_THE_DATA:
        raise error
    return "The database does not take this text."


def _version_before(file: File, note: Note, origin: NoteOrigin | None) -> int | None:
    """The version of its note that a file comes from: the one that the last import left, or that a
    later export of the note says."""
    is_its_own = file.draft is not None and file.draft.id == note.pk
    said = file.draft.version if file.draft and is_its_own else None
    known = [version for version in (origin and origin.version, said) if version]
    return max(known, default=None)


def _complete(note: Note, draft: Draft | None) -> None:
    """Give a new note what only an import may say: when it was made, and from what."""
    if draft is None:
        return
    note.created = draft.created or note.created
    note.updated = draft.updated or note.created
    note.source_conversation_id = draft.source_conversation
    note.source_message_id = draft.source_message


def _is_same(note: StoredNote, wanted: Note) -> bool:
    content = hashlib.md5(wanted.content.encode(), usedforsecurity=False).hexdigest()
    fields = ("title", "folder", "tags", "language")
    return note.content_md5 == content and all(
        getattr(note, name) == getattr(wanted, name) for name in fields
    )
