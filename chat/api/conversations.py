"""Conversations over REST: list, make, show, change, delete, and the messages of one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.api.errors import translated
from chat.api.requests import owner_of
from chat.api.serializers import ConversationSerializer, MessageSerializer
from chat.models import Conversation, Message
from chat.transcript import conversations, selectors
from web.errors import invalid

SCOPES = {"POST": "chat", "PATCH": "chat", "DELETE": "chat"}
_ARCHIVED = {"false": False, "true": True, "all": None}


class ConversationListView(generics.GenericAPIView[Conversation]):
    """The conversations of the one who asks."""

    scopes = SCOPES
    serializer_class = ConversationSerializer

    def get_queryset(self) -> QuerySet[Conversation]:
        wanted = self.request.query_params.get("archived", "false")
        if wanted not in _ARCHIVED:
            raise invalid("Give true, false or all.", field="archived")
        return selectors.conversation_list(owner=owner_of(self.request), archived=_ARCHIVED[wanted])

    @extend_schema(
        operation_id="conversations_list",
        summary="List conversations, the last active first",
        parameters=[
            OpenApiParameter(
                "archived",
                enum=list(_ARCHIVED),
                default="false",
                description="Which to list: those in use, the archived ones, or all.",
            )
        ],
        responses=ConversationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="conversations_create",
        summary="Make an empty conversation",
        responses={201: ConversationSerializer},
    )
    def post(self, request: Request) -> Response:
        asked = ConversationSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = conversations.conversation_create(owner=owner_of(request), **asked.validated_data)
        location = request.build_absolute_uri(reverse("conversation", args=[made.id]))
        shown = ConversationSerializer(made).data
        return Response(shown, status=201, headers={"Location": location})


class ConversationView(APIView):
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
        request=ConversationSerializer(partial=True),
        responses=ConversationSerializer,
    )
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        asked = ConversationSerializer(data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        changes: dict[str, Any] = asked.validated_data
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


class MessageListView(generics.GenericAPIView[Message]):
    """The transcript of a conversation."""

    serializer_class = MessageSerializer
    queryset = Message.objects.none()

    @extend_schema(
        operation_id="conversations_messages_list",
        summary="List the messages of the branch that is shown, the oldest first",
        responses=MessageSerializer(many=True),
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        with translated():
            rows = selectors.conversation_messages(
                owner=owner_of(request), conversation_id=conversation_id
            )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
