"""The answers that are kept so that a repeated request gets the first one's answer."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class IdempotencyKey(models.Model):
    """One answered request: what it asked (as a hash) and what it was answered."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=10)
    path = models.TextField()
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict)
    body = models.TextField()
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["owner", "key", "method", "path"], name="idempotency_key_once"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["created"], name="idempotency_key_created"),
        ]

    def __str__(self) -> str:
        return self.key
