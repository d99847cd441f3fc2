"""Reads of imports, each inside its owner's."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet

from notes.exceptions import NoteNotFound
from notes.models import FileOutcome, NoteTransfer, NoteTransferFile


def transfer_list(*, owner: AbstractBaseUser) -> QuerySet[NoteTransfer]:
    """The newest first."""
    return NoteTransfer.objects.filter(owner_id=owner.pk).order_by("-created", "-id")


def transfer_get(*, owner: AbstractBaseUser, transfer_id: UUID) -> NoteTransfer:
    """Another person's and a missing one: NoteNotFound."""
    transfer = NoteTransfer.objects.filter(owner_id=owner.pk, pk=transfer_id).first()
    if transfer is None:
        raise NoteNotFound
    return transfer


def transfer_files(
    *, owner: AbstractBaseUser, transfer_id: UUID, outcome: str = ""
) -> QuerySet[NoteTransferFile]:
    """What became of each file, in the order of the archive; of one outcome if that is named."""
    transfer = transfer_get(owner=owner, transfer_id=transfer_id)
    files = transfer.files.order_by("position")
    return files.filter(outcome=FileOutcome(outcome)) if outcome else files


def transfer_problems(*, transfer: NoteTransfer, limit: int) -> list[NoteTransferFile]:
    """The first files of which there is something to say."""
    files = transfer.files.exclude(reason="").order_by("position")
    return list(files[:limit])
