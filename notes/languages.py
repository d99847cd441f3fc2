"""The language that a person writes their notes in, for search: chosen, and what follows from it.

Owns the choice. A note with a language of its own keeps it; the entries of all others are written
anew by a job, as the words in them are stemmed by the language.
"""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction
from procrastinate.contrib.django import app

from notes.exceptions import NoteInvalid
from notes.rules import LANGUAGES
from notes.search.filling import REINDEX_TASK

DETECTED = ("", "Detect it from note to note")
#: PostgreSQL's name for no language at all.
NAMES = {"simple": "Another one: words are found as they are written"}


def languages_available() -> list[str]:
    """Those of PostgreSQL's languages that this server has, by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cfgname FROM pg_ts_config WHERE pg_ts_config_is_visible(oid)"
            " AND cfgname = ANY(%s) ORDER BY cfgname",
            [list(LANGUAGES)],
        )
        return [name for (name,) in cursor.fetchall()]


def language_choices() -> list[tuple[str, str]]:
    """What a person may choose from, with its name; the first is to have it detected."""
    named = [(name, NAMES.get(name, name.title())) for name in languages_available()]
    return [DETECTED, *sorted(named, key=lambda choice: choice[0] in NAMES)]


def language_of(*, owner: AbstractBaseUser) -> str:
    """Empty where it is to be detected from note to note."""
    return get_user_model().objects.values_list("language", flat=True).get(pk=owner.pk)


@transaction.atomic
def language_set(*, owner: AbstractBaseUser, language: str) -> None:
    """Raises ``NoteInvalid`` for what is no language here."""
    if language and language not in (known := languages_available()):
        raise NoteInvalid(f"One of: {', '.join(known)}; or empty.", field="language")
    people = get_user_model().objects.filter(pk=owner.pk).exclude(language=language)
    if people.update(language=language):
        app.configure_task(REINDEX_TASK).defer(owner_id=owner.pk)
