"""How long the database may work for one search or one save, whatever texts are made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from notes.exceptions import NoteError


@contextmanager
def atomic_within(*, milliseconds: int, error: type[NoteError]) -> Iterator[None]:
    """A transaction, or a part of the caller's, each of whose statements may take so long.

    Raises ``error``, made without arguments, where one takes longer; nothing is changed then.
    """
    nested = connection.in_atomic_block
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # The caller's own limit holds where it is lower.
            cursor.execute("SELECT notes_time_limit(%s)", [milliseconds])
            before = cursor.fetchone()[0]
            yield
            if nested:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [before])
    except OperationalError as failure:
        if isinstance(failure.__cause__, QueryCanceled):
            raise error() from failure  # type: ignore[call-arg]  # as said
        raise
