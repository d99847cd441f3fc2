"""The procrastinate tasks of imports: one carries an import, two settle what is lost or old.

The argument is the transfer's id alone. A worker that stops hands the job back; whoever takes it
up goes on after the last batch.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from uuid import UUID

from django.db import OperationalError
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from notes.models import NoteTransfer, TransferStatus
from notes.transfer import services, uploads
from notes.transfer.archive import UPLOAD, ZipSource
from notes.transfer.exceptions import ArchiveUnreadable, TransferInterrupted
from notes.transfer.importing import Import
from tools.threads import chore, unit_of_work

logger = logging.getLogger(__name__)

FAULT = "Something went wrong on the server; its log has the details."


@app.task(
    name=services.IMPORT_TASK,
    retry=RetryStrategy(
        max_attempts=25, wait=2, retry_exceptions={TransferInterrupted, OperationalError}
    ),
)
async def import_archive(*, transfer_id: str) -> None:
    transfer = UUID(transfer_id)
    try:
        running = await chore(_begin, transfer)
        if running is None:
            return
        try:
            while await chore(running.step):
                pass
        finally:
            running.close()
    except asyncio.CancelledError:
        raise TransferInterrupted from None
    except ArchiveUnreadable as error:
        await unit_of_work(_fail, transfer, error.message)
    except OperationalError:
        raise
    # Raised again: the person who waits for the import is told that it is over.
    except Exception:
        await unit_of_work(_fail, transfer, FAULT)
        raise


@app.periodic(cron="* * * * *")
@app.task(name="notes.transfers_end_lost", queueing_lock="notes.transfers_end_lost")
async def transfers_end_lost(timestamp: int) -> None:
    await chore(services.transfers_end_lost)


@app.periodic(cron="47 * * * *")
@app.task(name="notes.transfers_purge", queueing_lock="notes.transfers_purge")
async def transfers_forget(timestamp: int) -> None:
    await chore(services.transfers_purge)


def _begin(transfer_id: UUID) -> Import | None:
    file = NoteTransfer.objects.filter(pk=transfer_id).values_list("file", flat=True).first()
    if not file:
        return None
    path = uploads.path_of(file)
    if not path.exists():
        raise ArchiveUnreadable("The uploaded file is not here any more.")
    with ExitStack() as unless_begun:
        source = ZipSource(path, UPLOAD)
        unless_begun.callback(source.close)
        transfer = services.transfer_begin(transfer_id=transfer_id, total=source.total)
        if transfer is None:
            return None
        running = Import(transfer, source)
        unless_begun.pop_all()
        return running


def _fail(transfer_id: UUID, message: str) -> None:
    services.transfer_end(transfer_id=transfer_id, status=TransferStatus.FAILED, error=message)
