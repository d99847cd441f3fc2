"""A worker process to be killed: the real runtime with the scripted demo, on a given database.

Importing this module sets Django up, so that a fork server that preloads it forks ready workers.
"""

from __future__ import annotations

import asyncio
import os
from multiprocessing.synchronize import Event

import django
import pytest  # noqa: F401 - by this the settings know that the database is that of the tests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()


def work(database: str, pace: float, ready: Event) -> None:
    """Carry runs until killed; ``ready`` is set once runs are taken."""
    from django.db import connections

    connections["default"].settings_dict["NAME"] = database
    asyncio.run(_work(pace, ready))


async def _work(pace: float, ready: Event) -> None:
    from chat.providers.catalogue import Catalogue, ResolvedModel
    from chat.providers.demo import DemoProvider
    from chat.runs import heartbeats, supervisor
    from chat.runs.runtime import Runtime

    supervisor.HEARTBEAT_SECONDS = 0.2
    heartbeats.STALLED_SECONDS = 0.6
    supervisor.SWEEP_SECONDS = 0.2
    provider = DemoProvider(pace=pace)

    async def resolve(self: Catalogue, reference: str | None = None) -> ResolvedModel:
        return ResolvedModel(provider, "demo")

    Catalogue.resolve = resolve  # type: ignore[method-assign]
    async with Runtime(worker=True) as runtime:
        while runtime.worker_state != "running":
            await asyncio.sleep(0.01)
        ready.set()
        await asyncio.Event().wait()
