"""The one-time link that creates the first account.

The link is signed with the secret key, not stored: every process of an installation knows the same
one. It works while there is no user, and never again.
"""

from __future__ import annotations

from django.core.signing import Signer
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from accounts.models import User


def link_path() -> str | None:
    """The path of the page, or None when somebody has an account."""
    return None if User.objects.exists() else reverse("setup", args=[_token()])


def is_open(token: str) -> bool:
    """Whether `token` is the link's and still works."""
    return constant_time_compare(token, _token()) and not User.objects.exists()


def _token() -> str:
    return Signer(salt="accounts.first_account").signature("first account")
