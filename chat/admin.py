"""Conversations and runs for operators: metadata only, nothing that anybody wrote.

What a person said, was answered or named a conversation is not shown and not searched; changing and
making rows is left to the doors that hold the rules.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest

from chat.models import Conversation, Run


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

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
