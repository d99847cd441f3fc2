"""What the endpoints read from a request that is no body."""

from __future__ import annotations

from typing import cast

from rest_framework.request import Request

from accounts.models import User


def owner_of(request: Request) -> User:
    """Who asks: permissions have let no anonymous request through."""
    return cast(User, request.user)
