"""Conversations and runs for operators: metadata only, nothing that anybody wrote.

What a person said, was answered or named a conversation is not shown and not searched; changing and
making rows is left to the doors that hold the rules. Runs can be stopped, and requeued where they
have stalled.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest

from chat.models import Conversation, Run, RunStatus
from chat.runs.lifecycle import run_stop
from chat.runs.operating import run_requeue


class MetadataAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Look at all, change nothing."""

    list_select_related = ("owner",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Conversation)
class ConversationAdmin(MetadataAdmin):
    fields = ("id", "owner", "model", "archived", "ephemeral", "created", "updated")
    list_display = ("id", "owner", "message_count", "model", "archived", "updated")
    list_filter = ("archived", "ephemeral")
    search_fields = ("=id", "owner__username")
    date_hierarchy = "created"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = rows.annotate(number_of_messages=Count("messages"))
        return counted

    @admin.display(description="messages", ordering="number_of_messages")
    def message_count(self, conversation: Any) -> int:
        return int(conversation.number_of_messages)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Deleting one ends its runs first; the admin's cascade would not."""
        return False


@admin.register(Run)
class RunAdmin(MetadataAdmin):
    fields = (
        "id",
        "owner",
        "conversation",
        "status",
        "stop_reason",
        "provider",
        "model",
        "error_code",
        "error_provider",
        "error_status",
        "iterations",
        "attempt",
        "job_id",
        "created",
        "started",
        "finished",
        "stop_requested",
    )
    list_display = (
        "id",
        "owner",
        "status",
        "stop_reason",
        "provider",
        "model",
        "error_code",
        "iterations",
        "attempt",
        "created",
    )
    list_filter = ("status", "stop_reason", "provider")
    search_fields = ("=id", "=conversation__id", "owner__username")
    date_hierarchy = "created"

    actions = ("stop", "requeue")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whoever may change runs may end or requeue them, which is all that can be done here."""
        return bool(request.user.has_perm("chat.change_run"))

    @admin.action(description="Stop the selected runs", permissions=["operate"])
    def stop(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        stopped = 0
        for run in runs.select_related("owner").exclude(status=RunStatus.FINISHED):
            run_stop(owner=run.owner, run_id=run.id)
            self.log_change(request, run, "Stopped.")
            stopped += 1
        self.message_user(request, f"Told {stopped} of {runs.count()} runs to stop.")

    @admin.action(
        description="Requeue the selected runs that have stalled", permissions=["operate"]
    )
    def requeue(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        requeued = [run for run in runs if run_requeue(run_id=run.id)]
        for run in requeued:
            self.log_change(request, run, "Requeued.")
        text = f"Requeued {len(requeued)} of {runs.count()} runs; the others have not stalled."
        self.message_user(request, text)
