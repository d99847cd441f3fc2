"""The first account: a one-time link that works until somebody has an account."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from accounts import first_account
from accounts.models import User
from accounts.services import first_account_create

pytestmark = pytest.mark.django_db

GOOD = {"username": "ada", "password1": "analytical engine", "password2": "analytical engine"}


def test_link_creates_the_operator_and_logs_in(client):
    path = first_account.link_path()
    assert path is not None
    page = client.get(path)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    response = client.post(path, GOOD)
    assert (response.status_code, response["Location"]) == (302, "/")
    user = User.objects.get()
    assert (user.username, user.is_staff, user.is_superuser) == ("ada", True, True)
    assert client.session["_auth_user_id"] == str(user.pk)


def test_link_is_the_same_in_every_process_and_another_with_another_secret(settings):
    assert first_account.link_path() == first_account.link_path()
    before = first_account.link_path()
    settings.SECRET_KEY = "another"
    assert first_account.link_path() != before


def test_link_is_gone_once_there_is_a_user(client):
    path = first_account.link_path()
    User.objects.create_user("ada")
    assert first_account.link_path() is None
    assert client.get(path).status_code == 404
    assert client.post(path, GOOD).status_code == 404
    assert User.objects.count() == 1


@pytest.mark.parametrize("path", ["/setup/wrong/", "/setup/\u00e9/", "/setup/first%20account/"])
def test_wrong_link_is_a_page_that_does_not_exist(client, path):
    assert client.get(path).status_code == 404
    assert client.post(path, GOOD).status_code == 404
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"password1": "short", "password2": "short"}, "password1", "too short"),
        ({"password1": "password", "password2": "password"}, "password1", "too common"),
        ({"password1": "1827364554", "password2": "1827364554"}, "password1", "entirely numeric"),
        ({"password2": "another engine"}, "password2", "didn\u2019t match"),
        ({"username": "ada lovelace!"}, "username", "valid username"),
        ({"username": ""}, "username", "required"),
        ({"username": "ada\0"}, "username", "Null characters"),
        ({"username": "analytical"}, "password1", "too similar"),
    ],
)
def test_what_is_wrong_with_the_form_is_said_at_its_field(client, changes, field, words):
    response = client.post(first_account.link_path(), GOOD | changes)
    assert response.status_code == 200
    assert words in response.text
    assert list(response.context["form"].errors) == [field]
    [focused] = re.findall(r"<input [^>]*autofocus[^>]*>", response.text)
    assert f'name="{"username" if field == "username" else "password1"}"' in focused
    assert not User.objects.exists()


def test_page_needs_the_csrf_token():
    client = Client(enforce_csrf_checks=True)
    assert client.post(str(first_account.link_path()), GOOD).status_code == 403
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_make_one_account():
    barrier = threading.Barrier(4)

    def create(number):
        try:
            barrier.wait(20)
            return first_account_create(username=f"ada{number}", password="analytical engine")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        made = [user for user in threads.map(create, range(4)) if user is not None]
    assert User.objects.count() == len(made) == 1
