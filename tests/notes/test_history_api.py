"""History, restoring and the bin over REST: for the owner, for a stranger, for nobody."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from accounts.services import token_create
from chat.models import Conversation, Message, Run, ToolCall
from notes import services
from notes.authors import Author
from notes.models import Note, NoteRevision
from tests.notes.test_api import Api, error_of, path_of, reread
from tests.notes.writing import note_create, note_delete

BIN = "/api/notes/bin/"


@pytest.fixture
def api(alice: User) -> Api:
    return Api(alice)


@pytest.fixture
def note(alice: User) -> Note:
    """A note with three versions, of which the last changed its title only."""
    note = note_create(owner=alice, title="Plan", content="# Plan\n- milk\n- eggs")
    assistant = Author(kind="assistant", user=alice, via="tool")
    services.note_edit(
        owner=alice, author=assistant, note_id=note.pk, old_text="milk", new_text="oat milk"
    )
    services.note_update(owner=alice, author=assistant, note_id=note.pk, title="Shopping")
    return note


def revisions_of(note: Note) -> list[NoteRevision]:
    return list(NoteRevision.objects.filter(note=note).order_by("version"))


def authors_of(note: Note) -> list[tuple[str, str, str]]:
    return [(each.change, each.author_kind, each.via) for each in revisions_of(note)]


def test_every_method_leaves_a_revision_with_its_author(api: Api, alice: User) -> None:
    made = api("POST", "/api/notes/", {"title": "T"}).json()
    path = f"/api/notes/{made['id']}/"
    api("PUT", path, {"title": "U"})
    _, secret = token_create(owner=alice, name="my script", scopes=["write"])
    by_token = {"Authorization": f"Bearer {secret}"}
    api("PATCH", path, {"title": "V"}, **by_token)
    api("DELETE", path)
    api("POST", f"{path}restore/", **by_token)
    api("POST", f"{path}revisions/1/restore/")
    rows = revisions_of(Note.objects.get())
    assert [each.change for each in rows] == [
        "created",
        "edited",
        "edited",
        "deleted",
        "undeleted",
        "restored",
    ]
    assert {(each.author_kind, each.via, each.user_id) for each in rows} == {
        ("person", "rest", alice.pk)
    }
    assert [each.token_name for each in rows] == ["", "", "my script", "", "my script", ""]
    assert {bool(each.token_id) for each in rows if each.token_name} == {True}


def test_revisions_are_listed_with_their_authors_and_no_contents(
    api: Api, alice: User, note: Note
) -> None:
    page = api("GET", f"{path_of(note)}revisions/").json()
    assert (page["count"], page["next"], page["previous"]) == (3, None, None)
    assert [row["version"] for row in page["results"]] == [3, 2, 1]
    newest, _, first = page["results"]
    assert newest["author"] == {
        "kind": "assistant",
        "user": "alice",
        "via": "tool",
        "token_id": None,
        "token_name": "",
        "run": None,
        "tool_call": None,
        "conversation": None,
        "message": None,
    }
    assert (newest["title"], first["title"], newest["restored_version"]) == (
        "Shopping",
        "Plan",
        None,
    )
    assert "content" not in newest


def test_revision_of_an_assistant_leads_to_its_answer(api: Api, alice: User) -> None:
    conversation = Conversation.objects.create(owner=alice)
    message = Message.objects.create(conversation=conversation, role="assistant")
    run = Run.objects.create(owner=alice, conversation=conversation, message=message)
    call = ToolCall.objects.create(
        owner=alice, conversation=conversation, message=message, position=0, call_id="call_1"
    )
    author = Author(
        kind="assistant",
        user=alice,
        via="tool",
        conversation_id=conversation.pk,
        run_id=run.pk,
        call_id="call_1",
    )
    note = services.note_create(owner=alice, author=author, content="a")
    (row,) = api("GET", f"{path_of(note)}revisions/").json()["results"]
    found = [row["author"][name] for name in ("run", "tool_call", "conversation", "message")]
    assert found == [str(each.pk) for each in (run, call, conversation, message)]


def test_revision_comes_with_its_text_and_what_changed(api: Api, note: Note) -> None:
    second = api("GET", f"{path_of(note)}revisions/2/").json()
    assert second["content"] == "# Plan\n- oat milk\n- eggs"
    assert second["diff"] == {
        "against": 1,
        "fields": [],
        "content": {
            "detail": "words",
            "added": 1,
            "removed": 1,
            "hunks": [
                {
                    "old_start": 1,
                    "new_start": 1,
                    "lines": [
                        {"kind": "same", "text": "# Plan", "marks": []},
                        {"kind": "removed", "text": "- milk", "marks": []},
                        {"kind": "added", "text": "- oat milk", "marks": [[2, 5]]},
                        {"kind": "same", "text": "- eggs", "marks": []},
                    ],
                }
            ],
        },
    }
    third = api("GET", f"{path_of(note)}revisions/3/").json()
    assert third["content"] == second["content"]
    assert third["diff"] == {
        "against": 2,
        "fields": [{"field": "title", "before": "Plan", "after": "Shopping"}],
        "content": {"detail": "words", "added": 0, "removed": 0, "hunks": []},
    }


def test_first_revision_is_compared_with_nothing(api: Api, note: Note) -> None:
    diff = api("GET", f"{path_of(note)}revisions/1/").json()["diff"]
    assert (diff["against"], diff["fields"]) == (None, [])
    assert (diff["content"]["added"], diff["content"]["removed"]) == (3, 0)


def test_revision_is_compared_with_the_one_that_is_asked_for(api: Api, note: Note) -> None:
    diff = api("GET", f"{path_of(note)}revisions/3/?against=1").json()["diff"]
    assert (diff["against"], [each["field"] for each in diff["fields"]]) == (1, ["title"])
    backwards = api("GET", f"{path_of(note)}revisions/1/?against=3").json()["diff"]
    assert (backwards["against"], backwards["content"]["added"]) == (3, 1)


@pytest.mark.parametrize("version", ["4", "0", "9" * 30])
def test_version_that_is_not_kept_is_not_found(api: Api, note: Note, version: str) -> None:
    path = f"{path_of(note)}revisions/{version}/"
    for answer in (api("GET", path), api("POST", f"{path}restore/")):
        assert error_of(answer) == (404, "not_found", [])
    assert reread(note).version == 3


@pytest.mark.parametrize(
    ("query", "status", "fields"),
    [("4", 404, []), ("9" * 30, 404, []), ("x", 400, ["against"]), ("-1", 400, ["against"])],
)
def test_version_to_compare_with_that_is_none_is_refused(
    api: Api, note: Note, query: str, status: int, fields: list[str]
) -> None:
    response = api("GET", f"{path_of(note)}revisions/3/?against={query}")
    assert (response.status_code, list(response.json()["error"]["fields"])) == (status, fields)


def test_restoring_is_a_revision_that_can_be_undone(api: Api, note: Note) -> None:
    restored = api("POST", f"{path_of(note)}revisions/1/restore/")
    assert (restored.status_code, restored["ETag"]) == (200, '"4"')
    assert (restored.json()["title"], restored.json()["content"]) == (
        "Plan",
        "# Plan\n- milk\n- eggs",
    )
    newest = api("GET", f"{path_of(note)}revisions/").json()["results"][0]
    assert (newest["version"], newest["change"], newest["restored_version"]) == (4, "restored", 1)
    api("POST", f"{path_of(note)}revisions/3/restore/")
    after = reread(note)
    assert (after.version, after.title, after.content) == (
        5,
        "Shopping",
        "# Plan\n- oat milk\n- eggs",
    )


def test_restored_tags_are_found_again(api: Api, alice: User) -> None:
    note = note_create(owner=alice, tags=["Water"])
    api("PUT", path_of(note), {"tags": []})
    api("POST", f"{path_of(note)}revisions/1/restore/")
    assert reread(note).tags_folded == ["water"]


def test_restoring_is_done_on_the_version_it_is_asked_of_and_once(api: Api, note: Note) -> None:
    path = f"{path_of(note)}revisions/1/restore/"
    stale = api("POST", path, If_Match='"2"')
    assert error_of(stale) == (412, "note_version_conflict", [])
    assert (stale.json()["error"]["version"], reread(note).version) == (3, 3)
    headers = {"If_Match": '"3"', "Idempotency_Key": "k"}
    answers = [api("POST", path, **headers) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert reread(note).version == 4


def test_deleted_note_is_in_the_bin_and_comes_back(api: Api, note: Note) -> None:
    api("DELETE", path_of(note))
    (row,) = api("GET", BIN).json()["results"]
    assert (row["id"], row["title"], row["preview"][:6]) == (str(note.pk), "Shopping", "# Plan")
    assert row["deleted"] is not None
    gone = api("GET", path_of(note)).json()["error"]
    assert (gone["code"], gone["message"]) == (
        "not_found",
        "The note was deleted: it is in the bin.",
    )
    assert api("GET", f"{path_of(note)}revisions/").status_code == 404

    stale = api("POST", f"{path_of(note)}restore/", If_Match='"3"')
    assert error_of(stale) == (412, "note_version_conflict", [])
    headers = {"If_Match": '"4"', "Idempotency_Key": "k"}
    answers = [api("POST", f"{path_of(note)}restore/", **headers) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0]["ETag"] == answers[1]["ETag"] == '"5"'
    assert api("GET", path_of(note)).json() == answers[0].json()
    assert api("GET", BIN).json()["count"] == 0
    assert [change for change, _, _ in authors_of(note)][3:] == ["deleted", "undeleted"]


def test_restoring_a_note_that_is_not_in_the_bin_changes_nothing(api: Api, note: Note) -> None:
    answer = api("POST", f"{path_of(note)}restore/")
    assert (answer.status_code, answer["ETag"], reread(note).version) == (200, '"3"', 3)


def test_bin_shows_the_last_deleted_first_by_pages(api: Api, alice: User) -> None:
    for number in range(3):
        note_delete(owner=alice, note_id=note_create(owner=alice, title=str(number)).pk)
    page = api("GET", f"{BIN}?limit=2").json()
    assert [row["title"] for row in page["results"]] == ["2", "1"]
    assert [row["title"] for row in api("GET", page["next"]).json()["results"]] == ["0"]


def paths(note_id: object) -> list[tuple[str, str]]:
    path = f"/api/notes/{note_id}/"
    return [
        ("GET", f"{path}revisions/"),
        ("GET", f"{path}revisions/1/"),
        ("GET", f"{path}revisions/2/?against=1"),
        ("POST", f"{path}revisions/1/restore/"),
        ("POST", f"{path}restore/"),
    ]


@pytest.mark.parametrize("deleted", [False, True])
def test_history_of_another_person_and_of_a_missing_note_are_the_same(
    alice: User, mallory: User, note: Note, deleted: bool
) -> None:
    if deleted:
        note_delete(owner=alice, note_id=note.pk)
    version = reread(note).version
    api = Api(mallory)
    for foreign, missing in zip(paths(note.pk), paths(uuid4()), strict=True):
        for headers in ({}, {"If_Match": '"3"'}, {"Idempotency_Key": "k"}):
            answers = [api(*each, **headers) for each in (foreign, missing)]
            assert [error_of(each) for each in answers] == [(404, "not_found", [])] * 2
            assert answers[0].content == answers[1].content
    assert (reread(note).version, reread(note).deleted is not None) == (version, deleted)
    assert Api(mallory)("GET", BIN).json()["count"] == 0


def test_anonymous_requests_are_refused(note: Note) -> None:
    for method, path in [("GET", BIN), *paths(note.pk)]:
        assert error_of(Api()(method, path)) == (401, "not_authenticated", [])
    assert reread(note).version == 3


def test_token_needs_the_scope_of_what_it_does(alice: User, note: Note) -> None:
    def status(scope: str, method: str, path: str) -> int:
        _, secret = token_create(owner=alice, name=scope, scopes=[scope])
        return int(Api()(method, path, Authorization=f"Bearer {secret}").status_code)

    for method, path in [("GET", BIN), *paths(note.pk)]:
        allowed = {"GET": "read", "POST": "write"}[method]
        refused = {"GET": "write", "POST": "read"}[method]
        assert (status(refused, method, path), status(allowed, method, path)) == (403, 200)


def test_reads_ask_as_often_for_many_rows_as_for_few(api: Api, alice: User, note: Note) -> None:
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert api("GET", path).status_code == 200
        return len(captured)

    def add(number: int) -> None:
        conversation = Conversation.objects.create(owner=alice)
        message = Message.objects.create(conversation=conversation, role="assistant")
        run = Run.objects.create(owner=alice, conversation=conversation, message=message)
        author = Author(kind="assistant", user=alice, via="tool", run_id=run.pk)
        services.note_update(owner=alice, author=author, note_id=note.pk, title=str(number))
        note_delete(owner=alice, note_id=note_create(owner=alice).pk)

    asked = [BIN, f"{path_of(note)}revisions/", f"{path_of(note)}revisions/3/"]
    add(0)
    few: list[Any] = [queries(path) for path in asked]
    for number in range(1, 10):
        add(number)
    assert [queries(path) for path in asked] == few
