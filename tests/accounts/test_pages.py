"""Log in and log out."""

import pytest

from accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return User.objects.create_user("ada", password="analytical engine")


def log_in(client, query="", **changes):
    data = {"username": "ada", "password": "analytical engine"} | changes
    return client.post(f"/login/{query}", data)


def test_log_in_leads_to_the_start_page(client, ada):
    assert client.get("/login/").status_code == 200
    response = log_in(client)
    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_log_in_leads_to_where_the_person_wanted_to_go(client, ada):
    assert log_in(client, "?next=/notes/")["Location"] == "/notes/"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_log_in_never_leads_to_another_site(client, ada, target):
    assert log_in(client, f"?next={target}")["Location"] == "/"


def test_wrong_password_is_said_in_words(client, ada):
    response = log_in(client, password="wrong")
    assert response.status_code == 200
    assert "correct username and password" in response.text


def test_deactivated_user_cannot_log_in_and_an_open_session_ends(client, ada):
    log_in(client)
    assert client.get("/api/account/").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/api/account/").status_code == 401
    client.logout()
    assert log_in(client).status_code == 200


def test_changed_password_ends_other_sessions(client, ada):
    log_in(client)
    ada.set_password("difference engine")
    ada.save()
    assert client.get("/api/account/").status_code == 401


def test_person_who_is_logged_in_is_sent_on(client, ada):
    client.force_login(ada)
    assert client.get("/login/")["Location"] == "/"


def test_log_out_is_a_post(client, ada):
    client.force_login(ada)
    assert client.get("/logout/").status_code == 405
    assert "_auth_user_id" in client.session
    assert client.post("/logout/")["Location"] == "/login/"
    assert "_auth_user_id" not in client.session


def test_log_in_page_says_what_to_do_while_nobody_has_an_account(client):
    assert "There is no account yet" in client.get("/login/").text
    User.objects.create_user("ada")
    assert "There is no account yet" not in client.get("/login/").text
