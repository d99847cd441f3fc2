"""Archives as others make them, and imports carried out on the spot."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from notes.models import NoteTransfer, NoteTransferFile
from notes.transfer import zip_stream
from notes.transfer.archive import UPLOAD, ZipSource
from notes.transfer.exporting import Export
from notes.transfer.importing import Import

Importer = Callable[..., NoteTransfer]


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.NOTEWIRE_HOME = tmp_path
    return tmp_path


def packed(files: Mapping[str, Any] | Iterable[tuple[Any, Any]]) -> bytes:
    """A ZIP of these files; names may be ``ZipInfo``."""
    pairs = files.items() if isinstance(files, Mapping) else files
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in pairs:
            archive.writestr(name, data)
    return target.getvalue()


def exported(owner: User, **filters: Any) -> bytes:
    return b"".join(zip_stream.zipped(Export(owner=owner, **filters).files()))


def imported(owner: User, archive: bytes, path: Path, **options: Any) -> NoteTransfer:
    """Import ``archive``, which is written to ``path`` first."""
    path.write_bytes(archive)
    transfer = NoteTransfer.objects.create(owner=owner, status="running", **options)
    running = Import(transfer, ZipSource(path, UPLOAD))
    try:
        while running.step():
            pass
    finally:
        running.close()
    transfer.refresh_from_db()
    return transfer


@pytest.fixture
def do_import(tmp_path: Path) -> Iterator[Importer]:
    def run(
        owner: User, files: bytes | Mapping[str, Any] | list[Any], **options: Any
    ) -> NoteTransfer:
        archive = files if isinstance(files, bytes) else packed(files)
        return imported(owner, archive, tmp_path / "archive.zip", **options)

    yield run


def outcomes(transfer: NoteTransfer) -> dict[str, str]:
    return {file.path: file.outcome for file in transfer.files.all()}


def reason(transfer: NoteTransfer, path: str) -> str:
    return NoteTransferFile.objects.get(transfer=transfer, path=path).reason
