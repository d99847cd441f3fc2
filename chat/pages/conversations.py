"""The list of conversations, and what a person does with one: rename, archive, delete.

Owns the pages of the list and its grouping by day. What a change means is for the services of
``transcript.conversations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from chat.models import Conversation, RunStatus
from chat.pages.requests import PageRequest, uuids
from chat.transcript import conversations, selectors
from web.pages import private_page

LISTED = 100
PAGES = 10_000
TITLE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Listed:
    id: UUID
    title: str
    active: bool
    awaiting: bool


@dataclass(frozen=True, slots=True)
class Day:
    name: str
    conversations: list[Listed]


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list. ``older`` and ``newer`` are the queries of the next ones, if any.

    ``query`` is its own, ``has_archive`` whether there is anything in the archive.
    """

    days: list[Day]
    archived: bool
    has_archive: bool
    query: str
    older: str
    newer: str


def listing(*, owner: User, query: QueryDict) -> Listing:
    """The conversations under the day of their last message, or those in the archive."""
    archived = "archived" in query
    page = _page(query)
    rows = selectors.conversation_list(owner=owner, archived=archived)
    found = list(rows[(page - 1) * LISTED : page * LISTED + 1])
    today = timezone.localdate()
    return Listing(
        days=[
            Day(name, [_listed(row) for row in day])
            for name, day in groupby(
                found[:LISTED], lambda row: _day_name(row.updated.date(), today)
            )
        ],
        archived=archived,
        has_archive=archived or selectors.conversation_list(owner=owner, archived=True).exists(),
        query=_query(archived, page),
        older=_query(archived, page + 1) if len(found) > LISTED else "",
        newer=_query(archived, page - 1) if page > 1 else "",
    )


@private_page
@require_safe
def conversations_part(request: PageRequest) -> HttpResponse:
    """The list alone, as the page of the conversation ``at`` shows it."""
    current = next(iter(uuids(request.GET.getlist("at"))), None)
    context = {"listing": listing(owner=request.user, query=request.GET), "current": current}
    return render(request, "chat/conversations.html", context)


@private_page
@require_POST
def rename_view(request: PageRequest, conversation_id: UUID) -> HttpResponse:
    title = " ".join(request.POST.get("title", "").split())
    if not title or "\0" in title or len(title) > TITLE_CHARACTERS:
        messages.error(request, f"Write a title of at most {TITLE_CHARACTERS} characters.")
    else:
        _change(request, conversation_id, title=title)
    return redirect("chat:conversation", conversation_id)


@private_page
@require_POST
def archive_view(request: PageRequest, conversation_id: UUID) -> HttpResponse:
    """Into the archive, or with ``back`` out of it."""
    back = "back" in request.POST
    _change(request, conversation_id, archived=not back)
    messages.success(request, "It is in the list again." if back else "It is in the archive.")
    return redirect("chat:conversation", conversation_id)


@private_page
@require_POST
def delete_view(request: PageRequest, conversation_id: UUID) -> HttpResponse:
    """For good, after the person confirmed it."""
    try:
        conversations.conversation_delete(owner=request.user, conversation_id=conversation_id)
    except Conversation.DoesNotExist:
        raise Http404 from None
    messages.success(request, "The conversation is deleted. What it did to your notes stays.")
    return redirect("chat:home")


def _change(request: PageRequest, conversation_id: UUID, **changes: object) -> None:
    try:
        conversations.conversation_update(
            owner=request.user, conversation_id=conversation_id, changes=changes
        )
    except Conversation.DoesNotExist:
        raise Http404 from None


def _listed(row: Conversation) -> Listed:
    active = getattr(row, "active_runs", ())
    awaiting = any(run.status == RunStatus.AWAITING_APPROVAL for run in active)
    return Listed(row.id, row.title, bool(active), awaiting)


def _day_name(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return "The last 7 days"
    return day.strftime("%B %Y")


def _page(query: QueryDict) -> int:
    """The number in the address, or 1."""
    text = query.get("page", "")
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    return max(1, min(int(text), PAGES)) if is_number else 1


def _query(archived: bool, page: int) -> str:
    """Not empty for the first page either: a link without a query keeps the one that there is."""
    return "&".join([*(["archived"] if archived else []), f"page={page}"])
