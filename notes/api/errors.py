"""How REST says what can be wrong with a request about notes."""

from __future__ import annotations

from notes.exceptions import (
    NoteError,
    NoteInBin,
    NoteInvalid,
    NoteNotFound,
    NoteSaveTimeout,
    NoteTooLarge,
    NoteVersionConflict,
    RevisionNotFound,
    SearchTimeout,
)
from web.errors import ApiError, not_found


def api_error(error: NoteError) -> ApiError:
    match error:
        case NoteInBin() | RevisionNotFound():
            return ApiError(error.code, error.message, 404)
        case NoteNotFound():
            return not_found()
        case NoteInvalid():
            return ApiError(error.code, error.message, 400, {error.field: [error.message]})
        case NoteTooLarge():
            return ApiError(error.code, error.message, 413, {"content": [error.message]})
        case NoteVersionConflict():
            extra = {"version": error.current_version}
            return ApiError(error.code, error.message, 412, extra=extra)
        case SearchTimeout() | NoteSaveTimeout():
            return ApiError(error.code, error.message, 503)
        case _:
            return ApiError(error.code, error.message, 400)


def version_conflict(current_version: int) -> ApiError:
    return api_error(NoteVersionConflict(current_version))
