"""A request as the middleware leaves it for a logged-in person."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from django.http import HttpRequest

from accounts.models import User


def uuids(texts: Iterable[str]) -> list[UUID]:
    """Those of ``texts`` that are ids."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(UUID(text))
    return found


class PageRequest(HttpRequest):
    user: User
