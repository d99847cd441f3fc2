"""Forms of the account pages: readable errors, nothing decided here."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import BaseUserCreationForm

from accounts.models import User


class FirstAccountForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """Name and password of the operator; the service creates the account."""

    class Meta:
        model = User
        fields = ("username",)

    def save(self, commit: bool = True) -> Any:
        raise NotImplementedError("accounts.services.first_account_create makes the account.")
