"""Grouped writes of the event log: one INSERT and one NOTIFY per process per flush.

Owns what was published and is not stored yet, for all runs of this process: at once after a pause,
then every ``interval``, but what begins a run, or ends its silence, is not kept waiting: somebody
may listen to it in another process. A failed write is tried again (it is idempotent); what a
boundary wants to commit itself is lent out by ``detached``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from chat import events
from chat.events import LoggedEvent
from chat.runs import event_log
from tools.threads import unit_of_work

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.5

#: A run that said nothing for this long is heard at once elsewhere too, and no more often.
SILENT_SECONDS = 1.0


class Flusher:
    def __init__(self, *, origin: str, interval: float = 0.04) -> None:
        self._origin = origin
        self._interval = interval
        self._pending: dict[UUID, list[LoggedEvent]] = {}
        self._in_flight: frozenset[UUID] = frozenset()
        self._lent: set[UUID] = set()
        self._written = asyncio.Condition()
        self._spoke: dict[UUID, float] = {}
        self._work = asyncio.Event()
        self._urgent = asyncio.Event()
        self._closing = False

    def add(self, logged: tuple[LoggedEvent, ...]) -> None:
        for item in logged:
            self._pending.setdefault(item.run_id, []).append(item)
            if self._ends_silence(item):
                self._urgent.set()
        self._work.set()

    def _ends_silence(self, item: LoggedEvent) -> bool:
        """Whether it begins the run, or is its first text since long."""
        if not isinstance(item.event, events.TextDelta | events.ThinkingDelta):
            return isinstance(item.event, events.RunStarted)
        now = time.monotonic()
        spoke = self._spoke.get(item.run_id)
        self._spoke[item.run_id] = now
        return spoke is None or now - spoke > SILENT_SECONDS

    async def settled(self, run_id: UUID) -> None:
        """Until everything that was added for this run is in the log."""
        async with self._written:
            await self._written.wait_for(
                lambda: run_id not in self._pending and not self._is_out(run_id)
            )

    @asynccontextmanager
    async def detached(self, run_id: UUID) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """This run's unwritten events, to be stored inside, before anything that comes later.

        They are added again where the block raises.
        """
        async with self._written:
            await self._written.wait_for(lambda: not self._is_out(run_id))
            self._lent.add(run_id)
        lent = tuple(self._pending.pop(run_id, ()))
        try:
            yield lent
        # Raised again: what was not stored is to be stored still.
        except BaseException:
            self._pending[run_id] = [*lent, *self._pending.get(run_id, ())]
            raise
        finally:
            self._lent.discard(run_id)
            self._work.set()
            async with self._written:
                self._written.notify_all()

    def _is_out(self, run_id: UUID) -> bool:
        return run_id in self._in_flight or run_id in self._lent

    async def run(self) -> None:
        """Write until ``close``; what is pending then is still written."""
        next_flush = 0.0
        while True:
            await self._work.wait()
            if not self._closing:
                await self._gather_until(next_flush)
            self._work.clear()
            self._urgent.clear()
            await self._flush()
            next_flush = time.monotonic() + self._interval
            if self._closing and not self._pending:
                return

    async def _gather_until(self, next_flush: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, next_flush - time.monotonic())):
                await self._urgent.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        self._closing = True
        self._work.set()
        self._urgent.set()

    async def _flush(self) -> None:
        long_ago = time.monotonic() - SILENT_SECONDS
        self._spoke = {run_id: at for run_id, at in self._spoke.items() if at > long_ago}
        taken = {k: v for k, v in self._pending.items() if v and k not in self._lent}
        self._pending = {k: v for k, v in self._pending.items() if v and k not in taken}
        logged = [item for items in taken.values() for item in items]
        self._in_flight = frozenset(taken)
        stored = not logged
        while not stored:
            try:
                await unit_of_work(event_log.events_store, logged=logged, origin=self._origin)
                stored = True
            except (DatabaseError, InterfaceError):
                logger.exception("The event log could not be written; trying again")
                await asyncio.sleep(RETRY_SECONDS)
                stored = self._closing
        self._in_flight = frozenset()
        async with self._written:
            self._written.notify_all()
