"""Accounts in the admin: users as Django shows them, tokens by what is told of them."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import ApiToken, User

admin.site.register(User, UserAdmin)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Read and revoke: a token is made by its owner, and nobody sees a secret again."""

    list_display = ("name", "owner", "hint", "scopes", "created", "last_used", "expires", "revoked")
    list_select_related = ("owner",)
    list_filter = ("revoked",)
    search_fields = ("name", "owner__username")
    fields = ("id", *list_display)
    readonly_fields = fields
    actions = ("revoke",)

    @admin.action(description="Revoke the selected tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        revoked = queryset.filter(revoked=None).update(revoked=timezone.now())
        self.message_user(request, f"{revoked} revoked.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
