"""The notes pages: requests to services and selectors, their values to templates."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@login_required
def note_list_page(request: HttpRequest) -> HttpResponse:
    """Notes by folder, tag or search."""
    return render(request, "notes/page.html")
