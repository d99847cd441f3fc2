"""Level 3: conversations, messages, tool calls, runs, their events and approvals as rows.

Owns the columns, the constraints that hold in any number of processes (one active run per
conversation, one row per call id, one event per seq) and nothing else: who may write what is said
in ``transcript`` and ``runs``.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Conversation(models.Model):
    """The exchange a person returns to; ``leaf`` is the tip of the branch that is shown."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=500, blank=True, default="")
    model = models.CharField(max_length=300, blank=True, default="")
    system_prompt = models.TextField(blank=True, default="")
    leaf = models.ForeignKey(
        "Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    archived = models.BooleanField(default=False)
    ephemeral = models.BooleanField(default=False)
    extra = models.JSONField(default=dict, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-updated", "-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["owner", "-updated", "-id"], name="conversation_owner_updated"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class MessageRole(models.TextChoices):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    NOTE = "note"


class Message(models.Model):
    """One entry of a transcript, in a tree: editing or regenerating makes a sibling.

    ``finish_reason`` is empty while an assistant message is being written. The four token columns
    are disjoint buckets, null where nothing was reported. Tool results are columns of the calls.
    ``created`` is the database's time, as of runs: their order must not be that of hosts' clocks.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    role = models.CharField(max_length=10, choices=MessageRole.choices)
    content = models.TextField(blank=True, default="")
    thinking = models.TextField(blank=True, default="")
    model = models.CharField(max_length=300, blank=True, default="")
    provider = models.CharField(max_length=100, blank=True, default="")
    fresh_input_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    cache_read_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    cache_write_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    output_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    usage_is = models.CharField(max_length=10, blank=True, default="")
    cost = models.DecimalField(max_digits=16, decimal_places=10, null=True, blank=True)
    price_date = models.DateField(null=True, blank=True)
    finish_reason = models.CharField(max_length=20, blank=True, default="")
    stopped = models.BooleanField(default=False)
    provider_details = models.JSONField(default=dict, blank=True)
    run = models.ForeignKey(
        "Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="messages"
    )
    iteration = models.PositiveSmallIntegerField(null=True, blank=True)
    extra = models.JSONField(default=dict, blank=True)
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["created", "id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["conversation", "created"], name="message_conversation_created"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ToolCallStatus(models.TextChoices):
    PENDING = "pending"
    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"
    DENIED = "denied"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class ToolCall(models.Model):
    """A call that a message asked for, and its result: an orphan result cannot be stored.

    ``extra`` holds what the page shows beside it: ``summary`` and ``touched``.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tool_calls"
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="tool_calls"
    )
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="tool_calls")
    position = models.PositiveSmallIntegerField()
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    arguments = models.TextField(blank=True, default="")
    status = models.CharField(
        max_length=20, choices=ToolCallStatus.choices, default=ToolCallStatus.PENDING
    )
    result = models.TextField(blank=True, default="")
    is_error = models.BooleanField(default=False)
    from_outside = models.BooleanField(default=False)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    provider_extra = models.JSONField(default=dict, blank=True)
    extra = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["message", "position"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["conversation", "call_id"], name="tool_call_id_unique_in_conversation"
            ),
            models.UniqueConstraint(fields=["message", "position"], name="tool_call_position"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.call_id}"


class RunStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    FINISHED = "finished"


#: A conversation has at most one run in one of these.
ACTIVE_STATUSES = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.AWAITING_APPROVAL)


class Run(models.Model):
    """One user request carried to its end. Only ``runs/lifecycle`` sets its status.

    ``base`` is the message that its first answer follows where it is not the user's: the last one
    of the run that it continues. ``attempt`` is 0 until an executor begins and rises with each one
    that does: every write of an executor carries ``WHERE attempt = mine``. ``job_id`` is the
    procrastinate job that carries it; ``log_folded`` that its deltas became whole messages.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs"
    )
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    base = models.ForeignKey(
        Message, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    status = models.CharField(max_length=20, choices=RunStatus.choices, default=RunStatus.QUEUED)
    stop_reason = models.CharField(max_length=20, blank=True, default="")
    stop_requested = models.DateTimeField(null=True, blank=True)
    model = models.CharField(max_length=300, blank=True, default="")
    provider = models.CharField(max_length=100, blank=True, default="")
    error_code = models.CharField(max_length=100, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    error_provider = models.CharField(max_length=100, blank=True, default="")
    error_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error_retryable = models.BooleanField(default=False)
    iterations = models.PositiveSmallIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)
    job_id = models.BigIntegerField(null=True, blank=True)
    log_folded = models.BooleanField(default=False, editable=False)
    created = models.DateTimeField(db_default=Now(), editable=False)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created", "-id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=models.Q(status__in=["queued", "running", "awaiting_approval"]),
                name="one_active_run_per_conversation",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["owner", "-created"], name="run_owner_created"),
            models.Index(
                fields=["finished"],
                condition=models.Q(status="finished", log_folded=False),
                name="run_log_to_fold",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_STATUSES


class RunEvent(models.Model):
    """One numbered fact of a run's log. Only ``runs/event_log`` writes these."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    attempt = models.PositiveIntegerField()
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=40)
    data = models.JSONField()
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["run", "attempt", "seq"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "attempt", "seq"], name="run_event_seq"),
        ]

    def __str__(self) -> str:
        return f"{self.attempt}-{self.seq} {self.kind}"


class ApprovalDecision(models.TextChoices):
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


class ApprovalScope(models.TextChoices):
    ONCE = "once"
    CONVERSATION = "conversation"
    ALWAYS = "always"


class Approval(models.Model):
    """A person's decision on one call; ``decision`` is empty while it is awaited.

    ``digest`` is of the tool, the arguments and the target's ``version``: what is approved is that
    and nothing else. ``preview`` is what the person is shown (text, diff, effect, because, scopes).
    ``arguments`` is the text of what they put in the place of the model's, kept exactly as it was
    hashed, ``go_on`` whether a denial lets the model go on.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="approvals"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="approvals")
    call = models.OneToOneField(ToolCall, on_delete=models.CASCADE, related_name="approval")
    digest = models.CharField(max_length=64)
    version = models.CharField(max_length=200, blank=True, default="")
    preview = models.JSONField(default=dict)
    decision = models.CharField(
        max_length=10, choices=ApprovalDecision.choices, blank=True, default=""
    )
    reason = models.TextField(blank=True, default="")
    arguments = models.TextField(null=True, blank=True)  # noqa: DJ001
    go_on = models.BooleanField(default=False)
    scope = models.CharField(
        max_length=12, choices=ApprovalScope.choices, default=ApprovalScope.ONCE
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    via = models.ForeignKey(
        "accounts.ApiToken", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    requested = models.DateTimeField()
    expires = models.DateTimeField()
    decided = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["requested", "id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["owner", "requested", "id"],
                condition=models.Q(decision=""),
                name="approval_pending",
            ),
            models.Index(
                fields=["expires"], condition=models.Q(decision=""), name="approval_expiring"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision or 'pending'} {self.id}"


class ToolRule(models.Model):
    """A person's own word on a tool, for one conversation or (without one) for all.

    ``digest`` is of the tool as it was then: where it is another by now, the rule says nothing.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tool_rules"
    )
    tool = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    decision = models.CharField(max_length=5, choices=[("allow", "allow"), ("ask", "ask")])
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, null=True, blank=True, related_name="tool_rules"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created", "-id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["owner", "tool", "conversation"],
                name="one_tool_rule",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision} {self.tool}"
