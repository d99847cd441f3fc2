from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from notes.models import Note
from tests.notes.writing import note_create

LIST = "/admin/notes/note/"


@pytest.fixture
def operator(db: None, client_of: Callable[..., Client]) -> Client:
    return client_of(User.objects.create_superuser("root"))


@pytest.fixture
def note(alice: User) -> Note:
    return note_create(
        owner=alice, title="canary-t", content="canary-c", folder="canary-f", tags=["canary-g"]
    )


def test_operator_sees_metadata_of_notes_and_nothing_written(operator: Client, note: Note) -> None:
    for path in (LIST, f"{LIST}{note.pk}/change/", f"{LIST}{note.pk}/history/"):
        response = operator.get(path)
        assert response.status_code == 200
        assert str(note.pk) in response.text
        assert "canary" not in response.text
    assert "alice" in operator.get(LIST).text


@pytest.mark.parametrize(
    ("query", "found"),
    [("canary", False), ("canary-t", False), ("alice", True), ("ali", False), ("x\x00", False)],
)
def test_operator_finds_notes_by_owner_and_id_only(
    operator: Client, note: Note, query: str, found: bool
) -> None:
    response = operator.get(LIST, {"q": query})
    assert (f"{note.pk}/change" in response.text) is found
    assert f"{note.pk}/change" in operator.get(LIST, {"q": str(note.pk)}).text


@pytest.mark.parametrize(
    "lookup",
    [
        "content__contains=canary",
        "content__startswith=canary",
        "title=canary-t",
        "folder__contains=canary",
        "tags__contains=canary-g",
        "tags_folded__contains=canary-g",
        "revisions__content__startswith=canary",
        "revisions__title=canary-t",
    ],
)
def test_operator_cannot_probe_what_is_written(operator: Client, note: Note, lookup: str) -> None:
    assert operator.get(f"{LIST}?{lookup}").status_code == 400


def test_operator_changes_no_note(operator: Client, note: Note) -> None:
    body = {"title": "new", "content": "new", "owner": note.owner_id, "folder": "/"}
    for path in (f"{LIST}add/", f"{LIST}{note.pk}/change/", f"{LIST}{note.pk}/delete/"):
        assert operator.post(path, body).status_code == 403
    operator.post(LIST, {"action": "delete_selected", "_selected_action": [str(note.pk)]})
    assert Note.objects.get().title == "canary-t"


def test_operator_list_asks_as_often_for_many_notes_as_for_few(
    operator: Client, alice: User, note: Note
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            operator.get(LIST)
        return len(captured)

    few = queries()
    for _ in range(5):
        note_create(owner=alice)
    assert queries() == few


def test_person_who_is_no_operator_is_kept_out(
    client_of: Callable[..., Client], alice: User, note: Note
) -> None:
    for client in (client_of(alice), client_of()):
        assert client.get(LIST).status_code == 302
