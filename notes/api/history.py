"""The REST door to history: revisions of a note, restoring them, and the bin."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from notes import history, selectors, services
from notes.api import revisions
from notes.api.serializers import NoteSerializer
from notes.api.views import NoteAPIView, note_response
from web.idempotency import idempotent
from web.preconditions import conditional
from web.views import takes


class RevisionListView(NoteAPIView):
    @extend_schema(responses=revisions.RevisionSerializer(many=True))
    @takes(paged=True)
    def get(self, request: Request, note_id: UUID) -> Response:
        """What became of a note, the newest first, without contents."""
        found = history.revision_list(owner=self.owner, note_id=note_id)
        page = self.paginate_queryset(found)
        return self.get_paginated_response(revisions.RevisionSerializer(page, many=True).data)


class RevisionView(NoteAPIView):
    pagination_class = None

    @extend_schema(responses=revisions.WholeRevisionSerializer)
    @takes(query=revisions.RevisionQuerySerializer)
    def get(self, request: Request, note_id: UUID, version: int) -> Response:
        """A note as it was at a version, and what changed then."""
        against = self.asked.get("against")
        found = history.revision_compare(
            owner=self.owner, note_id=note_id, version=version, against=against
        )
        return Response(revisions.WholeRevisionSerializer.body(found))


class RevisionRestoreView(NoteAPIView):
    @extend_schema(responses=NoteSerializer)
    @conditional
    @idempotent
    def post(self, request: Request, note_id: UUID, version: int) -> Response:
        """Make the note what it was at a version: a change like any other."""
        note = services.revision_restore(
            owner=self.owner,
            author=self.author,
            note_id=note_id,
            version=version,
            expected_version=self.expected_version(note_id),
        )
        return note_response(note)


class BinView(NoteAPIView):
    @extend_schema(responses=revisions.BinnedNoteSerializer(many=True))
    @takes(paged=True)
    def get(self, request: Request) -> Response:
        """Deleted notes that can still be restored, the last deleted first."""
        page = self.paginate_queryset(selectors.bin_list(owner=self.owner))
        return self.get_paginated_response(revisions.BinnedNoteSerializer(page, many=True).data)


class NoteRestoreView(NoteAPIView):
    @extend_schema(responses=NoteSerializer)
    @conditional
    @idempotent
    def post(self, request: Request, note_id: UUID) -> Response:
        """Take a note out of the bin; one that is not in it stays as it is."""
        note = services.note_restore(
            owner=self.owner,
            author=self.author,
            note_id=note_id,
            expected_version=self.expected_version(note_id, binned_too=True),
        )
        return note_response(note)
