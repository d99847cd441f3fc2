"""API tokens over REST: their life, their scopes, and that nobody reaches another's."""

import hashlib
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import ApiToken, Scope, User
from accounts.services import token_create, token_revoke

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(user, client_of):
    return client_of(user)


@pytest.fixture
def bearer():
    def make(secret):
        return Client(headers={"Authorization": f"Bearer {secret}"})

    return make


def create(client, **body):
    return client.post("/api/tokens/", {"name": "n", **body}, content_type="application/json")


def test_account_tells_who_makes_the_request(api, user):
    assert api.get("/api/account/").json() == {
        "id": user.pk,
        "username": "ada",
        "is_staff": False,
    }


def test_token_lives_from_creation_to_revocation(api, bearer, user):
    response = create(api, name="my script")
    assert response.status_code == 201
    made = response.json()
    secret = made["token"]
    assert secret.startswith("nw_")
    assert len(secret) == 46
    assert made["scopes"] == ["read", "write", "chat"]
    assert made["hint"] == secret[-4:]
    assert "no-store" in response["Cache-Control"]
    assert bearer(secret).get("/api/account/").json()["username"] == "ada"
    assert api.delete(f"/api/tokens/{made['id']}/").status_code == 204
    assert api.delete(f"/api/tokens/{made['id']}/").status_code == 204
    refused = bearer(secret).get("/api/account/")
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "not_authenticated"
    assert refused["WWW-Authenticate"].startswith("Bearer")


def test_secret_is_shown_once_and_stored_as_its_hash(api):
    secret = create(api).json()["token"]
    listed = api.get("/api/tokens/")
    assert secret not in listed.text
    assert set(listed.json()["results"][0]) == {
        "id",
        "name",
        "hint",
        "scopes",
        "created",
        "last_used",
        "expires",
        "revoked",
    }
    stored = ApiToken.objects.values().get()
    assert stored["digest"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(stored)


def test_two_secrets_differ(user):
    assert token_create(owner=user, name="a")[1] != token_create(owner=user, name="a")[1]


def test_stranger_sees_and_revokes_nothing(api, other_user, client_of, bearer):
    token = create(api).json()
    stranger = client_of(other_user)
    assert stranger.get("/api/tokens/").json()["results"] == []
    missing = stranger.delete("/api/tokens/00000000-0000-4000-8000-000000000000/")
    foreign = stranger.delete(f"/api/tokens/{token['id']}/")
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content)
    assert foreign.status_code == 404
    assert bearer(token["token"]).get("/api/account/").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/api/account/"),
        ("get", "/api/tokens/"),
        ("post", "/api/tokens/"),
        ("delete", "/api/tokens/00000000-0000-4000-8000-000000000000/"),
    ],
)
def test_anonymous_is_401(client, method, path):
    response = getattr(client, method)(path)
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "x\0"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "everything"]}, "scopes"),
        ({"scopes": "read"}, "scopes"),
        ({"scopes": [["read"]]}, "scopes.0"),
        ({"scopes": ["read"] * 6}, "scopes"),
        ({"expires": "2020-01-01T00:00:00Z"}, "expires"),
        ({"expires": "tomorrow"}, "expires"),
        ({"expires": "9999-12-31T23:59:59-23:00"}, "expires"),
    ],
)
def test_token_that_cannot_be_made_is_refused_by_field(api, body, field):
    response = create(api, **body)
    assert response.status_code == 400
    assert list(response.json()["error"]["fields"]) == [field]
    assert not ApiToken.objects.exists()


def test_all_that_is_wrong_with_a_token_is_told_at_once(api):
    response = create(
        api, name="", scopes=["everything"], expires="2020-01-01T00:00:00Z", scope="read"
    )
    assert set(response.json()["error"]["fields"]) == {"name", "scopes", "expires", "scope"}


def test_repeated_scope_is_one(api):
    assert create(api, scopes=["chat", "read", "chat"]).json()["scopes"] == ["read", "chat"]


def test_expired_token_is_refused(user, bearer):
    token, secret = token_create(
        owner=user, name="n", expires=timezone.now() + timedelta(seconds=60)
    )
    assert bearer(secret).get("/api/account/").status_code == 200
    ApiToken.objects.filter(id=token.id).update(expires=timezone.now())
    assert bearer(secret).get("/api/account/").status_code == 401


def test_token_of_a_deactivated_user_is_refused(user, bearer):
    _, secret = token_create(owner=user, name="n")
    User.objects.update(is_active=False)
    assert bearer(secret).get("/api/account/").status_code == 401


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer x y", "Bearer nw_", "bearer \u00e9", "Bearer nw_" + "A" * 9999],
)
def test_header_that_holds_no_token_is_401(client, header):
    response = client.get("/api/account/", headers={"Authorization": header})
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "not_authenticated"


def test_scheme_of_a_proxy_is_left_alone(api):
    assert api.get("/api/account/", headers={"Authorization": "Basic eDp5"}).status_code == 200


def test_wrong_token_is_refused_beside_a_valid_session(api):
    assert api.get("/api/account/", headers={"Authorization": "Bearer nw_x"}).status_code == 401


def test_use_is_recorded_once_a_minute(user, bearer, django_assert_num_queries):
    token, secret = token_create(owner=user, name="n")
    client = bearer(secret)
    with django_assert_num_queries(2):
        client.get("/api/account/")
    first = ApiToken.objects.get(id=token.id).last_used
    assert first is not None
    with django_assert_num_queries(1):
        client.get("/api/account/")
    assert ApiToken.objects.get(id=token.id).last_used == first
    ApiToken.objects.update(last_used=first - timedelta(seconds=61))
    client.get("/api/account/")
    assert ApiToken.objects.filter(id=token.id, last_used__gte=first).exists()


@pytest.mark.parametrize("scope", Scope.values)
@pytest.mark.parametrize(
    ("method", "needed"), [("GET", "read"), ("HEAD", "read"), ("POST", "write")]
)
def test_token_may_do_what_its_scope_says(user, bearer, scope, method, needed):
    _, secret = token_create(owner=user, name="n", scopes=[scope])
    response = bearer(secret).generic(
        method, "/api/tokens/", b'{"name": ""}' if method == "POST" else b"", "application/json"
    )
    if scope == needed:
        assert response.status_code == (400 if method == "POST" else 200)
        return
    assert response.status_code == 403
    if method != "HEAD":
        error = response.json()["error"]
        assert error["code"] == "permission_denied"
        assert needed in error["message"]


@pytest.mark.parametrize(
    ("own", "asked", "status"),
    [
        (["write"], ["write"], 201),
        (["write"], ["read"], 403),
        (["read", "write"], ["read", "write"], 201),
        (["read", "write", "chat"], ["admin"], 403),
        (["read", "write", "chat"], ["approve"], 403),
        (["write", "admin"], ["read", "write", "chat", "admin"], 201),
        (["write", "admin"], ["approve"], 403),
        (["write", "approve"], ["approve"], 201),
    ],
)
def test_token_gives_no_more_than_it_has(user, bearer, own, asked, status):
    _, secret = token_create(owner=user, name="n", scopes=own)
    response = create(bearer(secret), scopes=asked)
    assert response.status_code == status
    if status == 403:
        assert list(response.json()["error"]["fields"]) == ["scopes"]
        assert ApiToken.objects.count() == 1


def test_default_scopes_are_limited_to_what_the_maker_has(user, bearer):
    _, secret = token_create(owner=user, name="n", scopes=["write", "approve"])
    assert create(bearer(secret)).json()["scopes"] == ["write"]


def test_token_gives_no_more_time_than_it_has(user, bearer):
    ends = timezone.now() + timedelta(hours=1)
    _, secret = token_create(owner=user, name="n", expires=ends)
    client = bearer(secret)
    assert create(client).status_code == 403
    assert create(client, expires=(ends + timedelta(seconds=1)).isoformat()).status_code == 403
    assert create(client, expires=ends.isoformat()).status_code == 201


def test_token_revokes_itself_and_with_admin_others(user, bearer):
    plain, plain_secret = token_create(owner=user, name="plain")
    boss, boss_secret = token_create(owner=user, name="boss", scopes=["write", "admin"])
    assert bearer(plain_secret).delete(f"/api/tokens/{boss.id}/").status_code == 403
    assert bearer(boss_secret).delete(f"/api/tokens/{plain.id}/").status_code == 204
    assert bearer(boss_secret).delete(f"/api/tokens/{boss.id}/").status_code == 204
    assert ApiToken.objects.filter(revoked=None).count() == 0


def test_time_of_revocation_is_the_first(user):
    token, _ = token_create(owner=user, name="n")
    token_revoke(owner=user, token_id=token.id)
    first = ApiToken.objects.get().revoked
    token_revoke(owner=user, token_id=token.id)
    assert ApiToken.objects.get().revoked == first


def test_token_needs_no_csrf_token(user):
    _, secret = token_create(owner=user, name="n")
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"})
    assert create(client).status_code == 201
