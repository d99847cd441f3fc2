"""The chat pages: requests to services and selectors, their values to templates."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """A new conversation, and the list of those there are."""
    return render(request, "chat/page.html")


@login_required
def conversation_page(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """One conversation."""
    return render(request, "chat/page.html")
