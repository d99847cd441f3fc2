"""The chat pages: a conversation with its stream, sending and stopping.

Every page works without JavaScript: sending redirects to the transcript, which refreshes itself
while an answer is written. With it, the page gets JSON and follows the run's stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat.api.following import follow
from chat.api.streaming import session_credential
from chat.exceptions import (
    ChatError,
    ConversationBusyError,
    MessageTooLargeError,
    RunSupersededError,
)
from chat.models import Conversation, Run
from chat.pages.conversations import listing
from chat.pages.requests import PageRequest
from chat.pages.transcript import (
    ShownQuestion,
    run_from_rows,
    run_undo_states,
    transcript,
)
from chat.runs.lifecycle import run_start, run_stop
from chat.transcript.selectors import conversation_get, run_get
from chat.wire.html import HtmlStream
from chat.wire.sse import KEEP_ALIVE
from tools.threads import unit_of_work
from web.errors import ApiError, error_response, wants_json
from web.pages import private_page
from web.streams import EventStreamResponse

STATUSES: dict[type[ChatError], int] = {ConversationBusyError: 409, MessageTooLargeError: 413}


@private_page
@require_http_methods(["GET", "HEAD", "POST"])
def home_page(request: PageRequest) -> HttpResponse:
    """The conversations there are, and a first message that makes another one."""
    if request.method == "POST":
        return _send(request, None)
    return _page(request)


@private_page
@require_http_methods(["GET", "HEAD", "POST"])
def conversation_page(request: PageRequest, conversation_id: UUID) -> HttpResponse:
    """One conversation with its composer."""
    try:
        conversation = conversation_get(owner=request.user, conversation_id=conversation_id)
    except Conversation.DoesNotExist:
        raise Http404 from None
    if request.method == "POST":
        return _send(request, conversation)
    shown = transcript(owner=request.user, conversation=conversation)
    return _page(request, conversation=conversation, transcript=shown)


@private_page
@require_POST
def run_stop_view(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Ask for the end of an answer; one that is over already is no error."""
    try:
        run = run_stop(owner=request.user, run_id=run_id)
    except Run.DoesNotExist:
        raise Http404 from None
    if wants_json(request):
        return JsonResponse({"run": str(run.id)})
    return redirect("chat:conversation", run.conversation_id)


@private_page
@require_POST
def run_again_view(request: PageRequest, run_id: UUID, service: Callable[..., Run]) -> HttpResponse:
    """Go on with an answer that ended early, or answer its message once more."""
    try:
        run = service(owner=request.user, run_id=run_id)
    except (Run.DoesNotExist, Conversation.DoesNotExist):
        raise Http404 from None
    except (ConversationBusyError, RunSupersededError) as error:
        return error_response(request, ApiError(error.code, str(error), 409))
    return _begun(request, run, "")


@private_page
@require_safe
def run_stream_view(request: PageRequest, run_id: UUID) -> HttpResponse:
    """The run as pieces of HTML. A session's stream is for our own pages only."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        message = "This stream is for Notewire's own pages."
        return error_response(request, ApiError("permission_denied", message, 403))
    try:
        run_get(owner=request.user, run_id=run_id)
    except Run.DoesNotExist:
        raise Http404 from None

    owner = request.user
    let_in = session_credential(request.session, user_id=owner.pk)

    async def source(state: Mapping[str, Any]) -> AsyncIterator[bytes]:
        stream = HtmlStream(run_id)
        runtime = state["runtime"]
        async with runtime.guard.serving(let_in), aclosing(follow(runtime, run_id)) as batches:
            async for batch in batches:
                if batch is None:
                    yield KEEP_ALIVE
                    continue
                if stream.shows_undo(batch):
                    stream.undo = await unit_of_work(run_undo_states, owner=owner, run_id=run_id)
                if stream.is_heavy(batch):
                    yield await asyncio.to_thread(stream.encode, batch)
                else:
                    yield stream.encode(batch)

    return EventStreamResponse(source, label=f"page of run {run_id}")


def _send(request: PageRequest, conversation: Conversation | None) -> HttpResponse:
    content = request.POST.get("content", "").replace("\r\n", "\n").strip()
    if not content or "\0" in content:
        message = (
            "Write a message first." if not content else "The character U+0000 is not allowed."
        )
        return _refused(request, conversation, ApiError("invalid", message, 400))
    try:
        run = run_start(
            owner=request.user,
            conversation_id=conversation.id if conversation else None,
            content=content,
        )
    except Conversation.DoesNotExist:
        raise Http404 from None
    except (ConversationBusyError, MessageTooLargeError) as error:
        status = STATUSES[type(error)]
        return _refused(request, conversation, ApiError(error.code, str(error), status))
    question = ShownQuestion(run.message_id, content)
    return _begun(request, run, render_to_string("chat/question.html", {"entry": question}))


def _begun(request: PageRequest, run: Run, question: str) -> HttpResponse:
    """What a page needs to show a run that was just queued, and to follow it."""
    url = reverse("chat:conversation", args=[run.conversation_id])
    if not wants_json(request):
        return redirect(url)
    html = question + run_from_rows(run, (), (), {}).html()
    return JsonResponse({"run": str(run.id), "url": url, "html": html})


def _refused(
    request: PageRequest, conversation: Conversation | None, error: ApiError
) -> HttpResponse:
    """Say what is wrong; what the person wrote stays where it was."""
    if wants_json(request):
        return error_response(request, error)
    messages.error(request, error.message)
    shown = transcript(owner=request.user, conversation=conversation) if conversation else None
    return _page(
        request,
        status=error.status_code,
        conversation=conversation,
        transcript=shown,
        draft=request.POST.get("content", ""),
    )


def _page(
    request: PageRequest,
    *,
    status: int = 200,
    conversation: Conversation | None = None,
    **context: Any,
) -> HttpResponse:
    context |= {
        "conversation": conversation,
        "current": conversation.id if conversation else None,
        "listing": listing(owner=request.user, query=request.GET),
    }
    return render(request, "chat/page.html", context, status=status)
