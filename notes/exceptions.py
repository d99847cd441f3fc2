"""What can be wrong with a request about notes.

::

    NoteError
    ├── NoteNotFound          no such note, or another person's: the two are the same
    │   └── NoteInBin         it was deleted, and its owner can restore it
    ├── RevisionNotFound      the note has no such version, or none that was kept
    ├── NoteInvalid           a value breaks a rule: ``field``, ``code``
    ├── NoteTooLarge          the content would pass its limit; nothing was changed
    ├── NoteVersionConflict   the note is not the version that was expected: ``current_version``
    ├── NotePassageError      the passage to edit occurs nowhere or more than once
    ├── NoteSaveTimeout       saving took longer than it may; nothing was changed
    └── SearchTimeout         a search took longer than it may

Each message is fit for a person. How a door says it (status, envelope, advice) is the door's.
"""

from __future__ import annotations


class NoteError(Exception):
    """Something about a note that a person or a model can put right."""

    code = "invalid"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NoteNotFound(NoteError):
    code = "not_found"

    def __init__(self, message: str = "There is no such note.") -> None:
        super().__init__(message)


class NoteInBin(NoteNotFound):
    def __init__(self) -> None:
        super().__init__("The note was deleted: it is in the bin.")


class RevisionNotFound(NoteError):
    code = "not_found"

    def __init__(self) -> None:
        super().__init__("The note has no revision of this version.")


class NoteInvalid(NoteError):
    def __init__(self, message: str, *, field: str, code: str = "invalid") -> None:
        super().__init__(message)
        self.field = field
        self.code = code


class NoteTooLarge(NoteError):
    code = "note_too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The content of a note may have at most {limit} bytes of UTF-8.")
        self.limit = limit


class NoteVersionConflict(NoteError):
    code = "note_version_conflict"

    def __init__(self, current_version: int) -> None:
        super().__init__(f"The note was changed meanwhile: it is at version {current_version}.")
        self.current_version = current_version


class NotePassageError(NoteError):
    """``matches`` is 0, or 2 for more than one."""

    def __init__(self, matches: int) -> None:
        found = "does not occur in the note" if matches == 0 else "occurs more than once"
        super().__init__(f"The passage to replace {found}.")
        self.matches = matches


class NoteSaveTimeout(NoteError):
    code = "note_save_timeout"

    def __init__(self) -> None:
        super().__init__("Saving took too long, and nothing was changed. Split the note.")


class SearchTimeout(NoteError):
    code = "search_timeout"

    def __init__(self) -> None:
        super().__init__("The search took too long. Use a rarer word, or choose a folder or tag.")
