"""The life of an import: asked for, begun, ended, forgotten. What it does is ``importing``'s."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction
from django.utils import timezone
from procrastinate.contrib.django import app

from notes.exceptions import NoteInvalid
from notes.folders import ROOT, folder_normalised
from notes.models import NoteTransfer, TransferStatus
from notes.rules import text_checked
from notes.transfer import uploads

IMPORT_TASK = "notes.import_archive"
MAX_NAME = 200
MAX_UPLOAD_MIB = 32
NEVER_ENDED = "The import did not come to an end. Import the archive again: that is safe."
WAS_KILLED = "The command that imported was ended. Start it again: that is safe."
#: Imports that run at once, anywhere; one owner's run one after another.
LANES = 2
#: How long a report is kept, and how long an import may take.
KEPT_FOR = timedelta(days=30)
WAITED_FOR = timedelta(days=1)

_HOLD = "SELECT pg_advisory_lock(hashtext('notes.transfer'), hashtext(%s))"
_IS_HELD = "SELECT NOT pg_try_advisory_xact_lock(hashtext('notes.transfer'), hashtext(%s))"

ACTIVE = (TransferStatus.QUEUED, TransferStatus.RUNNING)


def transfer_create(
    *,
    owner: AbstractBaseUser,
    archive: Iterable[bytes],
    name: str = "",
    folder: str = ROOT,
    overwrite: bool = False,
    trusted: bool = False,
) -> NoteTransfer:
    """Keep an uploaded archive and queue its import; ``trusted`` vouches for what is in it."""
    into = folder_normalised(folder)
    shown = text_checked(name, field="file")[-MAX_NAME:]
    file = uploads.store(archive)
    try:
        if not _is_zip(uploads.path_of(file)):
            raise NoteInvalid("This is not a ZIP archive.", field="file")
        with transaction.atomic():
            transfer = NoteTransfer.objects.create(
                owner_id=owner.pk,
                name=shown,
                file=file,
                folder=into,
                overwrite=overwrite,
                trusted=trusted,
            )
            task = app.configure_task(IMPORT_TASK, lock=f"notes.import:{owner.pk % LANES}")
            task.defer(transfer_id=str(transfer.pk))
    # Raised again: an upload that no import will read is not kept.
    except BaseException:
        uploads.remove(file)
        raise
    return transfer


def _is_zip(path: Path) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:  # the last of several files, into which one archive was split
        return False


def transfer_record(
    *, owner: AbstractBaseUser, name: str, folder: str, overwrite: bool, total: int
) -> NoteTransfer:
    """An import that begins at once, of files that are read where they are.

    This database session holds a lock meanwhile: one that is free is of an import that was killed.
    """
    transfer = NoteTransfer(
        owner_id=owner.pk,
        name=text_checked(name, field="file")[-MAX_NAME:],
        folder=folder_normalised(folder),
        overwrite=overwrite,
        status=TransferStatus.RUNNING,
        total=total,
    )
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [transfer.pk.hex])
    transfer.save()
    return transfer


def transfer_begin(*, transfer_id: UUID, total: int) -> NoteTransfer | None:
    """Go on with a transfer from where it is; None where it is over."""
    transfers = NoteTransfer.objects.filter(pk=transfer_id, status__in=ACTIVE)
    if not transfers.update(status=TransferStatus.RUNNING, total=total):
        return None
    return NoteTransfer.objects.select_related("owner").get(pk=transfer_id)


def transfer_end(*, transfer_id: UUID, status: TransferStatus, error: str = "") -> None:
    """Settle how a transfer ended, once, and let go of its upload after the commit."""
    active = NoteTransfer.objects.filter(pk=transfer_id, status__in=ACTIVE)
    file = active.values_list("file", flat=True).first()
    if file is not None and active.update(
        status=status, error=error, file="", finished=timezone.now()
    ):
        transaction.on_commit(lambda: uploads.remove(file))


def transfers_end_lost() -> None:
    """Settle what a command was killed in the middle of. A job's import goes on with its job."""
    running = NoteTransfer.objects.filter(status=TransferStatus.RUNNING, file="")
    for transfer_id in running.values_list("pk", flat=True):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_IS_HELD, [transfer_id.hex])
            if not cursor.fetchone()[0]:
                transfer_end(
                    transfer_id=transfer_id, status=TransferStatus.FAILED, error=WAS_KILLED
                )


def transfers_purge() -> None:
    """Forget old reports, and uploads that a crash left behind."""
    now = timezone.now()
    NoteTransfer.objects.filter(created__lt=now - KEPT_FOR).exclude(status__in=ACTIVE).delete()
    lost = NoteTransfer.objects.filter(created__lt=now - WAITED_FOR, status__in=ACTIVE)
    for transfer_id in lost.values_list("pk", flat=True):
        transfer_end(transfer_id=transfer_id, status=TransferStatus.FAILED, error=NEVER_ENDED)
    waited_for = NoteTransfer.objects.filter(status__in=ACTIVE).values_list("file", flat=True)
    uploads.remove_older(than=now - WAITED_FOR, but=waited_for)
