"""The one written form of a folder: ``/a/b/``, root ``/``.

Names are NFC and keep their case; ``A`` and ``a`` are two folders. A subtree is a prefix of this
form, which the closing slash keeps from matching a sibling: ``/a/`` is no prefix of ``/ab/``.
"""

from __future__ import annotations

import unicodedata

from notes.exceptions import NoteInvalid
from notes.rules import is_visible, name_checked

ROOT = "/"
MAX_LENGTH = 1000
MAX_SEGMENTS = 32


def folder_normalised(folder: str, *, field: str = "folder") -> str:
    """Turn what a person or program wrote into the stored form, or say what is wrong with it."""
    # Before anything that takes time: normalising is quadratic in runs of combining marks.
    if len(folder) > 2 * MAX_LENGTH:
        raise _too_long(field)
    name_checked(folder, field=field)
    names = [name.strip() for name in unicodedata.normalize("NFC", folder).split("/")]
    names = [name for name in names if name]
    for name in names:
        if name in {".", ".."}:
            raise NoteInvalid("A folder cannot be called . or .. here.", field=field)
        if not is_visible(name):
            raise NoteInvalid("A folder's name needs something to see.", field=field)
        if "\\" in name:
            raise NoteInvalid("Write / between folders, not a backslash.", field=field)
    if len(names) > MAX_SEGMENTS:
        raise NoteInvalid(f"At most {MAX_SEGMENTS} folders inside one another.", field=field)
    path = "".join(f"/{name}" for name in names) + "/"
    if len(path) > MAX_LENGTH:
        raise _too_long(field)
    return path


def _too_long(field: str) -> NoteInvalid:
    return NoteInvalid(f"At most {MAX_LENGTH} characters.", field=field)
