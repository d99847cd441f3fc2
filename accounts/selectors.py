"""Reads of accounts: whose token a secret is, and what tokens a person has."""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.models import ApiToken, User
from accounts.services import secret_digest


def token_find(*, secret: str) -> ApiToken | None:
    """The valid token of an active user that `secret` belongs to, with its owner."""
    tokens = ApiToken.objects.select_related("owner")
    token = tokens.filter(digest=secret_digest(secret), owner__is_active=True).first()
    return token if token is not None and token.is_valid() else None


def token_list(*, owner: User) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(owner=owner)
