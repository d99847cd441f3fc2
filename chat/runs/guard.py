"""Ends the streams of whoever lost the right to read them, within seconds.

A stream is let in once and may then last for days. Owns who is being served and the question, one
for all streams of the process, whether each would still be let in. Who that is, is ``accounts``'.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.db import DatabaseError, InterfaceError

from accounts.selectors import Credential, credentials_ended
from tools.threads import unit_of_work

logger = logging.getLogger(__name__)

CHECK_SECONDS = 3.0


class Guard:
    def __init__(self) -> None:
        self._served: dict[Credential, set[asyncio.Task[object]]] = {}
        self._ended: set[asyncio.Task[object]] = set()

    @asynccontextmanager
    async def serving(self, credential: Credential) -> AsyncIterator[None]:
        """Around what is sent to somebody; it ends early, and quietly, once they are not let in."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - there is one wherever something is awaited
        self._served.setdefault(credential, set()).add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
        finally:
            self._ended.discard(task)
            served = self._served[credential]
            served.discard(task)
            if not served:
                del self._served[credential]

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("Nobody could be asked who may still listen: %s", error)

    async def check(self) -> None:
        if not self._served:
            return
        for credential in await unit_of_work(credentials_ended, credentials=tuple(self._served)):
            for task in self._served.get(credential, ()):
                self._ended.add(task)
                task.cancel()
