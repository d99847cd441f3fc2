"""Who uses Notewire: users, and the API tokens with which their programs act for them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone


class ApprovalMode(models.TextChoices):
    """How often a person is asked: of every change, or of what cannot be taken back."""

    CAREFUL = "careful"
    BALANCED = "balanced"


class User(AbstractUser):
    """A person (or a service account) with an owner's rights over what they made.

    ``language`` is the one that the person writes in, by its name in PostgreSQL's text search;
    empty where that differs from text to text.
    """

    language = models.CharField(max_length=30, blank=True, default="")

    approval_mode = models.CharField(
        max_length=10, choices=ApprovalMode.choices, default=ApprovalMode.BALANCED
    )


class Scope(models.TextChoices):
    """What a token may do of what its owner may do; `approve` is never given by default."""

    READ = "read"
    WRITE = "write"
    CHAT = "chat"
    APPROVE = "approve"
    ADMIN = "admin"


DEFAULT_SCOPES = (Scope.READ, Scope.WRITE, Scope.CHAT)


class ApiToken(models.Model):
    """A secret with a name. Only its SHA-256 is stored; `hint` is its last four characters."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=4, editable=False)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope.choices))
    created = models.DateTimeField(auto_now_add=True)
    last_used = models.DateTimeField(null=True, blank=True)
    expires = models.DateTimeField(null=True, blank=True)
    revoked = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created", "-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["owner", "-created", "-id"], name="api_token_owner_created"),
        ]

    def __str__(self) -> str:
        return self.name

    def is_valid(self, now: datetime | None = None) -> bool:
        now = now or timezone.now()
        return self.revoked is None and (self.expires is None or self.expires > now)
