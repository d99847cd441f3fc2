"""What one process of Notewire keeps alive: listeners, the log's writer, the worker, the catalogue.

Made by the ASGI lifespan (or by ``manage.py worker``) and found in the scope's state under
``runtime``: nothing that belongs to an event loop is a global. Owns starting and draining in order;
what a run does is the ``executor``'s.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self
from uuid import UUID

from chat import events
from chat.events import LoggedEvent
from chat.providers.catalogue import Catalogue
from chat.providers.http import build_client
from chat.runs import event_log, resume
from chat.runs.flusher import Flusher
from chat.runs.guard import Guard
from chat.runs.hub import Hub, Subscription
from chat.runs.notifications import Notifications
from chat.runs.supervisor import Supervisor
from chat.runs.sweeper import Sweeper
from tools.threads import unit_of_work

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
FLUSH_SECONDS = 0.04
#: Runs get 5 s of it to end by themselves, the rest to be handed back.
DRAIN_SECONDS = 7.0


class Runtime:
    """``async with Runtime(worker=True) as runtime``: everything runs inside, nothing outside."""

    def __init__(self, *, worker: bool = True) -> None:
        self.origin = secrets.token_hex(4)
        self.hub = Hub()
        self.guard = Guard()
        self.flusher = Flusher(origin=self.origin, interval=FLUSH_SECONDS)
        self._stack = AsyncExitStack()
        self._supervisor = Supervisor(self) if worker else None
        self._drained_by: float | None = None

    async def __aenter__(self) -> Self:
        client = await self._stack.enter_async_context(build_client())
        self.catalogue = Catalogue(client)
        notifications = Notifications(hub=self.hub, origin=self.origin)
        self._flushing = asyncio.create_task(self.flusher.run(), name="event log")
        self._listening = asyncio.create_task(notifications.run(), name="notifications")
        self._guarding = asyncio.create_task(self.guard.run(), name="guard")
        self._sweeping = asyncio.create_task(Sweeper().run(), name="sweeper")
        if self._supervisor is not None:
            self._supervising = asyncio.create_task(self._supervisor.run(), name="supervisor")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.drain()
        around = (self._listening, self._guarding, self._sweeping)
        for task in around:
            task.cancel()
        await asyncio.gather(*around, return_exceptions=True)
        self.flusher.close()
        await self._flushing
        await self._stack.aclose()

    async def drain(self) -> None:
        """Take no new jobs; runs get a few seconds, then are handed back. Harmless twice.

        Bounded: a job whose thread does not come back is left to be found by its silent worker.
        """
        if self._supervisor is None:
            return
        self._supervisor.stop()
        now = asyncio.get_running_loop().time()
        is_first = self._drained_by is None
        self._drained_by = self._drained_by or now + DRAIN_SECONDS
        await asyncio.wait([self._supervising], timeout=max(0.0, self._drained_by - now))
        if not self._supervising.done():
            if is_first:
                logger.warning("Runs did not come to rest within %s s.", DRAIN_SECONDS)
            return
        await self._supervising

    @property
    def worker_state(self) -> str:
        """For ``/readyz``: none, starting, running, restarting, draining."""
        return self._supervisor.state if self._supervisor is not None else "none"

    def publish(self, logged: tuple[LoggedEvent, ...], *, stored: bool) -> None:
        """Give events to this process's listeners, and to the log where it lacks them."""
        if not logged:
            return
        if not stored:
            self.flusher.add(logged)
        self.hub.publish(logged[0].run_id, logged)

    async def events(
        self, run_id: UUID, after: tuple[int, int] | None = None
    ) -> AsyncIterator[tuple[LoggedEvent, ...] | None]:
        """A run's events strictly after ``(attempt, seq)``: replay, then live until ``done``.

        Where the log does not hold that point any more a ``snapshot`` comes first, also in the
        middle. Yields None where nothing came for 15 s: a keep-alive is due. Ends without ``done``
        where the run was deleted.
        """
        position = after or event_log.START
        with self.hub.subscribed(run_id) as subscription:
            subscription.fall_behind()
            while True:
                try:
                    batch = await self._next(run_id, subscription, position)
                except event_log.RunGoneError:
                    return
                if batch:
                    position = (batch[-1].attempt, batch[-1].seq)
                    yield batch
                    if isinstance(batch[-1].event, events.Done):
                        return
                elif batch is None:
                    yield None
                    subscription.fall_behind()

    async def _next(
        self, run_id: UUID, subscription: Subscription, position: tuple[int, int]
    ) -> tuple[LoggedEvent, ...] | None:
        """The next events after ``position``; empty where a wake-up brought none."""
        if not await subscription.wait(KEEP_ALIVE_SECONDS):
            return None
        if subscription.behind:
            subscription.caught_up()
            await self.flusher.settled(run_id)
            return await self._read(run_id, subscription, position)
        live = tuple(item for item in subscription.take() if (item.attempt, item.seq) > position)
        if not _follows(position, live):
            subscription.fall_behind()
            return ()
        return live

    async def _read(
        self, run_id: UUID, subscription: Subscription, position: tuple[int, int]
    ) -> tuple[LoggedEvent, ...]:
        """What the log holds after ``position``, or a snapshot where that is gone from it."""
        page = await unit_of_work(event_log.page_after, run_id=run_id, position=position)
        if page is None:
            snapshot = await unit_of_work(resume.snapshot_of, run_id=run_id)
            subscription.fall_behind()
            return (snapshot,)
        if page.more:
            subscription.fall_behind()
        else:
            subscription.wake()
        return page.events


def _follows(position: tuple[int, int], live: tuple[LoggedEvent, ...]) -> bool:
    """Whether nothing is missing: an executor that was cancelled may have stored and not told."""
    attempt, seq = position
    for item in live:
        expected = seq + 1 if item.attempt == attempt else 1
        if item.seq != expected:
            return False
        attempt, seq = item.attempt, item.seq
    return True
