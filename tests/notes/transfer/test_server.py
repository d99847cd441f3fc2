"""Import and export against the real server: job, stream, slow readers, limits."""

from __future__ import annotations

import http.client
import io
import json
import time
import zipfile
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from accounts.services import token_create
from notes.transfer import services
from tests.notes.writing import note_create

from .conftest import packed


@pytest.fixture
def api(server):
    """Send a request of Alice's, or of whoever is named; answers status, headers and body."""
    address = urlsplit(server.url)
    secrets: dict[str, str] = {}

    def secret(name: str) -> str:
        if name not in secrets:
            owner, _ = get_user_model().objects.get_or_create(username=name)
            _, secrets[name] = token_create(owner=owner, name="test", scopes=["read", "write"])
        return secrets[name]

    def request(method: str, path: str, body: bytes | None = None, *, by: str = "alice"):
        connection = http.client.HTTPConnection(address.netloc, timeout=20)
        headers = {"Authorization": f"Bearer {secret(by)}", "Content-Type": "application/zip"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, response.headers, data

    return request


def finished(api, location: str) -> Any:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        _, _, body = api("GET", location)
        transfer = json.loads(body)
        if transfer["status"] in ("finished", "failed"):
            return transfer
    raise AssertionError(f"the import did not end: {transfer}")


def test_notes_go_out_of_one_account_and_into_another(api):
    api("GET", "/api/notes/")
    alice = get_user_model().objects.get(username="alice")
    for number in range(120):
        note_create(owner=alice, title=f"N {number}", content="text\n" * number, folder="/a/")
    note_create(owner=alice, title="Other", tags=["Tag"])

    status, headers, archive = api("GET", "/api/notes/export/")
    assert (status, headers["Content-Type"]) == (200, "application/zip")
    assert headers["Content-Disposition"].startswith('attachment; filename="notewire-')
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        assert len(opened.namelist()) == 121
    _, _, some = api("GET", "/api/notes/export?tag=tag")
    with zipfile.ZipFile(io.BytesIO(some)) as opened:
        assert opened.namelist() == ["Other.md"]
    _, _, nothing = api("GET", "/api/notes/export/", by="mallory")
    with zipfile.ZipFile(io.BytesIO(nothing)) as opened:
        assert opened.namelist() == []

    status, headers, _ = api("POST", "/api/notes/import/", archive, by="alice")
    assert status == 202
    assert finished(api, headers["Location"])["files"]["unchanged"] == 121


def test_import_of_an_archive_over_the_cap_is_refused_at_the_edge(api):
    status, _, body = api("POST", "/api/notes/import/", bytes(33 * 1024 * 1024))
    assert (status, json.loads(body)["error"]["code"]) == (413, "body_too_large")


def test_import_says_what_it_refused(api):
    _, headers, _ = api("POST", "/api/notes/import", packed([("../a.md", "x"), ("b.md", "y")]))
    done = finished(api, headers["Location"])
    assert (done["files"]["created"], done["files"]["refused"]) == (1, 1)
    assert done["problems"][0]["path"] == "../a.md"


def test_import_whose_worker_died_is_taken_up(api):
    api("GET", "/api/notes/")
    alice = get_user_model().objects.get(username="alice")
    with transaction.atomic(), connection.cursor() as cursor:
        transfer = services.transfer_create(owner=alice, archive=[packed({"a.md": "x"})])
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat)"
            " VALUES (now() - interval '1 minute') RETURNING id"
        )
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s WHERE task_name = %s",
            [cursor.fetchone()[0], services.IMPORT_TASK],
        )
    assert finished(api, f"/api/notes/transfers/{transfer.pk}/")["files"]["created"] == 1
