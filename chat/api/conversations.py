"""Conversations over REST: list, make, show, change, delete, and the messages of one."""

from __future__ import annotations

from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.errors import translated
from chat.api.requests import owner_of
from chat.api.serializers import (
    ARCHIVED,
    ConversationFilterSerializer,
    ConversationSerializer,
    MessageSerializer,
)
from chat.transcript import conversations, selectors
from web.views import ApiView, takes

SCOPES = {"POST": "chat", "PATCH": "chat", "DELETE": "chat"}


class ConversationListView(ApiView):
    """The conversations of the one who asks."""

    scopes = SCOPES

    @extend_schema(
        operation_id="conversations_list",
        summary="List conversations, the last active first",
        responses=ConversationSerializer(many=True),
    )
    @takes(query=ConversationFilterSerializer, paged=True)
    def get(self, request: Request) -> Response:
        archived = ARCHIVED[self.asked["archived"]]
        rows = selectors.conversation_list(owner=owner_of(request), archived=archived)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(ConversationSerializer(page, many=True).data)

    @extend_schema(
        operation_id="conversations_create",
        summary="Make an empty conversation",
        responses={201: ConversationSerializer},
    )
    @takes(body=ConversationSerializer)
    def post(self, request: Request) -> Response:
        made = conversations.conversation_create(owner=owner_of(request), **self.sent())
        location = request.build_absolute_uri(reverse("conversation", args=[made.id]))
        shown = ConversationSerializer(made).data
        return Response(shown, status=201, headers={"Location": location})


class ConversationView(ApiView):
    """One conversation."""

    scopes = SCOPES

    @extend_schema(
        operation_id="conversations_retrieve",
        summary="Show a conversation with its active run, if any",
        responses=ConversationSerializer,
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        return self._shown(request, conversation_id)

    @extend_schema(
        operation_id="conversations_update",
        summary="Rename or archive a conversation, or set its model or system prompt",
        responses=ConversationSerializer,
    )
    @takes(body=ConversationSerializer, partial=True)
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        changes = self.sent()
        with translated():
            conversations.conversation_update(
                owner=owner_of(request), conversation_id=conversation_id, changes=changes
            )
        return self._shown(request, conversation_id)

    @extend_schema(
        operation_id="conversations_destroy",
        summary="Delete a conversation with all that belongs to it",
        responses={204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        with translated():
            conversations.conversation_delete(
                owner=owner_of(request), conversation_id=conversation_id
            )
        return Response(status=204)

    def _shown(self, request: Request, conversation_id: UUID) -> Response:
        with translated():
            found = selectors.conversation_get(
                owner=owner_of(request), conversation_id=conversation_id
            )
        return Response(ConversationSerializer(found).data)


class MessageListView(ApiView):
    """The transcript of a conversation."""

    @extend_schema(
        operation_id="conversations_messages_list",
        summary="List the messages of the branch that is shown, the oldest first",
        responses=MessageSerializer(many=True),
    )
    @takes(paged=True)
    def get(self, request: Request, conversation_id: UUID) -> Response:
        with translated():
            rows = selectors.conversation_messages(
                owner=owner_of(request), conversation_id=conversation_id
            )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(MessageSerializer(page, many=True).data)
