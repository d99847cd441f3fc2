"""Forms of the account pages: readable errors, nothing decided here."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import BaseUserCreationForm
from django.contrib.auth.models import AbstractUser

from accounts.models import User


class FirstAccountForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """Name and password of the operator; the service creates the account."""

    class Meta:
        model = User
        fields = ("username",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, label_suffix="", **kwargs)
        self.fields["username"].help_text = "Letters, digits and @ . + - _"
        self.fields["username"].widget.attrs["autocomplete"] = "username"
        self.fields["password1"].help_text = "At least 8 characters, not a common password."
        self.fields["password2"].label = "The password again"
        self.fields["password2"].help_text = ""

    def focus_on_error(self) -> None:
        """Where to write again; passwords are never shown again, so that is the first of them."""
        if "username" not in self.errors:
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password1"].widget.attrs["autofocus"] = True

    def validate_password_for_user(self, user: AbstractUser, **options: Any) -> None:
        """What is wrong with the password is said where it is written first."""
        super().validate_password_for_user(user, "password1")  # type: ignore[misc]

    def save(self, commit: bool = True) -> Any:
        raise NotImplementedError("accounts.services.first_account_create makes the account.")
