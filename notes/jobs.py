"""What the worker does for notes by itself: once an hour it empties the bins of what is old."""

from __future__ import annotations

from django.utils import timezone
from procrastinate.contrib.django import app

from notes.services import KEPT_IN_BIN, bin_purge
from tools.threads import chore


@app.periodic(cron="17 * * * *")
@app.task(name="notes_purge", queueing_lock="notes_purge")
async def bins_empty(timestamp: int) -> None:
    await chore(bin_purge, before=timezone.now() - KEPT_IN_BIN)
