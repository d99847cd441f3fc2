"""Starts the embedded PostgreSQL again when it died under the processes that use it.

For processes that live long (``serve``, ``worker``); a short command starts it as it begins, if
need be. How it is started, by one process while others wait, is ``embedded_postgres``'.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
LONGEST_PAUSE = 60.0


@contextmanager
def watching() -> Iterator[None]:
    """While it is entered, a server that is gone is started again within seconds."""
    if not settings.NOTEWIRE_DATABASE_IS_EMBEDDED:
        yield
        return
    leaving = threading.Event()
    threading.Thread(target=_watch, args=(leaving,), name="database watch", daemon=True).start()
    try:
        yield
    finally:
        leaving.set()  # not waited for: a process that leaves the server waits for its start


def _watch(leaving: threading.Event) -> None:
    from config import embedded_postgres  # it comes for Unix alone

    pause, failed = LOOK_SECONDS, False
    while not leaving.wait(pause):
        if not embedded_postgres.is_gone():
            pause, failed = LOOK_SECONDS, False
            continue
        try:
            if embedded_postgres.start_again():
                logger.warning("The embedded PostgreSQL had died and is started again.")
            pause, failed = LOOK_SECONDS, False
        except (embedded_postgres.EmbeddedPostgresError, OSError) as error:
            if not failed:
                logger.error(
                    "The embedded PostgreSQL has died and cannot be started; this is tried again "
                    "and again. %s", error
                )  # fmt: skip
            pause, failed = min(2 * pause, LONGEST_PAUSE), True
