from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import notes.search.engine
import notes.services
from accounts.models import User
from accounts.services import token_create
from chat.models import Conversation
from notes.models import Note
from notes.rules import MAX_CONTENT_BYTES
from tests.notes.writing import note_create

NOTES = "/api/notes/"
NOBODYS = "00000000-0000-4000-8000-000000000000"
PATHS = [
    NOTES,
    "/api/notes/search/?q=milk",
    "/api/notes/folders/",
    "/api/notes/tags/",
]


class Api:
    """A client of the API that sends and gets JSON."""

    def __init__(self, user: User | None = None) -> None:
        self.client = Client()
        if user is not None:
            self.client.force_login(user)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(
            method,
            path,
            "" if body is None else self.client._encode_json(body, "application/json"),  # type: ignore[attr-defined]
            content_type="application/json",
            headers=names,
        )


@pytest.fixture
def api(alice: User) -> Api:
    return Api(alice)


def path_of(note: Note) -> str:
    return f"{NOTES}{note.pk}/"


def error_of(response: Any) -> tuple[int, str, list[str]]:
    error = response.json()["error"]
    return response.status_code, error["code"], list(error["fields"])


def reread(note: Note) -> Note:
    return Note.objects.get(pk=note.pk)


def test_note_is_made_read_changed_and_deleted(api: Api) -> None:
    sent = {"title": " T ", "content": "a\r\n ", "folder": "a//b", "tags": ["X", "x"]}
    made = api("POST", NOTES, sent | {"language": "german"})
    note = made.json()
    assert made.status_code == 201
    assert (made["ETag"], made["Location"]) == ('"1"', f"{NOTES}{note['id']}/")
    assert (note["title"], note["content"], note["folder"]) == (" T ", "a\r\n ", "/a/b/")
    assert (note["tags"], note["language"], note["version"]) == (["X"], "german", 1)

    read = api("GET", made["Location"])
    assert (read.status_code, read["ETag"], read.json()) == (200, '"1"', note)

    changed = api("PUT", made["Location"], {"tags": ["y"]})
    assert (changed.status_code, changed["ETag"]) == (200, '"2"')
    same = {"title", "content", "folder", "language", "created", "id"}
    assert {name: changed.json()[name] for name in same} == {name: note[name] for name in same}
    assert changed.json()["tags"] == ["y"]

    assert api("PATCH", made["Location"], {"title": "U"}).json()["title"] == "U"
    gone = api("DELETE", made["Location"])
    assert (gone.status_code, gone.content) == (204, b"")
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert error_of(api(method, made["Location"], {})) == (404, "not_found", [])


@pytest.mark.parametrize(
    ("mode", "content"), [("replace", "b"), ("append", "ab"), ("prepend", "ba"), (None, "b")]
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_note_content_is_joined_as_mode_says(
    api: Api, alice: User, method: str, mode: str | None, content: str
) -> None:
    note = note_create(owner=alice, content="a")
    body = {"content": "b"} | ({"mode": mode} if mode else {})
    assert api(method, path_of(note), body).json()["content"] == content


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"title": "a\x00"}, "null_character", "title"),
        ({"content": "a\x00"}, "null_character", "content"),
        ({"folder": "\x00"}, "null_character", "folder"),
        ({"tags": ["fine", "\x00"]}, "null_character", "tags.1"),
        ({"title": "x" * 501}, "invalid", "title"),
        ({"title": None}, "invalid", "title"),
        ({"title": 7}, "invalid", "title"),
        ({"content": ["a"]}, "invalid", "content"),
        ({"folder": "/a/../b"}, "invalid", "folder"),
        ({"folder": "a\\b"}, "invalid", "folder"),
        ({"folder": "/".join("a" * 300)}, "invalid", "folder"),
        ({"tags": "x"}, "invalid", "tags"),
        ({"tags": [str(n) for n in range(5000)]}, "invalid", "tags"),
        ({"tags": ["x" * 101]}, "invalid", "tags"),
        ({"language": "klingon"}, "invalid", "language"),
        ({"titel": "x"}, "invalid", "titel"),
    ],
)
def test_note_with_a_bad_value_is_refused_with_its_field(
    api: Api, alice: User, body: dict[str, Any], code: str, field: str
) -> None:
    note = note_create(owner=alice, title="T")
    for method, path in (("POST", NOTES), ("PUT", path_of(note)), ("PATCH", path_of(note))):
        assert error_of(api(method, path, body)) == (400, code, [field])
    assert Note.objects.count() == 1
    assert reread(note).version == 1


def test_all_that_is_wrong_with_a_note_is_told_at_once(api: Api, mallory: User) -> None:
    hers = Conversation.objects.create(owner=mallory)
    wrong = {
        "title": "x" * 501,
        "folder": "/a/../b",
        "tags": ["x" * 101],
        "language": "klingon",
        "source_conversation": str(hers.pk),
        "source_message": NOBODYS,
        "titel": "",
    }
    response = api("POST", NOTES, wrong | {"content": 7})
    status, code, fields = error_of(response)
    assert (status, code, set(fields)) == (400, "invalid", {*wrong, "content"})


def test_list_with_bad_filters_names_them_all(api: Api) -> None:
    status, code, fields = error_of(
        api("GET", f"{NOTES}?folder=..&tag=%0A&tags=x&subfolders=?&limit=0")
    )
    wrong = {"folder", "tag", "tags", "subfolders", "limit"}
    assert (status, code, set(fields)) == (400, "invalid", wrong)


def test_note_may_be_made_of_nothing_and_sent_back_as_it_was_read(api: Api) -> None:
    made = api("POST", NOTES, {})
    note = made.json()
    assert (made.status_code, note["title"], note["content"], note["folder"]) == (201, "", "", "/")
    again = api("PUT", made["Location"], note | {"title": "T"})
    assert (again.status_code, again.json()["title"], again.json()["version"]) == (200, "T", 2)


def test_note_with_an_unknown_mode_is_refused(api: Api, alice: User) -> None:
    note = note_create(owner=alice)
    response = api("PUT", path_of(note), {"content": "x", "mode": "merge"})
    assert error_of(response) == (400, "invalid", ["mode"])


def test_note_that_would_be_too_large_is_refused_and_stays(api: Api, alice: User) -> None:
    note = note_create(owner=alice, content="x" * MAX_CONTENT_BYTES)
    too_large = (413, "note_too_large", ["content"])
    body = {"title": "no", "content": "x", "mode": "append"}
    assert error_of(api("PUT", path_of(note), body)) == too_large
    assert error_of(api("POST", NOTES, {"content": "x" * (MAX_CONTENT_BYTES + 1)})) == too_large
    assert (reread(note).version, reread(note).title, Note.objects.count()) == (1, "", 1)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("tag", ['"1"', "1", 'W/"1"', '"7", "1"'])
def test_note_is_changed_only_on_the_version_it_is_at(
    api: Api, alice: User, method: str, tag: str
) -> None:
    note = note_create(owner=alice, title="T")
    stale = api(method, path_of(note), {"title": "U"}, If_Match='"7"')
    assert error_of(stale) == (412, "note_version_conflict", [])
    assert stale.json()["error"]["version"] == 1
    assert (reread(note).title, reread(note).deleted) == ("T", None)
    assert api(method, path_of(note), {"title": "U"}, If_Match=tag).status_code in {200, 204}
    after = reread(note)
    assert (after.title == "U") != (after.deleted is not None)


def test_note_append_that_is_repeated_is_not_doubled(api: Api, alice: User) -> None:
    note = note_create(owner=alice, content="a")
    body = {"content": "b", "mode": "append"}
    headers = {"Idempotency_Key": "k", "If_Match": '"1"'}
    answers = [api("PUT", path_of(note), body, **headers) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert reread(note).content == "ab"
    made = [api("POST", NOTES, {"title": "T"}, Idempotency_Key="k").json()["id"] for _ in range(2)]
    assert made[0] == made[1]
    assert Note.objects.count() == 2
    other = api("POST", NOTES, {"title": "U"}, Idempotency_Key="k")
    assert error_of(other) == (422, "idempotency_key_reused", [])


def test_note_source_is_one_of_the_owners_conversations(
    api: Api, alice: User, mallory: User
) -> None:
    own = Conversation.objects.create(owner=alice)
    foreign = Conversation.objects.create(owner=mallory)
    made = api("POST", NOTES, {"source_conversation": str(own.pk)})
    assert made.json()["source_conversation"] == str(own.pk)
    refused = [api("POST", NOTES, {"source_conversation": str(i)}) for i in (foreign.pk, uuid4())]
    assert refused[0].content == refused[1].content
    assert error_of(refused[0]) == (400, "invalid", ["source_conversation"])


def test_list_pages_are_stable_while_notes_are_added(api: Api, alice: User) -> None:
    for number in range(5):
        note_create(owner=alice, title=str(number))
    page = api("GET", f"{NOTES}?limit=2").json()
    assert (page["count"], page["previous"]) == (5, None)
    titles = [note["title"] for note in page["results"]]
    while page["next"]:
        note_create(owner=alice, title="added meanwhile")
        page = api("GET", page["next"]).json()
        titles += [note["title"] for note in page["results"]]
    assert titles == ["4", "3", "2", "1", "0"]


def test_list_shows_the_beginning_and_the_size_of_each_note(api: Api, alice: User) -> None:
    note = note_create(owner=alice, title="T", content="é" * 300, tags=["x"])
    (row,) = api("GET", NOTES).json()["results"]
    assert (row["preview"], row["size"], row["id"]) == ("é" * 200, 600, str(note.pk))
    assert (row["folder"], row["tags"], row["version"]) == ("/", ["x"], 1)
    assert "content" not in row


def test_list_is_filtered_as_asked(api: Api, alice: User) -> None:
    first = note_create(owner=alice, title="1", folder="a", tags=["x", "y"])
    note_create(owner=alice, title="2", folder="a/b", tags=["X"])
    note_create(owner=alice, title="3", folder="ab")
    moment = first.updated.isoformat().replace("+00:00", "Z")
    for query, titles in (
        ("folder=/a/", ["1"]),
        ("folder=a&subfolders=true", ["2", "1"]),
        ("tag=x", ["2", "1"]),
        ("tag=X&tag=Y", ["1"]),
        (f"updated_after={moment}", ["3", "2"]),
        ("folder=%25", []),
    ):
        results = api("GET", f"{NOTES}?{query}").json()["results"]
        assert [note["title"] for note in results] == titles


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("folder=..", "folder"),
        ("tag=%0A", "tag"),
        ("updated_after=yesterday", "updated_after"),
        ("subfolders=perhaps", "subfolders"),
        ("cursor=x", "cursor"),
        ("limit=0", "limit"),
        ("limit=201", "limit"),
    ],
)
def test_list_with_a_bad_filter_says_which(api: Api, query: str, field: str) -> None:
    assert error_of(api("GET", f"{NOTES}?{query}")) == (400, "invalid", [field])


def test_search_gives_hits_with_ranges(api: Api, alice: User) -> None:
    note = note_create(owner=alice, title="Milk", content="<b>milk</b> & eggs", tags=["x"])
    page = api("GET", "/api/notes/search/?q=milk").json()
    (hit,) = page.pop("results")
    assert page == {
        "total": 1,
        "total_is": "exact",
        "windowed": False,
        "facets": {
            "folders": [{"value": "/", "count": 1}],
            "tags": [{"value": "x", "count": 1}],
        },
    }
    assert hit.pop("rank") > 0
    assert hit == {
        "id": str(note.pk),
        "title": "Milk",
        "title_marks": [[0, 4]],
        "folder": "/",
        "tags": ["x"],
        "updated": note.updated.isoformat().replace("+00:00", "Z"),
        "excerpt": "<b>milk</b> & eggs",
        "marks": [[3, 7]],
        "mode": "words",
    }


def test_search_is_narrowed_and_paged_as_asked(api: Api, alice: User) -> None:
    for number in range(3):
        note_create(owner=alice, title=str(number), content="milk", folder="a/b", tags=["x"])
    note_create(owner=alice, title="other", content="milk")
    for query, titles in (
        ("folder=a", ["2", "1", "0"]),
        ("folder=a&subfolders=false", []),
        ("tag=X&limit=2&offset=1", ["1", "0"]),
        ("limit=200", ["other", "2", "1", "0"]),
    ):
        results = api("GET", f"/api/notes/search/?q=milk&{query}").json()["results"]
        assert [hit["title"] for hit in results] == titles


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("", "invalid", "q"),
        ("q=a&offset=1001", "invalid", "offset"),
        ("q=a&limit=0", "invalid", "limit"),
        ("q=a&limit=201", "invalid", "limit"),
        ("q=a&folder=..", "invalid", "folder"),
        ("q=a&language=klingon", "invalid", "language"),
        ("q=a&typing=perhaps", "invalid", "typing"),
        ("q=a%00", "null_character", "q"),
    ],
)
def test_search_with_a_bad_query_says_what_is_wrong(
    api: Api, query: str, code: str, field: str
) -> None:
    assert error_of(api("GET", f"/api/notes/search/?{query}")) == (400, code, [field])


@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=st.text(max_size=40))
def test_search_answers_any_query(api: Api, query: str) -> None:
    response = api.client.get("/api/notes/search/", {"q": query.encode(errors="replace").decode()})
    assert response.status_code in ({400} if "\x00" in query else {200})


def test_search_that_takes_too_long_is_a_clear_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(*_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(notes.search.engine, "TIMEOUT_MS", 20)
    monkeypatch.setattr(notes.search.engine, "_owner", sleep)
    assert error_of(api("GET", "/api/notes/search/?q=a")) == (503, "search_timeout", [])


def test_save_that_takes_too_long_is_a_clear_503(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes.services, "SAVE_TIMEOUT_MS", 1)
    response = api("POST", NOTES, {"content": "every word counts " * 10_000})
    assert error_of(response) == (503, "note_save_timeout", [])
    assert not Note.objects.exists()


def test_folders_and_tags_are_counted(api: Api, alice: User) -> None:
    note_create(owner=alice, folder="a", tags=["Water", "tea"])
    note_create(owner=alice, tags=["water"])
    folders = [{"folder": "/", "count": 1}, {"folder": "/a/", "count": 1}]
    assert api("GET", "/api/notes/folders/").json() == folders
    tags = [{"tag": "Water", "count": 2}, {"tag": "tea", "count": 1}]
    assert api("GET", "/api/notes/tags/").json() == tags


@pytest.mark.parametrize("path", PATHS)
def test_reads_ask_as_often_for_many_notes_as_for_few(api: Api, alice: User, path: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert api("GET", path).status_code == 200
        return len(captured)

    conversation = Conversation.objects.create(owner=alice)
    note_create(owner=alice, content="milk")
    few = queries()
    for number in range(20):
        note_create(
            owner=alice,
            content="milk",
            folder=str(number),
            tags=[str(number)],
            source_conversation_id=conversation.pk,
        )
    assert queries() == few


@pytest.mark.parametrize("path", PATHS)
def test_reads_show_a_stranger_nothing(alice: User, mallory: User, path: str) -> None:
    note_create(owner=alice, title="hers", content="milk", folder="hers", tags=["hers"])
    assert b"hers" in Api(alice)("GET", path).content
    response = Api(mallory)("GET", path)
    assert response.status_code == 200
    assert b"hers" not in response.content
    body = response.json()
    assert body == [] or body.get("count", body.get("total")) == 0


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("headers", [{}, {"If_Match": '"1"'}, {"Idempotency_Key": "k"}])
def test_note_of_another_person_and_a_missing_one_are_the_same(
    alice: User, mallory: User, method: str, headers: dict[str, str]
) -> None:
    note = note_create(owner=alice, title="hers")
    body = {"title": "mine"}
    answers = [
        Api(mallory)(method, f"{NOTES}{note_id}/", body, **headers)
        for note_id in (note.pk, uuid4())
    ]
    assert [error_of(each) for each in answers] == [(404, "not_found", [])] * 2
    assert answers[0].content == answers[1].content
    assert (reread(note).title, reread(note).version, reread(note).deleted) == ("hers", 1, None)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", path) for path in PATHS]
    + [("POST", NOTES)]
    + [(method, f"{NOTES}{NOBODYS}/") for method in ("GET", "PUT", "PATCH", "DELETE")],
)
def test_anonymous_requests_are_refused(db: None, method: str, path: str) -> None:
    assert error_of(Api()(method, path, {})) == (401, "not_authenticated", [])
    assert not Note.objects.exists()


def test_token_needs_the_scope_of_what_it_does(alice: User) -> None:
    note = note_create(owner=alice, title="T")

    def status(scope: str, method: str, path: str) -> int:
        _, secret = token_create(owner=alice, name=scope, scopes=[scope])
        return int(Api()(method, path, {}, Authorization=f"Bearer {secret}").status_code)

    for path in [*PATHS, path_of(note)]:
        assert (status("read", "GET", path), status("write", "GET", path)) == (200, 403)
    assert (status("read", "POST", NOTES), status("write", "POST", NOTES)) == (403, 201)
    for method in ("PUT", "PATCH", "DELETE"):
        assert status("read", method, path_of(note)) == 403
    assert status("write", "DELETE", path_of(note)) == 204


@pytest.mark.parametrize("path", [f"{NOTES}not-an-id/", f"{NOTES}{NOBODYS}/more/"])
def test_paths_that_are_none_answer_in_json(api: Api, path: str) -> None:
    assert error_of(api("GET", path)) == (404, "not_found", [])


def test_methods_that_are_none_answer_in_json(api: Api) -> None:
    assert error_of(api("DELETE", NOTES)) == (405, "method_not_allowed", [])
