"""The procrastinate tasks of search.

``fill`` indexes the rest of long notes. Deferred by a save that left something pending; every
minute it looks for what other ways of writing left, and for what was set aside. One is at work over
all processes, and one waits at most. ``reindex`` writes a person's entries anew when they chose
another language. Both are begun again where a worker stops in their middle.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from django.db import OperationalError
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from notes.search.filling import FILL_TASK, REINDEX_TASK, fill_step, reindex_step
from tools.threads import chore


class Interrupted(Exception):
    """The worker stops in the middle: the job is handed back."""


AGAIN = RetryStrategy(wait=2, retry_exceptions={Interrupted, OperationalError})


@app.periodic(cron="* * * * *")
@app.task(name=FILL_TASK, lock=FILL_TASK, queueing_lock=FILL_TASK, retry=AGAIN)
async def fill(timestamp: int = 0) -> None:
    try:
        while await chore(fill_step):
            pass
    except asyncio.CancelledError:
        raise Interrupted from None


@app.task(name=REINDEX_TASK, retry=AGAIN)
async def reindex(owner_id: int) -> None:
    after: UUID | None = UUID(int=0)
    try:
        while after is not None:
            after = await chore(reindex_step, owner_id=owner_id, after=after)
    except asyncio.CancelledError:
        raise Interrupted from None
