"""Writes of accounts: API tokens are made, used and revoked here; the first account is made here.

A token never gives what it does not have: see `_grantable`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import DEFAULT_SCOPES, ApiToken, Scope, User
from web.errors import ApiError, invalid, not_found

PREFIX = "nw_"
USE_IS_RECORDED_EVERY = timedelta(minutes=1)
FIRST_ACCOUNT_LOCK = 0x6E77_0001


def secret_digest(secret: str) -> str:
    """What is stored of a secret: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def token_create(
    *,
    owner: User,
    name: str,
    scopes: Collection[str] | None = None,
    expires: datetime | None = None,
    maker: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """A new token and its secret, which is not kept. `maker` is the token that asks for it."""
    grantable = _grantable(maker)
    wanted = [each for each in DEFAULT_SCOPES if each in grantable] if scopes is None else scopes
    _check_request(wanted=wanted, expires=expires, grantable=grantable, maker=maker)
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        owner=owner,
        name=name,
        digest=secret_digest(secret),
        hint=secret[-4:],
        scopes=[each for each in Scope.values if each in wanted],
        expires=expires,
    )
    return token, secret


def _grantable(maker: ApiToken | None) -> frozenset[str]:
    """A person gives any scope; a token what it has, with `admin` all but `approve`."""
    if maker is None:
        return frozenset(Scope.values)
    own = frozenset(maker.scopes)
    return own | (frozenset(Scope.values) - {Scope.APPROVE}) if Scope.ADMIN in own else own


def scopes_checked(scopes: Collection[str]) -> None:
    """Refuse scopes that there are not, and none at all."""
    if unknown := sorted(set(scopes) - set(Scope.values)):
        raise invalid(f"Unknown scope: {', '.join(unknown)}.", field="scopes")
    if not scopes:
        raise invalid("Give at least one scope.", field="scopes")


def expiry_checked(expires: datetime) -> None:
    """Refuse a time that has passed."""
    if expires <= timezone.now():
        raise invalid("This time has passed.", field="expires")


def _check_request(
    *,
    wanted: Collection[str],
    expires: datetime | None,
    grantable: frozenset[str],
    maker: ApiToken | None,
) -> None:
    scopes_checked(wanted)
    if excess := sorted(set(wanted) - grantable):
        message = f"This token may not give the scope {', '.join(excess)}."
        raise ApiError("permission_denied", message, 403, {"scopes": [message]})
    if expires is not None:
        expiry_checked(expires)
    if maker is None or Scope.ADMIN in maker.scopes or maker.expires is None:
        return
    if expires is None or expires > maker.expires:
        message = "A token may not give more time than it has."
        raise ApiError("permission_denied", message, 403, {"expires": [message]})


def token_revoke(*, owner: User, token_id: UUID, revoker: ApiToken | None = None) -> None:
    """End a token for good; again is harmless. Without `admin`, a token ends only itself."""
    token = ApiToken.objects.filter(owner=owner, id=token_id).first()
    if token is None:
        raise not_found()
    if revoker is not None and revoker.id != token.id and Scope.ADMIN not in revoker.scopes:
        raise ApiError("permission_denied", "A token may revoke only itself.", 403)
    ApiToken.objects.filter(id=token.id, revoked=None).update(revoked=timezone.now())


def token_touch(*, token: ApiToken) -> None:
    """Record a use, at most once a minute however many requests there are."""
    now = timezone.now()
    due = now - USE_IS_RECORDED_EVERY
    if token.last_used is None or token.last_used < due:
        unrecorded = Q(last_used=None) | Q(last_used__lt=due)
        ApiToken.objects.filter(unrecorded, id=token.id).update(last_used=now)


def first_account_create(*, username: str, password: str) -> User | None:
    """The operator's account, or None when somebody was first, however close."""
    validate_password(password, User(username=username))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [FIRST_ACCOUNT_LOCK])
        if User.objects.exists():
            return None
        return User.objects.create_superuser(username=username, password=password)
