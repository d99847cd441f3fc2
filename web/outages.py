"""A database that is away: how its errors are known, what clients are told, what the log keeps.

One outage makes an error of every request, job and listener, again and again. Each place that logs
them says so once a minute, in a line without a traceback. Who finds out that the server is away, or
is there again, says that once (the database backend in ``config``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import psycopg
from django.db import InterfaceError, OperationalError

SILENT_SECONDS = 60.0
#: Of the server's own errors, those of one that goes, comes or takes nobody in.
AWAY_STATES = frozenset({"57P01", "57P02", "57P03", "53300"})
#: It says in words alone what it is about: attempts to connect.
POOL_LOGGER = "psycopg.pool"


def is_outage(error: BaseException | None) -> bool:
    """Whether it, or what led to it, says that the database is away."""
    return any(_says_away(each) for each in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _says_away(error: BaseException) -> bool:
    if isinstance(error, psycopg.OperationalError):
        state = error.sqlstate
        return state is None or state.startswith("08") or state in AWAY_STATES
    if isinstance(error, OperationalError):
        return error.__cause__ is None  # else the cause, which is next, knows
    return isinstance(error, InterfaceError) and "connection" in str(error)


class OncePerOutage(logging.Filter):
    """For a handler: of what is told again and again while the database is away, little is kept."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = _error_of(record)
        if error is None and record.name != POOL_LOGGER:
            return True
        place, now = (record.pathname, record.lineno), time.monotonic()
        if now - self._said.get(place, -SILENT_SECONDS) < SILENT_SECONDS:
            return False
        self._said[place] = now
        said = " ".join(record.getMessage().split())
        cause = " ".join(str(error or "").split())
        record.msg = said if cause in said else f"{said}: {cause}"
        record.args, record.exc_info, record.exc_text = None, None, None
        return True


def _error_of(record: logging.LogRecord) -> BaseException | None:
    """The outage that a record tells of, as its exception or within its words."""
    args = record.args if isinstance(record.args, tuple) else ()
    told = [record.exc_info[1] if record.exc_info else None, *args]
    return next(
        (each for each in told if isinstance(each, BaseException) and is_outage(each)), None
    )
