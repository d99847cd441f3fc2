"""Carries an import forward, batch by batch, so that it may stop anywhere and be done again.

A batch is one transaction: notes, what became of each file, and the position after it. Owns what
is read and in which order; what becomes of a file in the database is ``settling``'s. Who calls
``step`` (a job, a command) is not known here.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from notes import services
from notes.exceptions import NoteError
from notes.folders import ROOT
from notes.models import FileOutcome, NoteTransfer, TransferStatus
from notes.transfer import dialects, names, texts
from notes.transfer.archive import Entry, Source
from notes.transfer.dialects import Draft
from notes.transfer.exceptions import FileRefused
from notes.transfer.services import transfer_end
from notes.transfer.settling import Batch, File

logger = logging.getLogger(__name__)

#: Small, as a batch holds one of the few threads and connections of its process.
BATCH_FILES = 100
BATCH_BYTES = 1024 * 1024


class Import:
    """A transfer that is running, and the source that it reads. One thread at a time steps."""

    def __init__(self, transfer: NoteTransfer, source: Source) -> None:
        self.transfer = transfer
        self._owner = cast(AbstractBaseUser, transfer.owner)
        self._source = source
        self._names = names.UniqueNames()
        self._entries = enumerate(source.entries(), start=1)
        for _, entry in islice(self._entries, transfer.position):
            self._claim_again(entry)

    def step(self) -> bool:
        """Settle some more files. False: there is nothing left to do, here at least."""
        files, position, is_last = self._read_batch()
        with transaction.atomic():
            _lock(self._owner)
            if not self._advance(position):
                logger.warning("Import %s goes on elsewhere", self.transfer.pk)
                return False
            Batch(self._owner, self.transfer, files).settle()
            self._count(files)
            if is_last:
                transfer_end(transfer_id=self.transfer.pk, status=TransferStatus.FINISHED)
        self.transfer.position = position
        return not is_last

    def close(self) -> None:
        self._source.close()

    def _read_batch(self) -> tuple[list[File], int, bool]:
        """The next files, the position after them, and whether they are the last."""
        files: list[File] = []
        position = self.transfer.position
        size = 0
        for position, entry in self._entries:
            if entry is not None:
                file = File(position, _printable(entry.path))
                files.append(file)
                size += self._read(entry, file)
            if position == self.transfer.position + BATCH_FILES or size >= BATCH_BYTES:
                return files, position, False
        return files, position, True

    def _read(self, entry: Entry, file: File) -> int:
        """Take a file in as far as it goes without the database; how many bytes that was."""
        try:
            return self._taken_in(entry, file)
        except FileRefused as error:
            file.end(FileOutcome.REFUSED, error.message)
        except NoteError as error:
            where = getattr(error, "field", "")
            file.end(FileOutcome.REFUSED, f"{where}: {error.message}" if where else error.message)
        return 0

    def _taken_in(self, entry: Entry, file: File) -> int:
        parts = names.parts_checked(entry.path)
        if entry.refusal:
            raise FileRefused(entry.refusal)
        if reason := dialects.skipped(parts):
            file.end(FileOutcome.SKIPPED, reason)
            return 0
        path = "/".join(parts)
        if not self._names.is_new(path):
            raise FileRefused("Another file has this name, but for case or accents.")
        data = self._source.read(entry)
        text, remark = texts.decoded(data)
        draft = dialects.draft(parts, text, entry.modified)
        _keep_to_the_past(draft)
        if self.transfer.folder != ROOT:
            draft.folder = self.transfer.folder + draft.folder
        file.reasons += [remark] if remark else []
        file.reasons += map(_printable, draft.remarks)
        file.wanted = services.note_checked(
            owner=self._owner,
            title=draft.title,
            content=draft.content,
            folder=draft.folder,
            tags=draft.tags,
            language=draft.language,
        )
        file.draft = draft
        file.digest = hashlib.blake2b(data, digest_size=16).digest()
        file.keys = tuple(_keys(self.transfer.folder, draft.id, path))
        return len(data)

    def _claim_again(self, entry: Entry | None) -> None:
        """What ``_taken_in`` did with the name of an entry that an earlier attempt settled."""
        if entry is None or entry.refusal:
            return
        try:
            parts = names.parts_checked(entry.path)
        except FileRefused:
            return
        if not dialects.skipped(parts):
            self._names.is_new("/".join(parts))

    def _advance(self, position: int) -> bool:
        """Move the transfer on, if nobody else did: what fences one executor off another."""
        mine = NoteTransfer.objects.filter(
            pk=self.transfer.pk, position=self.transfer.position, status=TransferStatus.RUNNING
        )
        return bool(mine.update(position=position))

    def _count(self, files: Iterable[File]) -> None:
        counts: dict[str, int] = {}
        for file in files:
            counts[file.outcome] = counts.get(file.outcome, 0) + 1
        if counts:
            changes = {
                f"files_{outcome}": F(f"files_{outcome}") + n for outcome, n in counts.items()
            }
            NoteTransfer.objects.filter(pk=self.transfer.pk).update(**changes)


def _keep_to_the_past(draft: Draft) -> None:
    """What is dated in the future would be the newest note for years.

    Clocks and time zones differ, which is not worth a word.
    """
    now = timezone.now()
    for name in ("created", "updated"):
        given: datetime | None = getattr(draft, name)
        if given is not None and given > now:
            setattr(draft, name, now)
            if given > now + timedelta(days=1):
                draft.remarks.append(f"{name}: {given:%Y-%m-%d} is in the future: now is taken.")


def _keys(folder: str, given: UUID | None, path: str) -> Iterator[bytes]:
    """What tells a file from others, the surest first: the id that it names, then its path."""
    if given is not None:
        yield _hashed(folder, "id", str(given))
    yield _hashed(folder, "path", names.identity(path))


def _hashed(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).digest()


def _printable(path: str) -> str:
    """Words from outside as PostgreSQL can store them and a page or terminal can show them."""
    shown = path[: names.MAX_PATH]
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in shown)


def _lock(owner: AbstractBaseUser) -> None:
    """One batch of an owner at a time, whoever runs it: two could make the same note."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('notes.import'), %s)", [owner.pk])
