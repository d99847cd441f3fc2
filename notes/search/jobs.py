"""The procrastinate task that indexes the rest of long notes.

Deferred by a save that left something pending; every minute it looks for what other ways of writing
left: imports, SQL.
"""

from __future__ import annotations

from procrastinate.contrib.django import app

from notes.search.filling import FILL_TASK, fill_step
from tools.threads import unit_of_work


@app.periodic(cron="* * * * *")
@app.task(name=FILL_TASK)
async def fill(timestamp: int = 0) -> None:
    while await unit_of_work(fill_step):
        pass
