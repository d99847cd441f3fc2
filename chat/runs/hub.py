"""Fan-out of events in memory to the listeners of this process.

Owns subscriptions and their bound: a listener that reads too slowly is cut off and goes on from the
log, so that it never slows a run and never holds more than its share of memory. Knows no database.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias
from uuid import UUID

from chat import events
from chat.events import LoggedEvent

QUEUE_BYTES = 1024 * 1024

#: What an event costs in memory beside its text, in bytes.
_EVENT_BYTES = 300


#: What is listened to: a run, a conversation, or all that is a person's, by the person's key.
Topic: TypeAlias = UUID | int


class Subscription:
    """One listener of one topic. After ``wait`` came back, ``take`` gives what has arrived.

    ``behind`` is true where the log holds events that were not delivered here.
    """

    def __init__(self) -> None:
        self._queue: deque[LoggedEvent] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self.behind = False

    def put(self, logged: tuple[LoggedEvent, ...]) -> None:
        if self.behind:
            return
        self._bytes += sum(_size(item) for item in logged)
        if self._bytes > QUEUE_BYTES:
            self.fall_behind()
        else:
            self._queue.extend(logged)
            self._news.set()

    def fall_behind(self) -> None:
        """Drop what is queued: the log has it."""
        self.behind = True
        self._queue.clear()
        self._bytes = 0
        self._news.set()

    def wake(self) -> None:
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Whether something arrived within ``seconds``."""
        if not self._news.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return False
        self._news.clear()
        return True

    def take(self) -> tuple[LoggedEvent, ...]:
        taken = tuple(self._queue)
        self._queue.clear()
        self._bytes = 0
        return taken

    def caught_up(self) -> None:
        """To be called *before* the log is read: what arrives from now on is queued again."""
        self.behind = False


class Hub:
    def __init__(self) -> None:
        self._subscriptions: dict[Topic, set[Subscription]] = {}

    @property
    def is_idle(self) -> bool:
        """Nobody listens to anything."""
        return not self._subscriptions

    @contextmanager
    def subscribed(self, topic: Topic) -> Iterator[Subscription]:
        subscription = Subscription()
        self._subscriptions.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            listeners = self._subscriptions[topic]
            listeners.discard(subscription)
            if not listeners:
                del self._subscriptions[topic]

    def publish(self, run_id: UUID, logged: tuple[LoggedEvent, ...]) -> None:
        for subscription in self._subscriptions.get(run_id, ()):
            subscription.put(logged)

    def news_in_log(self, topic: Topic) -> None:
        """Another process, or a synchronous door of this one, wrote what concerns this topic."""
        for subscription in self._subscriptions.get(topic, ()):
            subscription.fall_behind()

    def news_anywhere(self) -> None:
        """Notifications may have been lost, or the process is closing: everybody looks again."""
        for listeners in self._subscriptions.values():
            for subscription in listeners:
                subscription.fall_behind()


def _size(item: LoggedEvent) -> int:
    match item.event:
        case events.TextDelta() | events.ThinkingDelta():
            return _EVENT_BYTES + len(item.event.text)
        case events.ToolResult():
            return _EVENT_BYTES + len(item.event.content)
        case events.ToolUse():
            return _EVENT_BYTES + sum(len(call.arguments) for call in item.event.calls)
        case _:
            return _EVENT_BYTES
