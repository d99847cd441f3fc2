"""A runtime that plays the log and what a test adds to it, and people who ask."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import pytest

from chat.events import Done, Event, LoggedEvent
from chat.models import Conversation, Run, RunStatus
from chat.runs import event_log
from chat.runs.guard import Guard
from chat.runs.hub import Hub
from chat.runs.lifecycle import run_start
from tests.chat.wire.parser import Event as SentEvent
from tests.chat.wire.parser import parse
from tools.threads import unit_of_work


class FakeFlusher:
    async def settled(self, run_id: UUID) -> None:
        """Nothing is ever pending here."""


class FakeRuntime:
    """Stands for ``runs.runtime.Runtime``: the log, then ``live`` batches, None for keep-alives."""

    def __init__(self, *live: tuple[LoggedEvent, ...] | None) -> None:
        self.flusher = FakeFlusher()
        self.hub = Hub()
        self.guard = Guard()
        self.live = live
        self.asked: list[tuple[int, int] | None] = []
        self.closed = 0

    async def events(
        self, run_id: UUID, after: tuple[int, int] | None = None
    ) -> AsyncGenerator[tuple[LoggedEvent, ...] | None, None]:
        self.asked.append(after)
        try:
            stored = await unit_of_work(
                event_log.events_after, run_id=run_id, position=after or (0, 0)
            )
            if stored:
                yield stored
                if isinstance(stored[-1].event, Done):
                    return
            for batch in self.live:
                yield batch
        finally:
            self.closed += 1


def sent(response: Any, runtime: FakeRuntime) -> list[SentEvent]:
    """All that a handed-over stream sends, as a browser reads it."""
    return parse(raw(response, runtime))


def raw(response: Any, runtime: FakeRuntime) -> bytes:
    async def collect() -> bytes:
        return b"".join([part async for part in response.source({"runtime": runtime})])

    return asyncio.run(collect())


def answer(response: Any, runtime: FakeRuntime) -> tuple[int, bytes, dict[str, str]]:
    """The status, body and headers that a deferred response comes to."""
    status, body, headers = asyncio.run(response.producer({"runtime": runtime}))
    return status, body, headers


def logged(run: Run, *events: Event, attempt: int = 1) -> tuple[LoggedEvent, ...]:
    return tuple(LoggedEvent(run.id, attempt, seq, event) for seq, event in enumerate(events, 1))


def store(run: Run, *events: Event, attempt: int = 1) -> None:
    """Put events into the run's log; it is finished where ``done`` is the last one."""
    done = events[-1] if isinstance(events[-1], Done) else None
    Run.objects.filter(id=run.id).update(
        attempt=attempt,
        status=RunStatus.FINISHED if done else RunStatus.RUNNING,
        stop_reason=done.reason if done else "",
    )
    event_log.events_store(logged=logged(run, *events, attempt=attempt), origin="")


@pytest.fixture
def conversation(user) -> Conversation:
    return Conversation.objects.create(owner=user, title="Groceries")


@pytest.fixture
def run(user, conversation) -> Run:
    return run_start(owner=user, conversation_id=conversation.id, content="Make a note.")
