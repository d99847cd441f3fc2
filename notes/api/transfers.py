"""The REST door to imports and exports: archives in and out, and how an import goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any, ClassVar
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.urls import reverse
from django.utils.http import parse_header_parameters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from notes.api.serializers import NoteFilterSerializer
from notes.api.views import NoteAPIView
from notes.exceptions import NoteInvalid
from notes.folders import folder_normalised
from notes.models import FileOutcome, NoteTransfer, NoteTransferFile
from notes.transfer import exporting, selectors, services
from tools.threads import unit_of_work
from web.errors import invalid
from web.fields import ExactTextField, OneOfField
from web.parsers import FormParser
from web.serializers import ClosedSerializer, rule
from web.streams import DeferredResponse, State
from web.views import takes

PROBLEMS = 100
_READ = 64 * 1024


class ArchiveParser(BaseParser):
    """A body that is the archive itself: handed on as it is, to be read in parts."""

    media_type = "application/zip"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {"file": stream}


class ZipCompressedParser(ArchiveParser):
    """As Windows calls it."""

    media_type = "application/x-zip-compressed"


class BytesParser(ArchiveParser):
    """As programs call it that do not know."""

    media_type = "application/octet-stream"


class ImportSerializer(ClosedSerializer):
    folder = ExactTextField(
        default="/",
        validators=[rule(folder_normalised, NoteInvalid)],
        help_text="Import into this folder. Files of an own export become copies there.",
    )
    overwrite = serializers.BooleanField(
        default=False, help_text="Replace notes that were changed here since, too."
    )
    name = ExactTextField(default="", help_text="What the archive is called.")


@extend_schema_field(OpenApiTypes.BINARY)
class _ArchiveField(serializers.Field[Any, Any, Any, Any]):
    """A file of a form, or the body itself."""

    def to_internal_value(self, data: Any) -> Any:
        if not hasattr(data, "read"):
            raise serializers.ValidationError("Send a ZIP archive.")
        return data


class ImportBodySerializer(ImportSerializer):
    file = _ArchiveField(help_text="A ZIP archive of Markdown files.")


class _CountsSerializer(serializers.Serializer[Any]):
    """How many files became what."""

    created = serializers.IntegerField(source="files_created")
    updated = serializers.IntegerField(source="files_updated")
    unchanged = serializers.IntegerField(source="files_unchanged")
    kept = serializers.IntegerField(source="files_kept")
    skipped = serializers.IntegerField(source="files_skipped")
    refused = serializers.IntegerField(source="files_refused")


class TransferFileSerializer(serializers.ModelSerializer[NoteTransferFile]):
    class Meta:
        model = NoteTransferFile
        fields: ClassVar[list[str]] = ["position", "path", "outcome", "reason", "note"]
        read_only_fields: ClassVar[list[str]] = fields


class TransferSerializer(serializers.ModelSerializer[NoteTransfer]):
    files = _CountsSerializer(source="*", read_only=True)

    class Meta:
        model = NoteTransfer
        fields: ClassVar[list[str]] = [
            "id",
            "name",
            "folder",
            "overwrite",
            "status",
            "error",
            "total",
            "position",
            "files",
            "created",
            "finished",
        ]
        read_only_fields: ClassVar[list[str]] = fields


class TransferReportSerializer(TransferSerializer):
    problems = serializers.SerializerMethodField(
        help_text=f"The first {PROBLEMS} files of which there is something to say."
    )

    class Meta(TransferSerializer.Meta):
        fields: ClassVar[list[str]] = [*TransferSerializer.Meta.fields, "problems"]
        read_only_fields: ClassVar[list[str]] = fields

    @extend_schema(responses=TransferFileSerializer(many=True))
    def get_problems(self, transfer: NoteTransfer) -> list[dict[str, Any]]:
        found = selectors.transfer_problems(transfer=transfer, limit=PROBLEMS)
        return [dict(TransferFileSerializer(file).data) for file in found]


class TransferFilterSerializer(ClosedSerializer):
    outcome = OneOfField(FileOutcome.choices, required=False)


class NoteExportView(NoteAPIView):
    pagination_class = None

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    @takes(query=NoteFilterSerializer)
    def get(self, request: Request) -> DeferredResponse:
        """All notes, or those that the filters leave, as a ZIP of Markdown files."""
        asked = self.asked
        export = exporting.Export(
            owner=self.owner,
            folder=asked.get("folder"),
            subfolders=asked["subfolders"],
            tags=asked.get("tag", ()),
            updated_after=asked.get("updated_after"),
            updated_before=asked.get("updated_before"),
        )
        return DeferredResponse(lambda state: _archive(export, state), label="export of notes")


class NoteImportView(NoteAPIView):
    parser_classes = (ArchiveParser, ZipCompressedParser, BytesParser, FormParser)

    @extend_schema(
        request={
            "multipart/form-data": ImportBodySerializer,
            "application/zip": OpenApiTypes.BINARY,
        },
        responses={202: TransferSerializer},
    )
    @takes(query=ImportSerializer, body=ImportBodySerializer, partial=True)
    def post(self, request: Request) -> Response:
        """Queue the import of an archive: the body itself, or the field `file` of a form."""
        sent = self.asked | self.sent()
        file = sent.pop("file", None)
        name = sent.pop("name") or getattr(file, "name", "") or _name(request)
        transfer = services.transfer_create(
            owner=self.owner, archive=_parts(file), name=name, **sent
        )
        location = reverse("api-note-transfer", kwargs={"transfer_id": transfer.pk})
        return Response(
            TransferSerializer(transfer).data, status=202, headers={"Location": location}
        )


class TransferListView(NoteAPIView):
    @extend_schema(responses=TransferSerializer(many=True))
    @takes(paged=True)
    def get(self, request: Request) -> Response:
        """Your imports, the newest first."""
        page: Any = self.paginate_queryset(selectors.transfer_list(owner=self.owner))
        return self.get_paginated_response(TransferSerializer(page, many=True).data)


class TransferView(NoteAPIView):
    @extend_schema(responses=TransferReportSerializer)
    def get(self, request: Request, transfer_id: UUID) -> Response:
        """How an import goes, and what could not be taken as it is."""
        transfer = selectors.transfer_get(owner=self.owner, transfer_id=transfer_id)
        return Response(TransferReportSerializer(transfer).data)


class TransferFilesView(NoteAPIView):
    @extend_schema(responses=TransferFileSerializer(many=True))
    @takes(query=TransferFilterSerializer, paged=True)
    def get(self, request: Request, transfer_id: UUID) -> Response:
        """What became of each file."""
        files = selectors.transfer_files(
            owner=self.owner,
            transfer_id=transfer_id,
            outcome=self.asked.get("outcome", ""),
        )
        page: Any = self.paginate_queryset(files)
        return self.get_paginated_response(TransferFileSerializer(page, many=True).data)


def _name(request: Request) -> str:
    """The name in a header `Content-Disposition` of the body, or a word of where it came from."""
    try:
        _, given = parse_header_parameters(request.headers.get("Content-Disposition", ""))
    except ValueError as error:
        raise invalid(str(error), field="Content-Disposition") from None
    return given.get("filename", "").rpartition("/")[2] or "Archive over REST"


async def _archive(export: exporting.Export, state: State) -> tuple[int, Any, dict[str, str]]:
    await unit_of_work(export.count)
    name = f"notewire-{datetime.now(UTC):%Y-%m-%d}.zip"
    headers = {
        "Content-Type": "application/zip",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Encoding": "identity",
    }
    return 200, exporting.archive(export), headers


def _parts(file: Any) -> Iterator[bytes]:
    if isinstance(file, UploadedFile):
        return iter(file.chunks())
    if not hasattr(file, "read"):
        raise invalid("Send a ZIP archive.", field="file")
    return iter(lambda: bytes(file.read(_READ)), b"")
