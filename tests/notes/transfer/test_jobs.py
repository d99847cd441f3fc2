"""The job that carries an import, on units of work as in the server."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accounts.models import User
from notes.models import Note, NoteTransfer
from notes.transfer import importing, services, uploads
from notes.transfer.exceptions import TransferInterrupted
from notes.transfer.importing import Import
from notes.transfer.jobs import FAULT, import_archive

from .conftest import packed

FILES = {f"{number}.md": f"text {number}" for number in range(9)}


@pytest.fixture
def queued(alice: User) -> NoteTransfer:
    return services.transfer_create(owner=alice, archive=[packed(FILES)])


def again(transfer: NoteTransfer) -> NoteTransfer:
    return NoteTransfer.objects.get(pk=transfer.pk)


async def run(transfer_id: Any) -> None:
    await import_archive(transfer_id=str(transfer_id))


def test_job_imports_and_lets_go_of_the_upload(
    units: None, queued: NoteTransfer, home: Path, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        asyncio.run(run(queued.pk))
    done = again(queued)
    assert (done.status, done.total, done.position, done.files_created) == ("finished", 9, 9, 9)
    assert (done.file, done.finished is None) == ("", False)
    assert not list(home.glob("transfers/*"))
    asyncio.run(run(queued.pk))
    assert Note.objects.count() == 9


def test_worker_that_stops_hands_the_job_back_and_another_goes_on(
    units: None, queued: NoteTransfer, monkeypatch
):
    monkeypatch.setattr(importing, "BATCH_FILES", 3)
    reached = threading.Event()
    step = Import.step

    def slow_step(self: Import) -> bool:
        more = step(self)
        reached.set()
        return more

    async def stopped() -> None:
        task = asyncio.create_task(run(queued.pk))
        await asyncio.to_thread(reached.wait, 10)
        task.cancel()
        await task

    monkeypatch.setattr(Import, "step", slow_step)
    with pytest.raises(TransferInterrupted):
        asyncio.run(stopped())
    half = again(queued)
    assert half.status == "running"
    assert half.position in (3, 6)
    assert Note.objects.count() == half.files_created == half.position
    asyncio.run(run(queued.pk))
    assert (again(queued).status, Note.objects.count()) == ("finished", 9)


def test_upload_that_is_gone_ends_the_import_with_words(units: None, queued: NoteTransfer):
    uploads.remove(queued.file)
    asyncio.run(run(queued.pk))
    failed = again(queued)
    assert (failed.status, failed.error) == ("failed", "The uploaded file is not here any more.")


def test_archive_that_only_ends_like_one_ends_the_import_with_words(units: None, alice: User):
    transfer = services.transfer_create(owner=alice, archive=[b"PK\5\6" + b"\xff" * 16 + b"\0\0"])
    asyncio.run(run(transfer.pk))
    assert again(transfer).status == "failed"
    assert "not a ZIP archive" in again(transfer).error


def test_fault_of_ours_is_told_without_its_details(units: None, queued: NoteTransfer, monkeypatch):
    monkeypatch.setattr(Import, "step", lambda self: dict[str, bool]()["secret"])
    with pytest.raises(KeyError):
        asyncio.run(run(queued.pk))
    assert (again(queued).status, again(queued).error) == ("failed", FAULT)


def test_transfer_that_is_not_there_is_nothing_to_do(units: None):
    asyncio.run(run(uuid4()))
