"""Sweeps up in every process, with a worker or without, what no job will: every few seconds.

Runs to be ended that nobody carries (``recovery``), logs to be folded, entries of the feed that are
old. Each statement finds nothing where another process was first. Jobs whose worker died are the
``supervisor``'s: only a worker can take them up.
"""

from __future__ import annotations

import asyncio
import logging
import time

from django.db import DatabaseError, InterfaceError

from chat.runs import event_log, recovery
from tools.threads import unit_of_work
from web import feed

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
EXPIRY_SECONDS = 600.0


class Sweeper:
    def __init__(self) -> None:
        self._expiry_due = 0.0

    async def run(self) -> None:
        """Again and again, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("Nothing was swept up: %s", error)

    async def sweep(self) -> None:
        await unit_of_work(recovery.stopped_close)
        await unit_of_work(recovery.orphans_close)
        await unit_of_work(recovery.late_expire)
        await unit_of_work(event_log.logs_fold)
        if time.monotonic() > self._expiry_due:
            self._expiry_due = time.monotonic() + EXPIRY_SECONDS
            await unit_of_work(feed.owner_events_expire)
