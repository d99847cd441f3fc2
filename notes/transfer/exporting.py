"""An owner's notes as the files of an archive, in memory that hardly grows with their number.

Which notes there are is asked once, as 20 bytes each; their texts are then read page by page, so
that no cursor and no connection stays open while somebody reads the archive slowly. A note that is
deleted meanwhile is left out, one that changes comes as it then is.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

from notes.models import Note, OctetLength
from notes.selectors import notes_filtered
from notes.transfer import dialects, names, zip_stream
from notes.transfer.zip_stream import File
from tools.threads import unit_of_work

PAGE_NOTES = 100
PAGE_BYTES = 1024 * 1024
PART_BYTES = 256 * 1024

_ROW = struct.Struct("<16sI")


class Export:
    """The notes that the filters leave; ``files`` may be taken once."""

    def __init__(
        self,
        *,
        owner: AbstractBaseUser,
        folder: str | None = None,
        subfolders: bool = False,
        tags: Iterable[str] = (),
        updated_after: datetime | None = None,
        updated_before: datetime | None = None,
    ) -> None:
        self._owner = owner
        self._notes = notes_filtered(
            Note.objects.owned_by(owner),
            folder=folder,
            subfolders=subfolders,
            tags=tags,
            updated_after=updated_after,
            updated_before=updated_before,
        )
        self._rows = b""
        self._names = names.UniqueNames()

    def count(self) -> int:
        """How many notes there are; from then on it is settled which."""
        # Older notes first, so that names that occur twice are numbered the same each time.
        rows = self._notes.order_by("folder", "created", "id").annotate(size=OctetLength("content"))
        packed = bytearray()
        for note_id, size in rows.values_list("id", "size").iterator(chunk_size=10_000):
            packed += _ROW.pack(note_id.bytes, size)
        self._rows = bytes(packed)
        return len(self._rows) // _ROW.size

    def files(self) -> Iterator[File]:
        """Every note as a file. Each page is one query; nothing is held between them."""
        if not self._rows:
            self.count()
        for page in self._pages():
            found = Note.objects.owned_by(self._owner).in_bulk(page)
            for note_id in page:
                note = found.pop(note_id, None)
                if note is not None:
                    name, text = dialects.as_file(note, self._names)
                    yield File(name, text.encode(), note.updated)

    def _pages(self) -> Iterator[list[UUID]]:
        page: list[UUID] = []
        size = 0
        for note_id, note_size in _ROW.iter_unpack(self._rows):
            if page and (len(page) == PAGE_NOTES or size + note_size > PAGE_BYTES):
                yield page
                page, size = [], 0
            page.append(UUID(bytes=note_id))
            size += note_size
        if page:
            yield page


async def archive(export: Export) -> AsyncIterator[bytes]:
    """The archive in parts, each a unit of work of its own: nothing is held between them."""
    parts = zip_stream.zipped(export.files())
    try:
        while part := await unit_of_work(_next_part, parts):
            yield part
    finally:
        parts.close()


def _next_part(parts: Iterator[bytes]) -> bytes:
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= PART_BYTES:
            break
    return bytes(gathered)
