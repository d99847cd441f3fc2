"""Who makes an API request: the owner of a token, or of a session with its CSRF token."""

from __future__ import annotations

from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts.models import ApiToken, User
from accounts.selectors import token_find
from accounts.services import token_touch
from web.errors import ApiError


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer nw_…`; another scheme (a proxy's own) is left to who knows it."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token_find(secret=secret.strip())
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked.")
        token_touch(token=token)
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="Notewire"'


class SessionAuthentication(authentication.SessionAuthentication):
    """The browser's session; what lacks the CSRF token is told so with a code of its own."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except PermissionDenied as error:
            raise ApiError("csrf_failed", str(error.detail), 403) from None
