"""Reads of accounts: whose token a secret is, what tokens there are, who is still let in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.models import ApiToken, User
from accounts.services import secret_digest


def token_find(*, secret: str) -> ApiToken | None:
    """The valid token of an active user that `secret` belongs to, with its owner."""
    tokens = ApiToken.objects.select_related("owner")
    token = tokens.filter(digest=secret_digest(secret), owner__is_active=True).first()
    return token if token is not None and token.is_valid() else None


def token_list(*, owner: User) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(owner=owner)


@dataclass(frozen=True, slots=True)
class Credential:
    """By what somebody was let in: a token, or a session with the password of that time."""

    user_id: int
    token_id: UUID | None = None
    session_key: str = ""
    password_hash: str = ""


def credentials_ended(*, credentials: Collection[Credential]) -> frozenset[Credential]:
    """Those that would not be let in any more: revoked, expired, logged out, changed."""
    tokens = ApiToken.objects.select_related("owner").filter(
        id__in=[each.token_id for each in credentials if each.token_id], owner__is_active=True
    )
    valid = {token.id for token in tokens if token.is_valid()}
    users = User.objects.in_bulk([each.user_id for each in credentials])
    keys = [each.session_key for each in credentials if each.session_key]
    sessions = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    live = set(sessions.values_list("session_key", flat=True))

    def is_good(each: Credential) -> bool:
        if each.token_id is not None:
            return each.token_id in valid
        user = users.get(each.user_id)
        if user is None or not user.is_active or each.session_key not in live:
            return False
        return constant_time_compare(user.get_session_auth_hash(), each.password_hash)

    return frozenset(each for each in credentials if not is_good(each))
