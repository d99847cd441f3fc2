"""Who is still let in, by what they were let in with."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import HASH_SESSION_KEY, get_user_model
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import ApiToken
from accounts.selectors import Credential, credentials_ended
from accounts.services import token_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(client_of, user) -> Credential:
    kept = client_of(user).session
    return Credential(user.pk, session_key=kept.session_key, password_hash=kept[HASH_SESSION_KEY])


@pytest.fixture
def token(user) -> Credential:
    return Credential(user.pk, token_id=token_create(owner=user, name="t")[0].pk)


def ended(*credentials) -> frozenset[Credential]:
    return credentials_ended(credentials=credentials)


def test_whoever_was_let_in_rightly_stays(session, token):
    assert ended(session, token) == frozenset()


def test_deactivated_user_is_not_let_in_by_anything(user, session, token):
    get_user_model().objects.update(is_active=False)
    assert ended(session, token) == {session, token}


@pytest.mark.parametrize("column", ["revoked", "expires"])
def test_token_that_was_revoked_or_ran_out_is_over(session, token, column):
    ApiToken.objects.update(**{column: timezone.now() - timedelta(seconds=1)})
    assert ended(session, token) == {token}


def test_changed_password_ends_sessions_but_no_tokens(user, session, token):
    user.set_password("another horse")
    user.save()
    assert ended(session, token) == {session}


def test_session_that_was_ended_is_over(session):
    Session.objects.filter(session_key=session.session_key).delete()
    assert ended(session) == {session}


def test_user_who_is_gone_is_not_let_in(user, session):
    get_user_model().objects.all().delete()
    assert ended(session) == {session}
