"""Ends the process in bounded time once it was told to stop, whatever its threads do.

A thread cannot be ended, and Python waits for all of them. Who stops hands back what matters in
order; this is for what is left then, such as a statement that nobody can cancel.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time

logger = logging.getLogger(__name__)

#: Runs have 7 s to come to rest, and requests as long: what is still there is not waited for.
STAY_SECONDS = 8.5
#: What the exit handlers may take, of which one stops our own PostgreSQL.
EXIT_SECONDS = 1.0

_begun = threading.Event()


def leave_soon(seconds: float = STAY_SECONDS) -> None:
    """Have the process end by itself within that time, or be ended then. Harmless twice."""
    if not _begun.is_set():
        _begun.set()
        threading.Thread(target=_leave, args=(seconds,), name="leaving", daemon=True).start()


def _leave(seconds: float) -> None:
    time.sleep(seconds)
    stuck = sorted(thread.name for thread in threading.enumerate() if not thread.daemon)
    logger.warning("Leaving without waiting any longer for %s.", ", ".join(stuck))
    # As the interpreter would, but that it would wait for the threads first.
    exits = threading.Thread(target=atexit._run_exitfuncs, name="exits", daemon=True)
    exits.start()
    exits.join(EXIT_SECONDS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
