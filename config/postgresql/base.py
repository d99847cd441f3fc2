"""Django's PostgreSQL, for a server that may be away: told soon, and told from one that is busy.

A thread waits long for a connection where all are in use, and only a few seconds where the server
cannot be connected to; the next ones are refused at once, until one of them finds it there again.
What a client is told, and what the log keeps of the errors, is ``web``'s.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import PoolTimeout

logger = logging.getLogger(__name__)

#: Each wait for the pool takes its time-out, in seconds; after each the server is looked for.
WAITS = 3
LOOK_SECONDS = 1.0
CONNECT_SECONDS = 2


class Reach:
    """Whether the server can be connected to, as one thread finds out for all."""

    def __init__(self, connect: Callable[..., Any] = psycopg.connect) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._looked = -LOOK_SECONDS
        self._error: psycopg.OperationalError | None = None

    @property
    def is_known_away(self) -> bool:
        return self._error is not None

    def look(self, address: dict[str, Any]) -> None:
        """Raise where it cannot be connected to; what was found a moment ago holds."""
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_SECONDS:
                self._found(self._tried(address))
                self._looked = time.monotonic()
            if self._error is not None:
                # A fresh one: an exception that many threads raise would gather their tracebacks.
                raise type(self._error)(str(self._error))

    def _tried(self, address: dict[str, Any]) -> psycopg.OperationalError | None:
        try:
            self._connect(**address | {"connect_timeout": CONNECT_SECONDS}).close()
        except psycopg.OperationalError as error:
            return error
        return None

    def _found(self, error: psycopg.OperationalError | None) -> None:
        if error is not None and self._error is None:
            logger.error("The database cannot be reached: %s", " ".join(str(error).split()))
        if error is None and self._error is not None:
            logger.warning("The database can be reached again.")
        self._error = error


class DatabaseWrapper(base.DatabaseWrapper):
    reach = Reach()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if self.pool is None:
            return super().get_new_connection(conn_params)
        if self.reach.is_known_away:
            self.reach.look(conn_params)
        for _ in range(WAITS - 1):
            try:
                return super().get_new_connection(conn_params)
            except PoolTimeout:
                self.reach.look(conn_params)
        return super().get_new_connection(conn_params)
