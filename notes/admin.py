"""Notes in the admin: what an operator needs to know of them, and nothing that a person wrote."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from notes.models import Note, OctetLength

#: What a person wrote.
WRITTEN = frozenset({"title", "content", "folder", "tags", "tags_folded", "revisions"})
RELATED = frozenset({"revisions"})


@admin.register(Note)
class NoteAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Read only: titles, contents, folders and tags are neither shown nor searched."""

    list_display = ("id", "owner", "version", "bytes", "created", "updated", "deleted")
    list_select_related = ("owner",)
    list_filter = (("deleted", admin.EmptyFieldListFilter),)
    search_fields = ("=id", "=owner__username")
    ordering = ("-updated", "-id")
    fields = (*list_display, "language", "source_conversation_id", "source_message_id")
    readonly_fields = fields
    show_full_result_count = False

    @admin.display(description="bytes")
    def bytes(self, note: Note) -> int:
        size: int = note.size  # type: ignore[attr-defined]  # annotated below
        return size

    def get_queryset(self, request: HttpRequest) -> QuerySet[Note]:
        notes: QuerySet[Note] = super().get_queryset(request)
        return notes.defer(*WRITTEN - RELATED).annotate(size=OctetLength("content"))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Else `?content__startswith=…` would tell what is in a note, letter by letter."""
        if lookup.partition("__")[0] in WRITTEN:
            return False
        return super().lookup_allowed(lookup, value, request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Note | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Note | None = None) -> bool:
        return False
