"""The procrastinate tasks of search.

``fill`` indexes the rest of long notes. Deferred by a save that left something pending; every
minute it looks for what other ways of writing left: imports, SQL. ``reindex`` writes a person's
entries anew when they chose another language.
"""

from __future__ import annotations

from uuid import UUID

from procrastinate.contrib.django import app

from notes.search.filling import FILL_TASK, REINDEX_TASK, fill_step, reindex_step
from tools.threads import unit_of_work


@app.periodic(cron="* * * * *")
@app.task(name=FILL_TASK)
async def fill(timestamp: int = 0) -> None:
    while await unit_of_work(fill_step):
        pass


@app.task(name=REINDEX_TASK)
async def reindex(owner_id: int) -> None:
    after: UUID | None = UUID(int=0)
    while after is not None:
        after = await unit_of_work(reindex_step, owner_id=owner_id, after=after)
