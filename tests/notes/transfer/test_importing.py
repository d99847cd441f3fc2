"""An import that is repeated, cut off, or done twice at once."""

from __future__ import annotations

import os
import struct
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import User
from notes import services as services_of_notes
from notes.exceptions import NoteError, NoteInBin, NoteInvalid, NoteSaveTimeout
from notes.models import Note, NoteOrigin, NoteTransfer, NoteTransferFile
from notes.transfer import importing, services, settling, uploads
from notes.transfer.archive import UPLOAD, ZipSource
from notes.transfer.importing import Import
from tests.notes.writing import note_update

from .conftest import Importer, outcomes, packed, reason

VAULT = {"a.md": "one", "b/c.md": "two #tag", "b/d.md": "three", "p.png": b"\x89PNG"}


def test_repeated_import_changes_nothing(alice: User, do_import: Importer):
    first = do_import(alice, VAULT)
    before = list(Note.objects.order_by("id").values())
    second = do_import(alice, VAULT)
    assert (first.files_created, first.files_skipped) == (3, 1)
    assert (second.files_unchanged, second.files_skipped) == (3, 1)
    assert list(Note.objects.order_by("id").values()) == before
    found = {file.path: file.note_id for file in first.files.all()}
    assert found == {file.path: file.note_id for file in second.files.all()}


def test_changed_file_changes_its_note_and_what_a_person_changed_stays(
    alice: User, do_import: Importer
):
    do_import(alice, VAULT)
    mine = Note.objects.get(title="c")
    note_update(owner=alice, note_id=mine.pk, content="my own")
    assert do_import(alice, VAULT).files_unchanged == 3

    transfer = do_import(alice, VAULT | {"a.md": "newer", "b/c.md": "newer too"})

    assert outcomes(transfer) == {
        "a.md": "updated",
        "b/c.md": "kept",
        "b/d.md": "unchanged",
        "p.png": "skipped",
    }
    assert Note.objects.get(title="a").content == "newer"
    assert Note.objects.get(pk=mine.pk).content == "my own"
    assert do_import(alice, VAULT | {"b/c.md": "newer too"}, overwrite=True).files_updated == 2
    assert Note.objects.get(pk=mine.pk).content == "newer too"
    assert Note.objects.count() == 3


def test_file_that_came_to_say_what_a_person_wrote_changes_its_note_from_then_on(
    alice: User, do_import: Importer
):
    do_import(alice, {"a.md": "one"})
    note = Note.objects.get()
    note_update(owner=alice, note_id=note.pk, content="two")
    assert outcomes(do_import(alice, {"a.md": "two"})) == {"a.md": "unchanged"}
    assert outcomes(do_import(alice, {"a.md": "three"})) == {"a.md": "updated"}
    assert Note.objects.get(pk=note.pk).content == "three"


@pytest.mark.parametrize(
    ("failure", "outcome"), [(NoteSaveTimeout(), "refused"), (NoteInBin(), "kept")]
)
def test_note_that_cannot_be_changed_does_not_end_the_import(
    alice: User, do_import: Importer, monkeypatch, failure: NoteError, outcome: str
):
    do_import(alice, VAULT)
    note_update_ = services_of_notes.note_update

    def failing(**options: Any) -> Note:
        if options["content"] == "newer":
            raise failure
        return note_update_(**options)

    monkeypatch.setattr(services_of_notes, "note_update", failing)
    transfer = do_import(alice, VAULT | {"a.md": "newer", "b/d.md": "newest"})
    assert transfer.status == "finished"
    assert (outcomes(transfer)["a.md"], outcomes(transfer)["b/d.md"]) == (outcome, "updated")
    assert reason(transfer, "a.md")
    assert Note.objects.get(title="a").content == "one"


def test_import_that_is_trusted_marks_no_note_as_from_outside(alice: User, do_import: Importer):
    def foreign() -> list[str]:
        marked = Note.objects.filter(from_outside=True).order_by("title")
        return list(marked.values_list("title", flat=True))

    do_import(alice, VAULT)
    assert foreign() == ["a", "c", "d"]
    do_import(alice, VAULT | {"a.md": "newer", "e.md": "five"}, trusted=True)
    assert foreign() == ["c", "d"]
    do_import(alice, VAULT | {"a.md": "newest", "e.md": "five"})
    assert foreign() == ["a", "c", "d"]


def test_copies_of_a_file_that_say_the_same_id_become_two_notes(alice: User, do_import: Importer):
    said = "---\nid: 6fa459ea-ee8a-3ca4-894e-db77e160355e\n---\n"
    vault = {"a.md": said + "original", "copy.md": said + "copy", "z.md": said + "another"}
    for created, unchanged in ((3, 0), (0, 3)):
        transfer = do_import(alice, vault)
        assert (transfer.files_created, transfer.files_unchanged) == (created, unchanged)
    assert set(Note.objects.values_list("content", flat=True)) == {"original", "copy", "another"}


def test_folder_keeps_two_vaults_apart(alice: User, do_import: Importer):
    do_import(alice, {"README.md": "first"}, folder="/one/")
    do_import(alice, {"README.md": "second"}, folder="/two/")
    assert set(Note.objects.values_list("folder", "content")) == {
        ("/one/", "first"),
        ("/two/", "second"),
    }


def test_imports_of_two_people_do_not_meet(alice: User, mallory: User, do_import: Importer):
    do_import(alice, VAULT)
    assert do_import(mallory, VAULT | {"a.md": "hers"}).files_created == 3
    assert Note.objects.get(owner=alice, title="a").content == "one"


def test_imported_note_is_a_revision_by_its_owner(alice: User, do_import: Importer):
    do_import(alice, {"a.md": "one"})
    do_import(alice, {"a.md": "two"})
    revisions = Note.objects.get().revisions.order_by("version")
    assert list(revisions.values_list("change", "via", "user", "author_kind")) == [
        ("created", "import", alice.pk, "person"),
        ("edited", "import", alice.pk, "person"),
    ]


def test_import_that_is_cut_off_goes_on_after_its_last_batch(
    alice: User, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(importing, "BATCH_FILES", 3)
    files = {f"f{number % 4}/{number}.md": f"text {number}" for number in range(10)}
    path = tmp_path / "a.zip"
    path.write_bytes(packed(list(files.items()) + [("F1/1.md", "again")]))
    transfer = NoteTransfer.objects.create(owner=alice, status="running")

    first = Import(transfer, ZipSource(path, UPLOAD))
    assert first.step() and first.step()
    with monkeypatch.context() as broken:
        broken.setattr(settling.Batch, "_report", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            first.step()
    first.close()
    assert (Note.objects.count(), NoteTransferFile.objects.count()) == (6, 6)

    transfer = NoteTransfer.objects.get()
    assert (transfer.position, transfer.files_created) == (6, 6)
    second = Import(transfer, ZipSource(path, UPLOAD))
    while second.step():
        pass
    second.close()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.position) == ("finished", 11)
    assert (transfer.files_created, transfer.files_refused) == (10, 1)
    assert Note.objects.count() == NoteOrigin.objects.count() == 10
    assert list(transfer.files.values_list("position", flat=True)) == list(range(1, 12))


def test_executor_that_was_overtaken_stops_without_an_effect(
    alice: User, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(importing, "BATCH_FILES", 2)
    path = tmp_path / "a.zip"
    path.write_bytes(packed({f"{number}.md": "x" for number in range(6)}))
    NoteTransfer.objects.create(owner=alice, status="running")
    lost, taken = (Import(NoteTransfer.objects.get(), ZipSource(path, UPLOAD)) for _ in range(2))
    assert taken.step()
    assert not lost.step()
    while taken.step():
        pass
    assert not lost.step()
    lost.close()
    taken.close()
    assert Note.objects.count() == 6
    assert NoteTransfer.objects.get().files_created == 6


def test_text_that_the_database_does_not_take_is_refused_alone(
    alice: User, do_import: Importer, monkeypatch
):
    bulk_create = Note.objects.bulk_create

    def failing(notes: Any, **options: Any) -> Any:
        for note in notes:
            if note.title == "bad":
                note.title = "t" * 501
        return bulk_create(notes, **options)

    monkeypatch.setattr(Note.objects, "bulk_create", failing)
    transfer = do_import(alice, {"a.md": "1", "bad.md": "2", "c.md": "3"})
    assert outcomes(transfer) == {"a.md": "created", "bad.md": "refused", "c.md": "created"}
    assert "does not take" in reason(transfer, "bad.md")
    assert NoteOrigin.objects.count() == 2


def test_field_that_breaks_a_rule_is_named(alice: User, do_import: Importer):
    transfer = do_import(alice, {"a.md": f"---\ntitle: {'t' * 501}\n---\n", "b.md": "fine"})
    assert reason(transfer, "a.md") == "title: At most 500 characters."
    assert outcomes(transfer)["b.md"] == "created"


def test_nothing_but_fields_of_a_note_comes_in(alice: User, mallory: User, do_import: Importer):
    said = (
        "notewire: 1\nowner: 2\ndeleted: 2020-01-01\nversion: 99\nstatus: running\nrole: system\n"
    )
    do_import(alice, {"a.md": f"---\n{said}---\nhello"})
    note = Note.objects.get()
    assert (note.owner_id, note.version, note.deleted) == (alice.pk, 1, None)


def test_queueing_keeps_the_archive_closed_to_others(alice: User, home: Path):
    transfer = services.transfer_create(owner=alice, archive=[packed(VAULT)], name="../vault.zip")
    (file,) = (home / "transfers").iterdir()
    assert transfer.name == "../vault.zip"
    assert file.name == transfer.file
    assert "vault" not in file.name
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    job = ProcrastinateJob.objects.get(task_name=services.IMPORT_TASK)
    assert job.args == {"transfer_id": str(transfer.pk)}


@pytest.mark.parametrize(
    ("archive", "options", "field"),
    [
        (b"no archive", {}, "file"),
        (b"", {}, "file"),
        (b"PK\6\7" + struct.pack("<LQL", 1, 0, 2) + b"PK\5\6" + bytes(18), {}, "file"),
        (None, {"folder": "/../"}, "folder"),
        (None, {"name": "a\0b"}, "file"),
    ],
)
def test_what_cannot_be_imported_leaves_nothing_behind(
    alice: User, home: Path, archive: bytes | None, options: dict[str, Any], field: str
):
    data = packed(VAULT) if archive is None else archive
    with pytest.raises(NoteInvalid) as refused:
        services.transfer_create(owner=alice, archive=[data], **options)
    assert refused.value.field == field
    assert not list(home.glob("transfers/*"))
    assert not NoteTransfer.objects.exists()
    assert not ProcrastinateJob.objects.filter(task_name=services.IMPORT_TASK).exists()


def test_upload_that_breaks_off_leaves_nothing_behind(alice: User, home: Path):
    def parts():
        yield packed(VAULT)[:50]
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        services.transfer_create(owner=alice, archive=parts())
    assert not list(home.glob("transfers/*"))


def test_old_reports_and_uploads_are_forgotten(
    alice: User, home: Path, django_capture_on_commit_callbacks
):
    old = timezone.now() - timedelta(days=40)
    lost = uploads.store([b"x"])
    orphan = uploads.store([b"y"])
    waiting = uploads.store([b"z"])
    for name in (lost, orphan, waiting):
        os.utime(uploads.path_of(name), (old.timestamp(), old.timestamp()))
    NoteTransfer.objects.create(owner=alice, status="finished", created=old)
    stuck = NoteTransfer.objects.create(owner=alice, status="running", file=lost, created=old)
    queued = NoteTransfer.objects.create(owner=alice, status="queued", file=waiting)
    with django_capture_on_commit_callbacks(execute=True):
        services.transfers_purge()
    assert [path.name for path in home.glob("transfers/*")] == [waiting]
    assert set(NoteTransfer.objects.values_list("pk", "status")) == {
        (stuck.pk, "failed"),
        (queued.pk, "queued"),
    }
