"""The services as a person at a page calls them: for tests that do not care who changed a note."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

from notes import services
from notes.authors import Author
from notes.models import Note


def by(user: AbstractBaseUser) -> Author:
    return Author.person(user, "page")


def note_create(*, owner: AbstractBaseUser, **fields: Any) -> Note:
    return services.note_create(owner=owner, author=by(owner), **fields)


def note_update(*, owner: AbstractBaseUser, note_id: UUID, **changes: Any) -> Note:
    return services.note_update(owner=owner, author=by(owner), note_id=note_id, **changes)


def note_edit(*, owner: AbstractBaseUser, note_id: UUID, **edit: Any) -> Note:
    return services.note_edit(owner=owner, author=by(owner), note_id=note_id, **edit)


def note_delete(
    *, owner: AbstractBaseUser, note_id: UUID, expected_version: int | None = None
) -> None:
    services.note_delete(
        owner=owner, author=by(owner), note_id=note_id, expected_version=expected_version
    )
