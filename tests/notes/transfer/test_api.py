"""The REST door to imports and exports: owner, stranger, anonymous; bodies and bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from accounts.services import token_create
from notes.models import Note, NoteTransfer
from notes.transfer import exporting
from notes.transfer.exporting import Export
from notes.transfer.jobs import import_archive
from tests.notes.writing import note_create

from .conftest import Importer, packed

EXPORT = "/api/notes/export/"
IMPORT = "/api/notes/import/"
TRANSFERS = "/api/notes/transfers/"
FILES = {"a/b.md": "one", "c.md": "two", "p.png": b"\x89PNG"}


@pytest.fixture
def client(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def send(client: Client, data: bytes, query: str = "", **options: Any) -> Any:
    kind = options.pop("content_type", "application/zip")
    return client.generic("POST", IMPORT + query, data, content_type=kind, **options)


def error_of(response: Any) -> tuple[int, str, list[str]]:
    error = response.json()["error"]
    return response.status_code, error["code"], list(error["fields"])


def test_archive_as_body_is_imported_and_reported(client: Client, units: None):
    queued = send(client, packed(FILES), "?folder=in/&name=vault.zip&overwrite=true")
    assert queued.status_code == 202
    transfer = queued.json()
    assert queued["Location"] == f"{TRANSFERS}{transfer['id']}/"
    assert (transfer["status"], transfer["name"], transfer["folder"], transfer["overwrite"]) == (
        "queued",
        "vault.zip",
        "/in/",
        True,
    )
    asyncio.run(import_archive(transfer_id=transfer["id"]))

    done = client.get(queued["Location"]).json()
    assert (done["status"], done["position"], done["total"]) == ("finished", 3, 3)
    assert done["files"] == {
        "created": 2,
        "updated": 0,
        "unchanged": 0,
        "kept": 0,
        "skipped": 1,
        "refused": 0,
    }
    (problem,) = done["problems"]
    assert (problem["path"], problem["outcome"], problem["note"]) == ("p.png", "skipped", None)
    assert set(Note.objects.values_list("folder", "title")) == {("/in/a/", "b"), ("/in/", "c")}
    files = client.get(f"{queued['Location']}files/?outcome=created&limit=1").json()
    assert (files["count"], files["results"][0]["path"]) == (2, "a/b.md")
    assert files["results"][0]["note"] == str(Note.objects.get(title="b").pk)
    following = client.get(files["next"]).json()
    assert [file["path"] for file in following["results"]] == ["c.md"]
    listed = client.get(TRANSFERS).json()
    assert [each["id"] for each in listed["results"]] == [transfer["id"]]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "Archive over REST"),
        ({"content_type": "application/x-zip-compressed"}, "Archive over REST"),
        ({"content_type": "application/octet-stream"}, "Archive over REST"),
        (
            {"headers": {"Content-Disposition": 'attachment; filename="../my vault.zip"'}},
            "my vault.zip",
        ),
    ],
)
def test_archive_has_a_name_whatever_it_is_sent_as(client: Client, options: Any, name: str):
    queued = send(client, packed(FILES), **options)
    assert (queued.status_code, queued.json()["name"]) == (202, name)


def test_name_that_cannot_be_read_is_refused_with_its_header(client: Client):
    header = {"Content-Disposition": "attachment; filename*=klingon''a"}
    response = send(client, packed(FILES), headers=header)
    assert error_of(response) == (400, "invalid", ["Content-Disposition"])


def test_field_that_no_import_has_is_refused(client: Client):
    file = SimpleUploadedFile("a.zip", packed(FILES))
    assert error_of(client.post(IMPORT, {"file": file, "overwite": "1"})) == (
        400,
        "invalid",
        ["overwite"],
    )
    assert not NoteTransfer.objects.exists()


def test_form_with_a_file_is_taken(client: Client):
    file = SimpleUploadedFile("my vault.zip", packed(FILES))
    queued = client.post(IMPORT, {"file": file, "folder": "/x/"})
    assert queued.status_code == 202
    assert (queued.json()["name"], queued.json()["folder"]) == ("my vault.zip", "/x/")


def test_large_form_goes_to_disk_and_comes_out_whole(client: Client, home: Path):
    import os

    data = packed({"a.bin": os.urandom(4_000_000)})
    file = SimpleUploadedFile("big.zip", data)
    assert client.post(IMPORT, {"file": file}).status_code == 202
    (kept,) = (home / "transfers").iterdir()
    assert kept.read_bytes() == data


def test_session_needs_its_csrf_token(alice: User):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert error_of(send(client, packed(FILES)))[:2] == (403, "csrf_failed")
    client.get("/notes/transfers/")
    token = client.cookies["csrftoken"].value
    sent = send(client, packed(FILES), headers={"X-CSRFToken": token})
    assert sent.status_code == 202
    file = SimpleUploadedFile("a.zip", packed(FILES))
    form = client.post(IMPORT, {"file": file}, headers={"X-CSRFToken": token})
    assert form.status_code == 202


@pytest.mark.parametrize(
    ("data", "query", "options", "expected"),
    [
        (b"", "", {}, (400, "invalid", ["file"])),
        (b"no archive", "", {}, (400, "invalid", ["file"])),
        (packed(FILES), "?folder=/../", {}, (400, "invalid", ["folder"])),
        (packed(FILES), "?folder=%00", {}, (400, "null_character", ["folder"])),
        (packed(FILES), "?overwrite=maybe", {}, (400, "invalid", ["overwrite"])),
        (b"{}", "", {"content_type": "application/json"}, (415, "unsupported_media_type", [])),
        (b"x", "", {"content_type": "multipart/form-data"}, (400, "invalid", [])),
    ],
)
def test_bad_upload_is_named_and_queues_nothing(
    client: Client, home: Path, data: bytes, query: str, options: Any, expected: Any
):
    assert error_of(send(client, data, query, **options)) == expected
    assert not NoteTransfer.objects.exists()
    assert not list(home.glob("transfers/*"))


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=é"])
def test_form_that_cannot_be_read_is_refused_in_words(client: Client, kind: str):
    response = send(client, b"x", content_type=kind)
    assert error_of(response) == (400, "invalid", [])
    assert response.json()["error"]["message"].startswith("The form cannot be read: send")


def test_form_without_a_file_is_named(client: Client):
    assert error_of(client.post(IMPORT, {"folder": "/"})) == (400, "invalid", ["file"])
    assert error_of(client.post(IMPORT, {"file": "text"})) == (400, "invalid", ["file"])


def test_stranger_finds_no_transfer_and_anonymous_finds_nothing(
    alice: User, mallory: User, do_import: Importer
):
    transfer = do_import(alice, FILES)
    stranger = Client()
    stranger.force_login(mallory)
    for path in (f"{TRANSFERS}{transfer.pk}/", f"{TRANSFERS}{transfer.pk}/files/"):
        theirs, missing = (
            stranger.get(path),
            stranger.get(path.replace(str(transfer.pk), str(uuid4()))),
        )
        assert (theirs.status_code, theirs.content) == (404, missing.content)
        assert Client().get(path).status_code == 401
    assert stranger.get(TRANSFERS).json()["results"] == []
    for path in (TRANSFERS, EXPORT):
        assert Client().get(path).status_code == 401
    assert send(Client(), packed(FILES)).status_code == 401


def test_token_needs_the_scope_write_to_import(alice: User):
    for scopes, status in ((["read"], 403), (["write"], 202)):
        _, secret = token_create(owner=alice, name="t", scopes=scopes)
        sent = send(Client(), packed(FILES), headers={"Authorization": f"Bearer {secret}"})
        assert sent.status_code == status


def test_outcome_that_is_none_is_a_400(client: Client, alice: User, do_import: Importer):
    transfer = do_import(alice, FILES)
    response = client.get(f"{TRANSFERS}{transfer.pk}/files/?outcome=odd")
    assert error_of(response) == (400, "invalid", ["outcome"])


def test_export_takes_every_filter_of_the_list(client: Client, alice: User, monkeypatch):
    old = note_create(owner=alice, title="Old", folder="/a/")
    new = note_create(owner=alice, title="New", folder="/a/b/")
    named = Export(owner=alice, updated_before=new.updated).files()
    assert [file.name for file in named] == ["a/Old.md"]

    asked: dict[str, Any] = {}
    monkeypatch.setattr(exporting, "Export", lambda **options: asked.update(options))
    before, after = new.updated, old.updated
    filters = {"folder": "/a/", "subfolders": "true", "tag": "x"}
    times = {"updated_before": before.isoformat(), "updated_after": after.isoformat()}
    client.get(EXPORT, filters | times)
    assert asked.pop("owner") == alice
    assert asked == {
        "folder": "/a/",
        "subfolders": True,
        "tags": ["x"],
        "updated_before": before,
        "updated_after": after,
    }


def test_export_with_a_bad_filter_is_a_400(client: Client):
    assert error_of(client.get(f"{EXPORT}?folder=/../")) == (400, "invalid", ["folder"])
