"""Streams of events for any program that listens: of a run, a conversation, a person's things.

Owns who may follow what. How it is followed is ``following``'s, in which format ``streaming``'s.
"""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from chat.api.errors import translated
from chat.api.following import follow, follow_conversation, follow_owner
from chat.api.requests import owner_of
from chat.api.streaming import (
    STREAMED,
    ResumeSerializer,
    events_response,
    last_event_id,
    other_sites_refuse,
    resume_point,
    stream_response,
)
from chat.runs import resume
from chat.transcript.selectors import conversation_get, run_get
from chat.wire import feed
from web.views import ApiView, takes


class RunEventsView(ApiView):
    """The events of a run, for any program that wants to follow it."""

    @extend_schema(
        operation_id="runs_events",
        summary="Follow a run's events, live or after the fact",
        parameters=[last_event_id("<attempt>-<seq>")],
        responses=STREAMED
        | {
            204: OpenApiResponse(description="`done` was seen: nothing follows."),
        },
    )
    @takes(query=ResumeSerializer)
    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        other_sites_refuse(request)
        with translated():
            run = run_get(owner=owner_of(request), run_id=run_id)
        after = resume_point(self)
        if after and resume.is_over(run=run, resume=after):
            return HttpResponse(status=204)  # what makes a browser's EventSource stop asking
        return events_response(
            request, lambda runtime: follow(runtime, run.id, after), label=f"run {run.id}"
        )


class ConversationEventsView(ApiView):
    """The events of all runs of a conversation, those that are still to begin included."""

    @extend_schema(
        operation_id="conversations_events",
        summary="Follow a conversation across its runs, live or after the fact",
        parameters=[last_event_id("<run>.<attempt>-<seq>")],
        responses=STREAMED,
    )
    @takes(query=ResumeSerializer)
    def get(self, request: Request, conversation_id: UUID) -> HttpResponse:
        other_sites_refuse(request)
        with translated():
            conversation = conversation_get(
                owner=owner_of(request), conversation_id=conversation_id
            )
        after = resume_point(self)
        return events_response(
            request,
            lambda runtime: follow_conversation(runtime, conversation.id, after),
            label=f"conversation {conversation.id}",
            full_ids=True,
        )


class OwnerEventsView(ApiView):
    """What changes of all that is yours, on one connection: ids and kinds, never contents."""

    @extend_schema(
        operation_id="events",
        summary="Follow everything of yours: runs, conversations, notes",
        parameters=[last_event_id("<position>")],
        responses=STREAMED,
    )
    @takes(query=ResumeSerializer)
    def get(self, request: Request) -> HttpResponse:
        other_sites_refuse(request)
        owner_id = owner_of(request).pk
        after = resume_point(self)
        return stream_response(
            request,
            lambda runtime: follow_owner(runtime, owner_id, after),
            frames=feed.frames,
            lines=feed.lines,
            label=f"feed of user {owner_id}",
        )
