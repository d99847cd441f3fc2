"""The page for imports and exports."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from notes.models import Note, NoteTransfer, NoteTransferFile

PAGE = "/notes/transfers/"


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> None:
    settings.NOTEWIRE_HOME = tmp_path


@pytest.fixture
def client(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def archive() -> SimpleUploadedFile:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as opened:
        opened.writestr("a.md", "hello")
    return SimpleUploadedFile("vault.zip", data.getvalue())


def test_page_offers_export_and_takes_an_archive(client: Client, alice: User):
    page = client.get(PAGE)
    assert 'href="/api/notes/export/"' in page.text
    assert 'href="/notes/transfers/"' in client.get("/notes/").text
    sent = client.post(PAGE, {"file": archive(), "folder": "/in/", "overwrite": "on"})
    transfer = NoteTransfer.objects.get()
    assert (sent.status_code, sent["Location"]) == (302, f"{PAGE}{transfer.pk}/")
    assert (transfer.owner_id, transfer.name, transfer.folder) == (alice.pk, "vault.zip", "/in/")
    assert (transfer.overwrite, transfer.trusted) == (True, False)
    assert "vault.zip" in client.get(PAGE).text


def test_person_may_trust_what_they_import(client: Client):
    assert "These are my own notes: trust them" in client.get(PAGE).text
    client.post(PAGE, {"file": archive(), "trusted": "on"})
    assert NoteTransfer.objects.get().trusted


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "This field is required."),
        ({"file": SimpleUploadedFile("a.zip", b"no")}, "This is not a ZIP archive."),
        ({"folder": "/../"}, "A folder cannot be called"),
    ],
)
def test_mistake_is_shown_beside_its_field(client: Client, fields: dict[str, Any], said: str):
    sent = {"file": archive()} | fields if "folder" in fields else fields
    page = client.post(PAGE, sent)
    assert page.status_code == 400
    assert said in page.text
    assert not NoteTransfer.objects.exists()


def test_archive_that_the_edge_refused_is_answered_with_the_form(client: Client):
    words = "At most 32 MiB: leave out attachments, or use notes_import on the server."
    page = client.get(f"{PAGE}?too_large=1")
    assert page.status_code == 413
    assert re.search(rf'role="alert">\s*{words}', page.text)
    assert '<form class="import"' in page.text
    page = client.get(PAGE)
    assert re.search(rf'role="alert" hidden>\s*{words}', page.text)
    assert 'data-max-bytes="33554432"' in page.text


def test_progress_is_asked_for_while_the_import_is_under_way(client: Client, alice: User):
    transfer = NoteTransfer.objects.create(
        owner=alice, name="<b>.zip", status="running", total=1000, position=250
    )
    path = f"{PAGE}{transfer.pk}/"
    page = client.get(path)
    assert f'hx-get="{path}" hx-trigger="every 1s"' in page.text
    assert 'max="1000" value="250"' in page.text
    assert "<b>.zip" not in page.text
    part = client.get(path, headers={"HX-Request": "true"})
    assert part.text.lstrip().startswith("<section")
    assert "250 of 1000 files" in part.text


def test_report_escapes_names_and_stops_asking(client: Client, alice: User):
    note = Note.objects.create(owner=alice, title="n")
    transfer = NoteTransfer.objects.create(
        owner=alice, status="finished", files_created=1, files_refused=2
    )
    NoteTransferFile.objects.create(
        transfer=transfer, position=1, path="ok.md", outcome="created", note=note, reason="Read so."
    )
    NoteTransferFile.objects.create(
        transfer=transfer, position=2, path="<script>.md", outcome="refused", reason="No."
    )
    page = client.get(f"{PAGE}{transfer.pk}/")
    assert "hx-get" not in page.text
    assert f'href="/notes/{note.pk}/"' in page.text
    assert "&lt;script&gt;.md" in page.text
    assert "<script>.md" not in page.text


def test_failure_is_shown(client: Client, alice: User):
    transfer = NoteTransfer.objects.create(owner=alice, status="failed", error="Not readable.")
    assert "Not readable." in client.get(f"{PAGE}{transfer.pk}/").text


def test_import_of_another_is_not_there(client: Client, mallory: User):
    transfer = NoteTransfer.objects.create(owner=mallory, name="hers.zip")
    assert client.get(f"{PAGE}{transfer.pk}/").status_code == 404
    assert "hers.zip" not in client.get(PAGE).text


def test_anonymous_logs_in_first(db: None):
    for path in (PAGE, f"{PAGE}00000000-0000-4000-8000-000000000000/"):
        assert Client().get(path)["Location"].startswith("/login/")
