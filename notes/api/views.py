"""The REST door to notes: HTTP in, services and selectors, JSON out."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from notes import languages, search, selectors, services
from notes.api import serializers
from notes.api.errors import api_error, version_conflict
from notes.authors import Author
from notes.exceptions import NoteError
from notes.models import Note
from notes.search import Page, SearchFilters
from web.idempotency import idempotent
from web.preconditions import conditional, etag, expected_version
from web.views import ApiView, takes


class NoteAPIView(ApiView):
    """What all views of notes share: whose notes, and how an error is said."""

    serializer_class: Any = serializers.NoteSerializer

    @property
    def owner(self) -> AbstractBaseUser:
        return cast(AbstractBaseUser, self.request.user)

    @property
    def author(self) -> Author:
        return Author.person(self.owner, "rest", token=self.request.auth)

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(api_error(exc) if isinstance(exc, NoteError) else exc)

    def expected_version(self, note_id: UUID, *, binned_too: bool = False) -> int | None:
        """The version that ``If-Match`` asks for, which is the note's."""
        current = selectors.note_version(owner=self.owner, note_id=note_id, binned_too=binned_too)
        return expected_version(self.request, current=current, conflict=version_conflict)


class NoteListView(NoteAPIView):
    @extend_schema(responses=serializers.ListedNoteSerializer(many=True))
    @takes(query=serializers.NoteFilterSerializer, paged=True)
    def get(self, request: Request) -> Response:
        """The notes of a folder, or all, the last changed first, without their contents."""
        asked = self.asked
        notes = selectors.note_list(
            owner=self.owner,
            folder=asked.get("folder"),
            subfolders=asked["subfolders"],
            tags=asked.get("tag", ()),
            updated_after=asked.get("updated_after"),
            updated_before=asked.get("updated_before"),
        )
        page = self.paginate_queryset(notes)
        return self.get_paginated_response(serializers.ListedNoteSerializer(page, many=True).data)

    @extend_schema(responses={201: serializers.NoteSerializer})
    @takes(body=serializers.NoteCreateSerializer)
    @idempotent
    def post(self, request: Request) -> Response:
        """Make a note."""
        sent = self.sent()
        note = services.note_create(
            owner=self.owner,
            author=self.author,
            source_conversation_id=sent.pop("source_conversation", None),
            source_message_id=sent.pop("source_message", None),
            **sent,
        )
        location = reverse("api-note", kwargs={"note_id": note.pk})
        return note_response(note, status=201, Location=location)


class NoteView(NoteAPIView):
    def get(self, request: Request, note_id: UUID) -> Response:
        """One note with its content; the `ETag` is its version."""
        return note_response(selectors.note_get(owner=self.owner, note_id=note_id))

    @takes(body=serializers.NoteUpdateSerializer)
    @conditional
    @idempotent
    def put(self, request: Request, note_id: UUID) -> Response:
        """Change the fields that are sent."""
        return self._change(note_id)

    @takes(body=serializers.NoteUpdateSerializer)
    @conditional
    @idempotent
    def patch(self, request: Request, note_id: UUID) -> Response:
        """The same as PUT."""
        return self._change(note_id)

    @extend_schema(responses={204: None})
    @conditional
    def delete(self, request: Request, note_id: UUID) -> Response:
        """Put the note into the bin."""
        services.note_delete(
            owner=self.owner,
            author=self.author,
            note_id=note_id,
            expected_version=self.expected_version(note_id),
        )
        return Response(status=204)

    def _change(self, note_id: UUID) -> Response:
        sent = self.sent()
        note = services.note_update(
            owner=self.owner,
            author=self.author,
            note_id=note_id,
            expected_version=self.expected_version(note_id),
            **sent,
        )
        return note_response(note)


class NoteSearchView(NoteAPIView):
    @extend_schema(responses=serializers.SearchPageSerializer)
    @takes(query=serializers.SearchQuerySerializer)
    def get(self, request: Request) -> Response:
        """Ranked hits with excerpts; `mode` says what found each."""
        asked = self.asked
        page = search.search(
            owner=self.owner,
            query=asked["q"],
            filters=SearchFilters(
                folder=asked.get("folder"),
                subfolders=asked["subfolders"],
                tags=tuple(asked.get("tag", ())),
                updated_after=asked.get("updated_after"),
                updated_before=asked.get("updated_before"),
            ),
            language=asked["language"],
            typing=asked["typing"],
            page=Page(offset=asked["offset"], limit=asked["limit"]),
        )
        return Response(serializers.SearchPageSerializer(page).data)


class NoteFoldersView(NoteAPIView):
    pagination_class = None

    @extend_schema(responses=serializers.FolderCountSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Every folder that holds notes, with the number right inside it."""
        counts = selectors.folder_counts(owner=self.owner)
        return Response(serializers.FolderCountSerializer(counts, many=True).data)


class NoteTagsView(NoteAPIView):
    pagination_class = None

    @extend_schema(responses=serializers.TagCountSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Every tag, with the number of notes that have it, the most used first."""
        counts = selectors.tag_counts(owner=self.owner)
        return Response(serializers.TagCountSerializer(counts, many=True).data)


class NoteLanguageView(NoteAPIView):
    serializer_class = serializers.LanguageSerializer

    @extend_schema(operation_id="notes_language_retrieve", responses=serializers.LanguageSerializer)
    def get(self, request: Request) -> Response:
        """The language that the owner's notes are in for search."""
        return self._shown()

    @extend_schema(
        operation_id="notes_language_update",
        responses=serializers.LanguageSerializer,
    )
    @takes(body=serializers.LanguageSerializer)
    def put(self, request: Request) -> Response:
        """Choose it: notes without a language of their own are indexed anew."""
        sent = self.sent()
        languages.language_set(owner=self.owner, language=sent["language"])
        return self._shown()

    def _shown(self) -> Response:
        shown = {
            "language": languages.language_of(owner=self.owner),
            "languages": languages.languages_available(),
        }
        return Response(serializers.LanguageSerializer(shown).data)


def note_response(note: Note, *, status: int = 200, **headers: str) -> Response:
    headers["ETag"] = etag(note.version)
    return Response(serializers.NoteSerializer(note).data, status=status, headers=headers)
