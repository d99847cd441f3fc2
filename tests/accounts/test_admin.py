"""Users and tokens in the admin: metadata, and a way to revoke."""

import pytest

from accounts.models import ApiToken, User
from accounts.services import token_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client_of):
    return client_of(User.objects.create_superuser("root"))


def test_operator_sees_tokens_but_no_digest(operator, user):
    token, secret = token_create(owner=user, name="my script")
    for path in ("/admin/accounts/apitoken/", f"/admin/accounts/apitoken/{token.id}/change/"):
        page = operator.get(path)
        assert page.status_code == 200
        assert "my script" in page.text
        assert token.digest not in page.text
        assert secret not in page.text
    assert operator.get("/admin/accounts/apitoken/add/").status_code == 403
    assert operator.get("/admin/accounts/user/").status_code == 200


def test_operator_revokes_tokens(operator, user):
    token, _ = token_create(owner=user, name="n")
    body = {"action": "revoke", "_selected_action": [str(token.id)]}
    operator.post("/admin/accounts/apitoken/", body)
    assert ApiToken.objects.get().revoked is not None


def test_person_who_is_no_operator_is_kept_out(client_of, user):
    assert client_of(user).get("/admin/accounts/apitoken/").status_code == 302
