"""What holds for every request and response: refused addresses, and what caches may keep."""

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]


@pytest.fixture
def api(client, user):
    client.force_login(user)
    return client


@pytest.mark.parametrize("path", ["/login/", "/api/account/", "/api/nothing/", "/api/echo/?q=%00"])
def test_no_cache_keeps_a_response(client, path):
    assert "no-store" in client.get(path)["Cache-Control"]


def test_person_who_logged_out_finds_nothing_in_the_cache(client, user):
    client.force_login(user)
    assert client.get("/api/account/")["Cache-Control"] == "no-store"


def test_response_that_says_otherwise_is_left_alone(client):
    assert client.get("/page/cached/")["Cache-Control"] == "max-age=60"


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("q=%00", "null_character", "q"),
        ("a=1&a=x%00", "null_character", "a"),
        ("%00=1", "null_character", "\N{REPLACEMENT CHARACTER}"),
        ("token=x", "invalid", "token"),
        ("access_token=x", "invalid", "access_token"),
        ("api_key=x", "invalid", "api_key"),
        ("q=nw_" + "A" * 43, "invalid", "q"),
    ],
)
def test_url_with_nul_or_secret_is_refused(api, query, code, field):
    response = api.get(f"/api/echo/?{query}")
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], list(error["fields"])) == (code, [field])


def test_path_with_nul_is_refused(api):
    assert api.get("/api/echo/%00").json()["error"]["code"] == "null_character"


def test_cookie_that_spells_nul_is_refused(client):
    response = client.get("/api/account/", headers={"Cookie": r'sessionid="abcdefghi\000"'})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "null_character"


def test_url_that_only_mentions_the_prefix_is_fine(api):
    assert api.get("/api/echo/?word=nw_ pre").status_code == 200


def test_page_with_a_secret_in_its_url_is_refused(client):
    assert client.get("/login/?x=nw_" + "A" * 43).status_code == 400
