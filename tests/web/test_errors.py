"""Every error, whoever raised it, is the one envelope under /api and /v1, a page elsewhere."""

import pytest
from django.test import Client

from accounts.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]


@pytest.fixture
def person() -> User:
    return User.objects.create_user("ada", password="a long secret")


@pytest.fixture
def api(person):
    client = Client(raise_request_exception=False)
    client.force_login(person)
    return client


@pytest.mark.parametrize(
    ("name", "status", "code", "message", "fields"),
    [
        ("api-error", 418, "teapot", "Short.", {"spout": ["Stout."]}),
        ("http404", 404, "not_found", "Not found.", {}),
        ("denied", 403, "permission_denied", "You may not do this.", {}),
        ("drf-denied", 403, "permission_denied", "Not yours.", {}),
        ("parse", 400, "invalid", "Odd.", {}),
        ("django-invalid", 400, "invalid", "title: Too odd.", {"title": ["Too odd."]}),
        ("django-whole", 400, "invalid", "Odd as a whole.", {}),
        ("too-big", 413, "body_too_large", "The request body is too large.", {}),
        ("suspicious", 400, "invalid", "The request is not valid.", {}),
        (
            "host",
            400,
            "invalid",
            "This server is not known by this name.",
            {"Host": ["This server is not known by this name."]},
        ),
        ("files", 400, "invalid", "The form holds too many files.", {}),
        ("fields", 400, "invalid", "The form or the query holds too many fields.", {}),
    ],
)
def test_error_is_the_envelope_whoever_raised_it(api, name, status, code, message, fields):
    response = api.get(f"/api/raise/{name}/")
    assert response.status_code == status
    assert response["Content-Type"].startswith("application/json")
    error = response.json()["error"]
    assert (error["code"], error["message"], error["fields"]) == (code, message, fields)


def test_error_carries_its_extra_keys_beside_the_code(api):
    assert api.get("/api/raise/api-error/").json()["error"]["run"] == "1"


def test_throttled_says_when_to_come_back(api):
    response = api.get("/api/raise/throttled/")
    assert (response.status_code, response["Retry-After"]) == (429, "8")
    assert response.json()["error"]["code"] == "throttled"


def test_crash_is_internal_and_keeps_its_cause_in_the_log(api):
    response = api.get("/api/raise/crash/")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert b"cause" not in response.content


@pytest.mark.parametrize("path", ["/api/nothing/", "/api/nothing", "/v1/nothing", "/api"])
def test_missing_path_is_json_under_the_api(client, path):
    response = client.get(path, headers={"Accept": "text/html"})
    assert response.status_code == 404
    assert response.json() == {
        "error": {"code": "not_found", "message": "Not found.", "fields": {}}
    }


def test_missing_page_is_html_for_a_browser_and_json_for_who_asks(client):
    page = client.get("/nothing/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.status_code == 404
    assert page["Content-Type"].startswith("text/html")
    assert "There is nothing here" in page.text
    asked = client.get("/nothing/", headers={"Accept": "application/json"})
    assert asked.json()["error"]["code"] == "not_found"


def test_crash_of_a_page_is_a_page(client):
    client.raise_request_exception = False
    page = client.get("/page/crash/")
    assert page.status_code == 500
    assert "Something went wrong" in page.text
    assert "cause" not in page.text


def test_anonymous_request_is_401_with_the_scheme(client):
    response = client.get("/api/echo/")
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="Notewire"'
    assert response.json()["error"]["code"] == "not_authenticated"


def test_method_that_does_not_exist_is_405_with_those_that_do(api):
    response = api.delete("/api/echo/")
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert response["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_no_accept_header_makes_a_request_fail(api):
    response = api.get("/api/echo/", headers={"Accept": "text/event-stream"})
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"


def test_fields_are_named_by_their_path(api):
    body = {"tags": ["fine", "too long"], "inner": [{"count": 1}, {"count": "x"}]}
    response = api.post("/api/echo/", body, content_type="application/json")
    assert response.status_code == 400
    fields = response.json()["error"]["fields"]
    assert set(fields) == {"title", "tags.1", "inner.1.count"}
    assert fields["title"] == ["This field is required."]


def test_session_without_the_csrf_token_is_refused_with_its_code(person):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    response = client.post("/api/echo/", {"title": "x"}, content_type="application/json")
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "csrf_failed"
    page = client.post("/admin/login/", {"username": "x"})
    assert page.status_code == 403
    assert "out of date" in page.text
    asked = client.post("/admin/login/", headers={"Accept": "application/json"})
    assert asked.json()["error"]["code"] == "csrf_failed"


def test_session_with_the_csrf_token_may_write(person):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    client.cookies["csrftoken"] = "a" * 32
    response = client.post(
        "/api/echo/",
        {"title": "x"},
        content_type="application/json",
        headers={"X-CSRFToken": "a" * 32},
    )
    assert response.status_code == 201


def test_database_that_is_away_is_said_with_when_to_come_back(api):
    response = api.get("/api/raise/outage/")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert response["Content-Type"].startswith("application/json")
    assert response.json()["error"]["code"] == "database_unavailable"
    assert b"lost" not in response.content
