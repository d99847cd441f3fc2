"""A stage for executors: the hub and the log's writer of a runtime, with a scripted provider."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from chat.providers.catalogue import Catalogue
from chat.runs import event_log, lifecycle
from chat.runs.executor import execute
from chat.runs.flusher import Flusher
from chat.runs.hub import Hub
from chat.runs.runtime import Runtime
from tools.threads import unit_of_work


@dataclass
class Chosen:
    provider: object
    model: str = "m"


class Stage(Runtime):
    """A runtime without a worker and without connections of its own."""

    def __init__(self, provider) -> None:
        self.origin = "test"
        self.hub = Hub()
        self.flusher = Flusher(origin=self.origin, interval=0.001)
        self.catalogue = cast("Catalogue", self)
        self.provider = provider

    async def resolve(self, reference):
        if isinstance(self.provider, Exception):
            raise self.provider
        return Chosen(self.provider)

    async def __aenter__(self):
        self._flushing = asyncio.create_task(self.flusher.run())
        return self

    async def __aexit__(self, *error):
        self.flusher.close()
        await self._flushing

    async def carry(self, run, abort_reason=lambda: None) -> None:
        await execute(run_id=run.id, runtime=self, abort_reason=abort_reason)

    async def log(self, run):
        await self.flusher.settled(run.id)
        return await unit_of_work(event_log.events_after, run_id=run.id, position=(0, 0))


@pytest.fixture
def stage(units):
    return Stage


@pytest.fixture
def start(units, user):
    async def make(content="hello", **options):
        return await unit_of_work(lifecycle.run_start, owner=user, content=content, **options)

    return make
