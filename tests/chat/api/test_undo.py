from uuid import uuid4

import pytest

from accounts.services import token_create
from chat.models import ToolCall
from notes.authors import Author
from notes.models import Note, NoteRevision
from notes.services import note_create, note_update

pytestmark = pytest.mark.django_db


@pytest.fixture
def note(user):
    return note_create(owner=user, author=Author.person(user, "page"), title="T", content="a")


@pytest.fixture
def call(user, run, note):
    """A call of the run that changed the note."""
    call = ToolCall.objects.create(
        owner=user,
        conversation=run.conversation,
        message=run.message,
        position=0,
        call_id="call_1",
    )
    author = Author(
        kind="assistant",
        user=user,
        via="tool",
        conversation_id=run.conversation_id,
        run_id=run.id,
        call_id="call_1",
    )
    note_update(owner=user, author=author, note_id=note.id, content="b")
    return call


@pytest.fixture(params=["run", "call"])
def path(request, run, call):
    return f"/api/runs/{run.id}/undo/" if request.param == "run" else call_path(call.id)


def call_path(call_id):
    return f"/api/tool-calls/{call_id}/undo/"


def content(note):
    return Note.objects.get(id=note.id).content


def test_undo_tells_what_went_back_and_again_is_harmless(client_of, user, note, path):
    response = client_of(user).post(path, content_type="application/json")
    assert response.status_code == 200
    assert response.json() == {
        "reverted": [{"id": str(note.id), "title": "T", "version": 3, "in_bin": False}],
        "skipped": [],
        "message": "Undone.",
    }
    assert content(note) == "a"
    assert client_of(user).post(path, content_type="application/json").json() == {
        "reverted": [],
        "skipped": [],
        "message": "There is nothing to undo.",
    }
    assert Note.objects.get(id=note.id).version == 3


def test_undo_names_what_a_person_changed_since(client_of, user, note, path):
    note_update(owner=user, author=Author.person(user, "page"), note_id=note.id, content="c")
    assert client_of(user).post(path, content_type="application/json").json()["skipped"] == [
        {
            "id": str(note.id),
            "title": "T",
            "code": "changed_by_person",
            "reason": "You changed it since.",
        }
    ]
    assert content(note) == "c"


def test_undo_by_a_token_needs_write_and_is_its_revision(client_of, user, note, path):
    read, write = (
        token_create(owner=user, name=scope, scopes=[scope]) for scope in ("chat", "write")
    )
    client = client_of()
    headers = [{"authorization": f"Bearer {secret}"} for _, secret in (read, write)]
    assert client.post(path, content_type="application/json", headers=headers[0]).status_code == 403
    assert content(note) == "b"
    assert client.post(path, content_type="application/json", headers=headers[1]).status_code == 200
    revision = NoteRevision.objects.order_by("-version")[0]
    assert (revision.author_kind, revision.via, revision.token_name) == ("person", "rest", "write")


def test_undo_repeated_with_its_key_answers_the_same(client_of, user, path):
    first, again = (
        client_of(user).post(
            path, headers={"idempotency-key": "k"}, content_type="application/json"
        )
        for _ in range(2)
    )
    assert first.json() == again.json()
    assert again.json()["reverted"]
    assert again["Idempotency-Replayed"] == "true"


def test_undo_is_not_for_strangers_or_nobody(client_of, other_user, note, path):
    stranger = client_of(other_user).post(path, content_type="application/json")
    missing = client_of(other_user).post(call_path(uuid4()), content_type="application/json")
    assert stranger.status_code == missing.status_code == 404
    assert stranger.json() == missing.json()
    assert client_of().post(path, content_type="application/json").status_code == 401
    assert content(note) == "b"
