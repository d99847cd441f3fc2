"""What an operation takes, and that it says all that is wrong at once."""

import io

import pytest
from django.test import Client
from rest_framework.request import Request

from accounts.models import User
from web.errors import MAX_FIELDS, MAX_MESSAGE, MAX_NAME
from web.fields import ExactTextField
from web.handler import StreamHandler
from web.negotiation import OneFormat
from web.parsers import BoundedJSONParser

NO_FIELD = ["There is no such field."]


@pytest.fixture
def api(db, settings):
    settings.ROOT_URLCONF = "tests.web.urls"
    client = Client()
    client.force_login(User.objects.create_user("ada"))
    return client


def post(api, body, path="/api/echo/"):
    return api.post(path, body, content_type="application/json")


def fields_of(response):
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "invalid"
    return error["fields"]


def test_all_that_is_wrong_with_a_body_is_told_at_once(api):
    body = {"titel": "x", "plain": [], "tags": ["far too long"], "inner": [{"count": 1, "n": 2}]}
    fields = fields_of(post(api, body))
    assert set(fields) == {"titel", "title", "plain", "tags.0", "inner.0.n"}
    assert fields["titel"] == fields["inner.0.n"] == NO_FIELD


def test_unknown_field_alone_is_refused(api):
    assert fields_of(post(api, {"title": "x", "Title": "x"})) == {"Title": NO_FIELD}
    for name, told in (("", '""'), ("non_field_errors", None), ("__all__", None)):
        assert fields_of(post(api, {"title": "x", name: "x"})) == {told or name: NO_FIELD}


def test_names_are_told_only_so_far(api):
    fields = fields_of(post(api, {f"{number:04}" + "x" * 1000: 1 for number in range(300)}))
    assert len(fields) == MAX_FIELDS
    assert {len(name) for name in fields} == {MAX_NAME}


def test_messages_are_told_only_so_far(api):
    (message,) = fields_of(post(api, {"title": "x", "word": "x" * 5000}))["word"]
    assert len(message) == MAX_MESSAGE


def test_body_of_an_operation_that_takes_none_is_refused_by_field(api):
    assert fields_of(post(api, {"force": True}, "/api/idle/")) == {"force": NO_FIELD}
    assert post(api, {}, "/api/idle/").status_code == 200
    assert api.generic("POST", "/api/idle/").status_code == 200
    assert api.generic("POST", "/api/idle/", b"{", "application/json").status_code == 400


def test_empty_form_is_no_body(api):
    path = "/api/idle/"
    assert api.post(path).status_code == 200
    assert api.post(path, "", content_type="application/x-www-form-urlencoded").status_code == 200
    assert api.generic("POST", path).status_code == 200


def test_query_is_checked_with_all_that_is_wrong_at_once(api):
    assert api.get("/api/echo/?word=a&pieces=1&pieces=2&flag=true").json()["asked"] == {
        "word": "a",
        "pieces": ["1", "2"],
        "flag": True,
        "size": "small",
    }
    fields = fields_of(api.get("/api/echo/?words=a&flag=perhaps&word=a&word=b&limit=1"))
    assert set(fields) == {"words", "flag", "word", "limit"}
    known = "There is no such parameter: there are flag, pieces, size, word."
    assert fields["words"] == fields["limit"] == [known]
    assert fields["word"] == ["Give this once."]


def test_word_that_is_none_of_a_few_is_told_what_they_are(api):
    fields = fields_of(api.get("/api/echo/?size=" + "x" * 3000))
    assert fields == {"size": ["Give one of: small, large."]}


def test_query_of_an_operation_that_takes_none_is_refused_by_name(api):
    for method in ("get", "post", "head"):
        response = getattr(api, method)("/api/idle/?x=1")
        assert response.status_code == 400
    fields = fields_of(api.post("/api/echo/?word=a"))
    assert fields == {"word": ["There is no such parameter: this takes none."]}


def test_wrong_method_is_told_before_its_parameters(api):
    assert api.delete("/api/echo/?x=1").status_code == 405


def test_options_say_what_there_is(api):
    response = api.options("/api/echo/")
    assert (response.status_code, response["Allow"]) == (204, "GET, POST, HEAD, OPTIONS")
    assert response.content == b""


def test_body_costs_little_however_much_is_wrong(api, monkeypatch):
    looked_at = []
    monkeypatch.setattr(ExactTextField, "run_validation", lambda self, data: looked_at.append(data))
    assert set(fields_of(post(api, {"title": "", "tags": [7] * 1000}))) == {"tags"}
    assert len(looked_at) < 10


def test_content_type_that_cannot_be_read_is_none():
    header = (b"content-type", b"application/json; x*=klingon''a")
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
    request, _ = StreamHandler().create_request(scope | {"headers": [header]}, io.BytesIO(b"{}"))
    assert request.content_type == ""


def test_body_that_comes_in_chunks_is_read_as_any_other():
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")],
    }
    request, _ = StreamHandler().create_request(scope, io.BytesIO(b'{"title": "x"}'))
    read = Request(request, parsers=[BoundedJSONParser()], negotiator=OneFormat())
    assert read.data == {"title": "x"}
