"""A repeated request takes effect once: afterwards, at the same time, after a crash, for a day."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from tests.web.urls import OnceView
from web.models import IdempotencyKey

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]


def client_of(user):
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


@pytest.fixture
def ada():
    return User.objects.create_user("ada")


@pytest.fixture
def api(ada):
    return client_of(ada)


def post(api, body, key="k", path="/api/once/"):
    return api.post(
        path, body, content_type="application/json", headers={"Idempotency-Key": key} if key else {}
    )


def test_repeated_request_gets_the_first_answer_and_has_no_effect(api):
    first, again = post(api, {"name": "a", "n": 10**50}), post(api, {"n": 10**50, "name": "a"})
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert Group.objects.count() == 1
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert again["Content-Type"] == "application/json"
    assert (again["ETag"], again["Location"]) == (first["ETag"], first["Location"])


def test_answer_without_a_body_is_repeated_without_one(api):
    for _ in range(2):
        response = api.delete("/api/once/", headers={"Idempotency-Key": "k"})
        assert (response.status_code, response.content) == (204, b"")
    assert Group.objects.count() == 1


def test_requests_without_a_key_are_two(api):
    post(api, {"name": "a"}, key=None)
    post(api, {"name": "a"}, key=None)
    assert Group.objects.count() == 2
    assert not IdempotencyKey.objects.exists()


def test_key_with_another_body_is_refused(api):
    post(api, {"name": "a"})
    response = post(api, {"name": "b"})
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "idempotency_key_reused"
    assert Group.objects.count() == 1


def test_key_belongs_to_its_owner_path_and_method(api):
    post(api, {"name": "a"})
    assert post(client_of(User.objects.create_user("mallory")), {"name": "b"}).status_code == 201
    assert post(api, {"name": "b"}, path="/api/twice/").status_code == 201
    assert api.delete("/api/once/", headers={"Idempotency-Key": "k"}).status_code == 204
    assert Group.objects.count() == 4


@pytest.mark.parametrize("key", ["", "x" * 256, "k\u00e9y", "tab\there"])
def test_key_that_cannot_be_kept_is_refused_by_name(api, key):
    headers = {"Idempotency-Key": key}
    response = api.post(
        "/api/once/", {"name": "a"}, content_type="application/json", headers=headers
    )
    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == ["Idempotency-Key"]
    assert not Group.objects.exists()


@pytest.mark.parametrize("how", ["raised", "returned"])
def test_error_has_no_effect_and_may_be_tried_again(api, how, monkeypatch):
    assert post(api, {"name": "a", "refuse": how}).status_code in (400, 409)
    assert not Group.objects.exists()
    assert post(api, {"name": "a"}).status_code == 201


def test_crash_keeps_neither_effect_nor_answer(api, monkeypatch):
    def crash():
        raise RuntimeError

    monkeypatch.setattr(OnceView, "paused", staticmethod(crash))
    assert post(api, {"name": "a"}).status_code == 500
    assert not Group.objects.exists()
    assert not IdempotencyKey.objects.exists()
    monkeypatch.undo()
    assert post(api, {"name": "a"}).status_code == 201


def test_key_is_forgotten_after_a_day_and_old_ones_are_removed(api):
    for key in ("k", "other"):
        post(api, {"name": "a"}, key=key)
    IdempotencyKey.objects.update(created=timezone.now() - timedelta(hours=23, minutes=59))
    assert "Idempotency-Replayed" in post(api, {"name": "a"})
    IdempotencyKey.objects.update(created=timezone.now() - timedelta(hours=24))
    assert post(api, {"name": "b"}).status_code == 201
    assert Group.objects.count() == 3
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["k"]


@pytest.mark.django_db(transaction=True)
def test_request_in_flight_is_told_apart_from_one_that_never_was(api, ada, monkeypatch):
    inside, go_on = threading.Event(), threading.Event()

    def pause():
        inside.set()
        assert go_on.wait(20)

    def first_request():
        try:
            return post(client_of(ada), {"name": "a"})
        finally:
            connection.close()

    monkeypatch.setattr(OnceView, "paused", staticmethod(pause))
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(first_request)
        assert inside.wait(20)
        meanwhile = post(api, {"name": "a"})
        go_on.set()
        assert first.result(20).status_code == 201
    assert meanwhile.status_code == 409
    assert meanwhile.json()["error"]["code"] == "idempotency_in_progress"
    assert post(api, {"name": "a"}).content == first.result().content


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_many_at_once_take_effect_once(ada):
    clients = [client_of(ada) for _ in range(8)]
    barrier = threading.Barrier(8)

    def request(client):
        try:
            barrier.wait(20)
            return [post(client, {"name": "a"}).status_code for _ in range(4)]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        statuses = {each for answers in threads.map(request, clients) for each in answers}
    assert statuses <= {201, 409}
    assert 201 in statuses
    assert Group.objects.count() == 1
