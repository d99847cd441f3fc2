"""Reads archives and folders that others made, as a row of entries, each with its own refusal.

Owns what is believed of a ZIP: its directory is bounded before it is read, entries are read only
so far as a note may be long, and together only so far as the archive's size allows. Nothing is
ever unpacked to a disk. What an entry's name and text become is said in ``names``, ``texts`` and
``dialects``; writing is ``zip_stream``'s.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

from notes.rules import MAX_CONTENT_BYTES
from notes.transfer.exceptions import ArchiveUnreadable, FileRefused
from notes.transfer.front_matter import MAX_BYTES as MAX_FRONT_MATTER

MAX_FILE_BYTES = MAX_CONTENT_BYTES + MAX_FRONT_MATTER + 1024
MIB = 1024 * 1024
UNREADABLE = "The file cannot be read."
MISNAMED = "The name is said to be UTF-8, and is not."
ODDLY_PACKED = "The file is packed in a way that is not supported."

#: What is unpacked: of other packings a few bytes become all that they stand for at once.
_PACKINGS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})

#: How an entry of a ZIP's directory begins, its length without what varies, its mark of UTF-8.
_DIRECTORY, _FIXED, _UTF8 = b"PK\1\2", 46, 0x800

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may cost: past ``free_bytes``, to unpack to ``ratio`` times itself."""

    entries: int
    directory_bytes: int
    total_bytes: int
    free_bytes: int = 64 * MIB
    ratio: int = 100


#: For what comes through a door, and for what an operator gives by name.
UPLOAD = Limits(entries=100_000, directory_bytes=12 * MIB, total_bytes=1024 * MIB)
SHELL = Limits(entries=5_000_000, directory_bytes=1024 * MIB, total_bytes=1024**4)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file to import. ``refusal`` says why it is not even opened."""

    path: str
    modified: datetime | None
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    refusal: str = ""


class Source(Protocol):
    """Where entries come from, in an order that is the same each time."""

    @property
    def total(self) -> int: ...
    def entries(self) -> Iterator[Entry | None]: ...
    def read(self, entry: Entry) -> bytes: ...
    def close(self) -> None: ...


class ZipSource:
    """A ZIP file. An entry that is a folder is None: it counts, and is nothing to report."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._limits = limits
        self._unpacked = 0
        try:
            self._size = path.stat().st_size
            self._file: BinaryIO = path.open("rb")
        except OSError:
            raise ArchiveUnreadable("There is no such file, or it cannot be read.") from None
        guarded = _Guarded(self._file, limits.directory_bytes)
        try:
            self._zip = zipfile.ZipFile(guarded)
        except ArchiveUnreadable:
            self._file.close()
            raise
        except _BROKEN as error:
            self._file.close()
            raise ArchiveUnreadable("This is not a ZIP archive that can be read.") from error
        self._misnamed = guarded.opened()
        if self.total > limits.entries:
            self.close()
            raise ArchiveUnreadable(f"An archive may have at most {limits.entries:,} entries.")

    @property
    def total(self) -> int:
        return len(self._zip.filelist)

    def entries(self) -> Iterator[Entry | None]:
        for number, info in enumerate(self._zip.filelist):
            refusal = MISNAMED if number in self._misnamed else _refusal(info)
            # Some programs of Windows write backslashes.
            is_folder = info.is_dir() or info.orig_filename.endswith("\\")
            if is_folder and not refusal:
                yield None
                continue
            yield Entry(_name(info), _modified(info), _opener(self._zip, info), refusal)

    def read(self, entry: Entry) -> bytes:
        allowed = max(self._limits.free_bytes, self._limits.ratio * self._size)
        # Once it is too much, the entries that follow are not even opened.
        if self._unpacked <= min(allowed, self._limits.total_bytes):
            data = _read(entry)
            self._unpacked += max(len(data), 1)
            if self._unpacked <= min(allowed, self._limits.total_bytes):
                return data
        raise FileRefused("The archive unpacks to far more than it may.")

    def close(self) -> None:
        self._zip.close()
        self._file.close()


class FolderSource:
    """A folder on the machine's disk. Links are not followed, and only regular files are read."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise ArchiveUnreadable("There is no such folder.")
        self._root = root
        self._total = sum(1 for _ in self._paths())

    @property
    def total(self) -> int:
        return self._total

    def entries(self) -> Iterator[Entry | None]:
        for path in self._paths():
            yield _file_entry(self._root, path)

    def _paths(self) -> Iterator[Path]:
        """Files, and what is said of folders: links are not followed, and some cannot be read."""
        closed: list[Path] = []
        for folder, folders, files in os.walk(self._root, onerror=partial(_add_path, closed)):
            folders.sort()
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in sorted([*files, *links]):
                yield Path(folder, name)
        yield from sorted(closed)

    def read(self, entry: Entry) -> bytes:
        return _read(entry)

    def close(self) -> None:
        """There is nothing to close."""


class _Guarded:
    """A file that is not read in one piece beyond ``limit``: the ZIP's directory is read so.

    There, names that are said to be UTF-8 and are not lose what says so: one would be the end of
    the whole directory.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._misnamed: frozenset[int] = frozenset()
        self._is_open = False

    def opened(self) -> frozenset[int]:
        """The directory is read: the places in it of such names."""
        self._is_open = True
        return self._misnamed

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size if 0 <= size <= self._limit else self._limit + 1)
        if len(data) > self._limit:
            raise ArchiveUnreadable("The archive's directory is larger than it may be.")
        if not self._is_open and data.startswith(_DIRECTORY):
            data, self._misnamed = _renamed(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _renamed(directory: bytes) -> tuple[bytes, frozenset[int]]:
    """``directory`` without the mark of UTF-8 at names that are not, and which ones these are."""
    mended: bytearray | None = None
    misnamed = set()
    at = number = 0
    while directory.startswith(_DIRECTORY, at) and at + _FIXED <= len(directory):
        flags, *lengths = struct.unpack_from("<8xH18x3H", directory, at)
        name = directory[at + _FIXED : at + _FIXED + lengths[0]]
        if flags & _UTF8 and not name.isascii() and not _is_utf8(name):
            mended = mended or bytearray(directory)
            struct.pack_into("<H", mended, at + 8, flags & ~_UTF8)
            misnamed.add(number)
        at += _FIXED + sum(lengths)
        number += 1
    return bytes(mended or directory), frozenset(misnamed)


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _name(info: zipfile.ZipInfo) -> str:
    """Names that do not say that they are UTF-8 mostly are, since macOS writes them so."""
    name = info.orig_filename
    if info.flag_bits & _UTF8 or name.isascii():
        return name
    try:
        return name.encode("cp437").decode()
    except UnicodeError:
        return name


def _refusal(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 0x1:
        return "The file is encrypted."
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "The entry is a symbolic link."
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "The entry is not a regular file."
    return "" if info.compress_type in _PACKINGS else ODDLY_PACKED


def _modified(info: zipfile.ZipInfo) -> datetime | None:
    """1980 is what programs write that do not know."""
    try:
        modified = datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None
    return modified if modified.year > 1980 else None


def _opener(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> Callable[[], AbstractContextManager[IO[bytes]]]:
    return lambda: archive.open(info)


def _file_entry(root: Path, path: Path) -> Entry:
    name = path.relative_to(root).as_posix()
    try:
        status = path.lstat()
    except OSError:
        return Entry(name, None, lambda: _opened(path), UNREADABLE)
    refusal = ""
    if stat.S_ISLNK(status.st_mode):
        refusal = "The file is a symbolic link."
    elif stat.S_ISDIR(status.st_mode):
        refusal = "The folder cannot be read."
    elif not stat.S_ISREG(status.st_mode):
        refusal = "This is not a regular file."
    return Entry(name, _time(status.st_mtime), lambda: _opened(path), refusal)


def _time(seconds: float) -> datetime | None:
    """None for a time that no calendar here has: disks keep any number."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _add_path(paths: list[Path], error: OSError) -> None:
    paths.append(Path(error.filename))


def _opened(path: Path) -> IO[bytes]:
    # What became a link or a pipe since it was looked at is neither followed nor waited for.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    return cast("IO[bytes]", os.fdopen(descriptor, "rb"))


def _read(entry: Entry) -> bytes:
    """The whole of an entry, or why not. What its directory says of its size is not believed."""
    try:
        with entry.open() as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except NotImplementedError:
        raise FileRefused(ODDLY_PACKED) from None
    except PermissionError:
        raise FileRefused(UNREADABLE) from None
    except _BROKEN:
        raise FileRefused("The file is damaged.") from None
    if len(data) > MAX_FILE_BYTES:
        raise FileRefused(f"A note may have at most {MAX_CONTENT_BYTES} bytes.")
    return data
