"""A request as the middleware leaves it for a logged-in person."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.models import User


class PageRequest(HttpRequest):
    user: User
