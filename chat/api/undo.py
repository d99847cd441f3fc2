"""Taking back over REST what a run or a tool call did to notes. How that goes is `notes.undo`'s."""

from __future__ import annotations

from typing import Any, get_args
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.errors import translated
from chat.api.requests import owner_of
from notes.authors import Author
from notes.undo import Why, call_undo, run_undo
from web.idempotency import idempotent
from web.views import ApiView


class RevertedNoteSerializer(serializers.Serializer[Any]):
    """A note that is what it was before; `in_bin`: it was not there before."""

    id = serializers.UUIDField(source="note_id")
    title = serializers.CharField()
    version = serializers.IntegerField()
    in_bin = serializers.BooleanField()


class SkippedNoteSerializer(serializers.Serializer[Any]):
    """A note that keeps a change, as it was changed since."""

    id = serializers.UUIDField(source="note_id")
    title = serializers.CharField()
    code = serializers.ChoiceField(get_args(Why), source="why")
    reason = serializers.CharField()


class UndoneSerializer(serializers.Serializer[Any]):
    """What went back, the last changed first. Both lists are empty where nothing was to undo."""

    reverted = RevertedNoteSerializer(many=True)
    skipped = SkippedNoteSerializer(many=True)
    message = serializers.CharField()


class RunUndoView(ApiView):
    @extend_schema(
        operation_id="runs_undo",
        summary="Take back everything that a run changed in notes",
        responses=UndoneSerializer,
    )
    @idempotent
    def post(self, request: Request, run_id: UUID) -> Response:
        with translated():
            undone = run_undo(owner=owner_of(request), run_id=run_id, author=_author_of(request))
        return Response(UndoneSerializer(undone).data)


class ToolCallUndoView(ApiView):
    @extend_schema(
        operation_id="tool_calls_undo",
        summary="Take back what a tool call changed in notes",
        responses=UndoneSerializer,
    )
    @idempotent
    def post(self, request: Request, tool_call_id: UUID) -> Response:
        with translated():
            undone = call_undo(
                owner=owner_of(request), tool_call_id=tool_call_id, author=_author_of(request)
            )
        return Response(UndoneSerializer(undone).data)


def _author_of(request: Request) -> Author:
    return Author.person(owner_of(request), "rest", token=request.auth)
