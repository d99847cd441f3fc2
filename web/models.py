"""What the doors keep: answers for repeated requests, and the feed of a person's changes."""

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


class OwnerEventKind(models.TextChoices):
    """What may have happened to a thing. These are names of events too: a closed set."""

    RUN_QUEUED = "run_queued"
    RUN_RUNNING = "run_running"
    RUN_AWAITING_APPROVAL = "run_awaiting_approval"
    RUN_FINISHED = "run_finished"
    APPROVAL_OPENED = "approval_opened"
    APPROVAL_CLOSED = "approval_closed"
    CONVERSATION_CREATED = "conversation_created"
    CONVERSATION_CHANGED = "conversation_changed"
    CONVERSATION_DELETED = "conversation_deleted"
    NOTE_CREATED = "note_created"
    NOTE_CHANGED = "note_changed"
    NOTE_DELETED = "note_deleted"
    NOTE_RESTORED = "note_restored"


class OwnerEvent(models.Model):
    """One change of something of a person's. Only ``web.feed`` writes these.

    ``position`` is None until somebody reads: see ``web.feed`` for why.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=40)
    object_id = models.UUIDField()
    parent_id = models.UUIDField(null=True)
    position = models.BigIntegerField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["owner", "position"], name="owner_event_position"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["created"], name="owner_event_created"),
        ]

    def __str__(self) -> str:
        return f"{self.position} {self.kind}"
