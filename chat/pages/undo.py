"""Undo on the chat page: of one step of an answer, or of all that an answer changed.

The lines and the end of the answer then say how it stands. What goes back is `notes.undo`'s.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST

from chat.models import Run, ToolCall
from chat.pages.requests import PageRequest
from chat.pages.transcript import run_from_rows, run_messages, undo_states
from chat.transcript.selectors import run_get
from notes.api.errors import api_error
from notes.authors import Author
from notes.exceptions import NoteError
from notes.undo import Undone, call_undo, run_undo
from web.errors import error_response, wants_json
from web.pages import private_page


@private_page
@require_POST
def run_undo_view(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Take back everything that an answer changed."""
    try:
        run = run_get(owner=request.user, run_id=run_id)
    except Run.DoesNotExist:
        raise Http404 from None
    try:
        undone = run_undo(owner=request.user, run_id=run_id, author=_author_of(request))
    except NoteError as error:
        return error_response(request, api_error(error))
    return _answered(request, run, undone, f"run-{run_id}-end")


@private_page
@require_POST
def call_undo_view(request: PageRequest, message_id: UUID, position: int) -> HttpResponse:
    """Take back what one step of an answer changed."""
    calls = ToolCall.objects.filter(message_id=message_id, position=position, owner=request.user)
    call = calls.select_related("message__run").first()
    if call is None or call.message.run is None:
        raise Http404
    try:
        undone = call_undo(owner=request.user, tool_call_id=call.id, author=_author_of(request))
    except NoteError as error:
        return error_response(request, api_error(error))
    return _answered(request, call.message.run, undone, f"call-{message_id}-{position}")


def _author_of(request: PageRequest) -> Author:
    return Author.person(request.user, "page")


def _answered(request: PageRequest, run: Run, undone: Undone, place: str) -> HttpResponse:
    """What came of it; with a script also the parts of the page that are others now."""
    if not wants_json(request):
        say = messages.warning if undone.skipped else messages.success
        say(request, undone.message)
        return redirect(f"{reverse('chat:conversation', args=[run.conversation_id])}#{place}")
    rows = run_messages(run_id=run.id)
    states = undo_states(owner=request.user, messages=rows)
    shown = run_from_rows(run, rows, (), states)
    html = render_to_string("chat/undone.html", {"run": shown})
    return JsonResponse({"html": html, "message": undone.message, "complete": not undone.skipped})
