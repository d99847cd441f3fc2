"""Writes a ZIP as it goes, in memory that hardly grows with the number of its files.

The standard library keeps an object for each file until the end; here the directory waits in a
temporary file. Each file is given whole, so that its size stands before it and any reader can
read the archive as a stream. Beyond 65,535 files or 4 GiB the ZIP64 records follow.
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

_STORED, _DEFLATED = 0, 8
_UTF8 = 0x800
_UNIX = 3 << 8
_REGULAR = (0o100644) << 16
_LARGE, _MANY = 0xFFFFFFFF, 0xFFFF
_DIRECTORY_IN_MEMORY = 1024 * 1024
_READ = 64 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """A file for the archive. ``name`` is as it stands there, with slashes."""

    name: str
    data: bytes
    modified: datetime


def zipped(files: Iterable[File]) -> Generator[bytes, None, None]:
    """The bytes of an archive of ``files``, which are taken one by one."""
    offset = count = 0
    with tempfile.SpooledTemporaryFile(_DIRECTORY_IN_MEMORY) as directory:
        for file in files:
            method, packed = _packed(file.data)
            name = file.name.encode()
            facts = (
                *_dos_time(file.modified),
                zlib.crc32(file.data),
                len(packed),
                len(file.data),
                len(name),
            )
            head = struct.pack("<4s5H3I2H", b"PK\3\4", 20, _UTF8, method, *facts, 0) + name
            directory.write(_directory_entry(method, facts, name, offset))
            yield head
            yield packed
            offset += len(head) + len(packed)
            count += 1
        size = directory.tell()
        directory.seek(0)
        while part := directory.read(_READ):
            yield part
        yield _end(count, size, offset)


def write(files: Iterable[File], target: IO[bytes]) -> None:
    """The same into a file."""
    for part in zipped(files):
        target.write(part)


def _packed(data: bytes) -> tuple[int, bytes]:
    """Deflated where that helps; what shrinks as only a bomb does is stored, to be read again."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = deflate.compress(data) + deflate.flush()
    if len(packed) >= len(data) or len(packed) * 50 < len(data):
        return _STORED, data
    return _DEFLATED, packed


def _directory_entry(method: int, facts: tuple[int, ...], name: bytes, offset: int) -> bytes:
    extra = struct.pack("<2HQ", 1, 8, offset) if offset >= _LARGE else b""
    version = 45 if extra else 20
    head = struct.pack(
        "<4s6H3I5H2I",
        b"PK\1\2",
        _UNIX | version,
        version,
        _UTF8,
        method,
        *facts,
        len(extra),
        0,
        0,
        0,
        _REGULAR,
        min(offset, _LARGE),
    )
    return head + name + extra


def _end(count: int, size: int, offset: int) -> bytes:
    end = struct.pack(
        "<4s4H2IH",
        b"PK\5\6",
        0,
        0,
        min(count, _MANY),
        min(count, _MANY),
        min(size, _LARGE),
        min(offset, _LARGE),
        0,
    )
    if count < _MANY and size < _LARGE and offset < _LARGE:
        return end
    large = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, _UNIX | 45, 45, 0, 0, count, count, size, offset
    )
    return large + struct.pack("<4sIQI", b"PK\6\7", 0, offset + size, 1) + end


def _dos_time(when: datetime) -> tuple[int, int]:
    """Time and date as ZIP has them: two seconds exact, from 1980 to 2107."""
    at = when.astimezone(UTC)
    if not 1980 <= at.year <= 2107:
        return 0, (1 << 5) | 1
    date = (at.year - 1980) << 9 | at.month << 5 | at.day
    return at.hour << 11 | at.minute << 5 | at.second // 2, date
