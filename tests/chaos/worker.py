"""A worker process to be killed: the real runtime with the scripted demo, on a given database.

Importing this module sets Django up, so that a fork server that preloads it forks ready workers.
"""

from __future__ import annotations

import asyncio
import os
from ctypes import c_int

import django
import pytest  # noqa: F401 - by this the settings know that the database is that of the tests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()


def work(database: str, pace: float, number: c_int, at: c_int) -> None:
    """Carry runs until killed; ``number`` is the worker's in the database, once it takes runs."""
    from django.db import connections

    connections["default"].settings_dict["NAME"] = database
    asyncio.run(_work(pace, number, at))


async def _work(pace: float, number: c_int, at: c_int) -> None:
    from chat.providers.catalogue import Catalogue, ResolvedModel
    from chat.providers.demo import DemoProvider
    from chat.runs import heartbeats, supervisor
    from chat.runs.runtime import Runtime
    from tests.chaos import moments

    supervisor.HEARTBEAT_SECONDS = 0.2
    heartbeats.STALLED_SECONDS = 0.6
    supervisor.SWEEP_SECONDS = 0.2
    moments.carrying(moments.Deaths(at))
    provider = DemoProvider(pace=pace)

    async def resolve(self: Catalogue, reference: str | None = None) -> ResolvedModel:
        return ResolvedModel(provider, "demo")

    Catalogue.resolve = resolve  # type: ignore[method-assign]
    async with Runtime(worker=True) as runtime:
        while True:
            supervisor_of = runtime._supervisor
            worker = supervisor_of._worker if supervisor_of else None
            number.value = worker.worker_id or 0 if worker else 0
            await asyncio.sleep(0.02)
