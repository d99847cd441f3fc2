"""Notes as rows. Who may write what, and how, is said in ``services``."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone

from notes import folders, rules, tags


class OctetLength(Length):
    """The number of bytes of a text, which is what its limit counts."""

    function = "OCTET_LENGTH"


class NoteQuerySet(models.QuerySet["Note"]):
    def owned_by(self, owner: AbstractBaseUser) -> NoteQuerySet:
        """The owner's notes outside the bin: where every read and write begins."""
        return self.filter(owner_id=owner.pk, deleted__isnull=True)

    def in_bin_of(self, owner: AbstractBaseUser) -> NoteQuerySet:
        return self.filter(owner_id=owner.pk, deleted__isnull=False)


class Note(models.Model):
    """A person's note. ``version`` rises by one with each change; ``deleted`` puts it in the bin.

    ``tags_folded`` holds the same tags in the same order as they are compared. ``from_outside``:
    some of its text came from elsewhere (an import, a conversation that was shown such text).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notes"
    )
    title = models.CharField(max_length=rules.MAX_TITLE, blank=True, default="")
    content = models.TextField(blank=True, default="")
    folder = models.CharField(max_length=folders.MAX_LENGTH, default=folders.ROOT)
    tags = ArrayField(models.CharField(max_length=tags.MAX_LENGTH), blank=True, default=list)
    tags_folded = ArrayField(models.TextField(), blank=True, default=list, editable=False)
    language = models.CharField(max_length=30, blank=True, default="")
    source_conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    source_message = models.ForeignKey(
        "chat.Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    from_outside = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    created = models.DateTimeField(default=timezone.now, editable=False)
    updated = models.DateTimeField(default=timezone.now, editable=False)
    deleted = models.DateTimeField(null=True, blank=True)

    objects = NoteQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-updated", "-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["owner", "folder"], name="note_owner_folder"),
            models.Index(fields=["owner", "-updated", "-id"], name="note_owner_updated"),
            GinIndex(fields=["tags_folded"], name="note_tags_folded"),
            models.Index(
                fields=["owner", "-deleted", "-id"],
                condition=models.Q(deleted__isnull=False),
                name="note_bin",
            ),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=LessThanOrEqual(OctetLength("content"), rules.MAX_CONTENT_BYTES),
                name="note_content_size",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


#: The version of a note before it was made: what an undone creation goes back to.
NEVER = 0


class Change(models.TextChoices):
    """What made a revision; ``before`` is the state that the first recorded change found."""

    BEFORE = "before"
    CREATED = "created"
    EDITED = "edited"
    RESTORED = "restored"
    DELETED = "deleted"
    UNDELETED = "undeleted"


class NoteRevision(models.Model):
    """The state of a note at one of its versions, and who made it so. Written by ``recording``.

    ``content`` is null where the next revision has the same, and in the newest one, whose content
    is the note's own: no text is stored twice. ``user`` is null where nobody knows, or the account
    is gone; ``token_id`` and ``token_name`` outlive the token.
    """

    note = models.ForeignKey(
        Note, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    version = models.PositiveIntegerField()
    title = models.CharField(max_length=rules.MAX_TITLE, blank=True)
    content = models.TextField(null=True, blank=True)  # noqa: DJ001  # null is no text: see above
    folder = models.CharField(max_length=folders.MAX_LENGTH)
    tags = ArrayField(models.CharField(max_length=tags.MAX_LENGTH), blank=True)
    language = models.CharField(max_length=30, blank=True)
    change = models.CharField(max_length=10, choices=Change.choices)
    restored_version = models.PositiveIntegerField(null=True, blank=True)
    author_kind = models.CharField(max_length=10, default="person")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    via = models.CharField(max_length=10, blank=True, default="")
    token_id = models.UUIDField(null=True, blank=True)
    token_name = models.CharField(max_length=100, blank=True, default="")
    run = models.ForeignKey(
        "chat.Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    tool_call = models.ForeignKey(
        "chat.ToolCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created = models.DateTimeField()

    class Meta:
        ordering: ClassVar[list[str]] = ["-version"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["note", "version"], name="note_revision_version"),
        ]

    def __str__(self) -> str:
        return f"{self.note_id} {self.version}"


class NoteSearchEntry(models.Model):
    """What search looks at: a note's words, from the character ``start`` of its content on.

    Written by a trigger on notes, by nothing else. ``whole``: it is the note's only entry. A longer
    note has one at 0 for title, tags, folder and ``updated``, which says no more in its others.
    ``pending``: it stands for all from there on, which is still to be indexed; where that failed,
    how often in a row, and when it is due again.
    """

    pk = models.CompositePrimaryKey("note_id", "start")
    note_id = models.UUIDField()
    start = models.IntegerField()
    owner_id = models.BigIntegerField()
    updated = models.DateTimeField()
    language = models.CharField(max_length=30)
    whole = models.BooleanField()
    pending = models.BooleanField()
    failures = models.SmallIntegerField(default=0, db_default=0)
    due = models.DateTimeField(null=True)
    tsv = SearchVectorField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            GinIndex(fields=["tsv"], name="note_search_tsv"),
            models.Index(fields=["owner_id", "-updated", "-note_id"], name="note_search_newest"),
            models.Index(fields=["owner_id", "language"], name="note_search_languages"),
            models.Index(
                fields=["owner_id"], condition=models.Q(whole=False), name="note_search_parts"
            ),
            models.Index(
                fields=["note_id"], condition=models.Q(pending=True), name="note_search_pending"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.note_id} from {self.start}"


class NoteSeen(models.Model):
    """How much of which version of a note a conversation has read or written, from its start.

    ``whole`` is what lets a model replace a text: it cannot lose what it never saw.
    """

    conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.CASCADE, related_name="+"
    )
    note = models.ForeignKey(Note, on_delete=models.CASCADE, related_name="+")
    version = models.PositiveIntegerField()
    seen_to = models.PositiveIntegerField(default=0)
    whole = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["conversation", "note"], name="note_seen_once"),
        ]

    def __str__(self) -> str:
        return f"{self.note_id} {self.version}"


class TransferStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


class FileOutcome(models.TextChoices):
    """What became of a file. ``kept``: note and file both changed, and the note stays as it is."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    SKIPPED = "skipped"
    REFUSED = "refused"


class NoteTransfer(models.Model):
    """An import under way or done. ``position`` of ``total`` entries are settled for good.

    ``file`` is the random name under which the upload waits; empty once it is gone.
    ``trusted``: its owner vouches for what it brings.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(max_length=200, blank=True, default="")
    file = models.CharField(max_length=60, blank=True, default="")
    folder = models.CharField(max_length=folders.MAX_LENGTH, default=folders.ROOT)
    overwrite = models.BooleanField(default=False)
    trusted = models.BooleanField(default=False)
    status = models.CharField(max_length=10, choices=TransferStatus, default=TransferStatus.QUEUED)
    error = models.TextField(blank=True, default="")
    total = models.PositiveIntegerField(default=0)
    position = models.PositiveIntegerField(default=0)
    files_created = models.PositiveIntegerField(default=0)
    files_updated = models.PositiveIntegerField(default=0)
    files_unchanged = models.PositiveIntegerField(default=0)
    files_kept = models.PositiveIntegerField(default=0)
    files_skipped = models.PositiveIntegerField(default=0)
    files_refused = models.PositiveIntegerField(default=0)
    created = models.DateTimeField(default=timezone.now, editable=False)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created", "-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["owner", "-created", "-id"], name="note_transfer_owner"),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_active(self) -> bool:
        return self.status in (TransferStatus.QUEUED, TransferStatus.RUNNING)

    @property
    def files_taken(self) -> int:
        """Files whose notes are here as the files have them."""
        return self.files_created + self.files_updated + self.files_unchanged


class NoteTransferFile(models.Model):
    """What became of one file of an import, and why."""

    transfer = models.ForeignKey(
        NoteTransfer, on_delete=models.CASCADE, related_name="files", db_index=False
    )
    position = models.PositiveIntegerField()
    path = models.TextField()
    outcome = models.CharField(max_length=10, choices=FileOutcome)
    reason = models.TextField(blank=True, default="")
    note = models.ForeignKey(
        Note, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["position"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["transfer", "position"], name="note_transfer_file_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.transfer_id} {self.position}"


class NoteOrigin(models.Model):
    """Which note a file became, so that importing it again finds the same one.

    ``key`` is a hash of what tells the file from others, ``digest`` one of its bytes as they were,
    ``version`` the note's after it took them: a higher one was changed here since.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.BinaryField(max_length=16)
    note = models.ForeignKey(Note, on_delete=models.CASCADE, related_name="+")
    digest = models.BinaryField(max_length=16)
    version = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["owner", "key"], name="note_origin_once"),
        ]

    def __str__(self) -> str:
        return str(self.note_id)
