"""Numbers a run's events, and merges text deltas that come close together into one event.

The first delta goes out at once, then one merged event per window: one event is one log row is one
live event, so that replay and live are the same. Owns the seq of one attempt; no I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from chat import events
from chat.events import Event, LoggedEvent

Publish = Callable[[tuple[LoggedEvent, ...]], None]
TextEvent = events.TextDelta | events.ThinkingDelta


class Gatherer:
    def __init__(self, *, run_id: UUID, attempt: int, seconds: float, publish: Publish) -> None:
        self._run_id = run_id
        self._attempt = attempt
        self._seconds = seconds
        self._publish = publish
        self._seq = 0
        self._gathered: list[TextEvent] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, event: TextEvent) -> None:
        """Publish at once where the window is closed, else with the others at its end."""
        self._gathered.append(event)
        if self._timer is None:
            self._send()
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._window_ended)

    def emit(self, event: Event) -> None:
        """Publish an event that is not committed before, after the text that came before it."""
        self.flush()
        self._publish(self.number((event,)))

    def number(self, batch: Sequence[Event]) -> tuple[LoggedEvent, ...]:
        logged = []
        for event in batch:
            self._seq += 1
            logged.append(LoggedEvent(self._run_id, self._attempt, self._seq, event))
        return tuple(logged)

    def flush(self) -> None:
        """Publish what is gathered now; the next delta opens a new window."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._send()

    def _window_ended(self) -> None:
        self._timer = None
        if self._gathered:
            self._send()
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._window_ended)

    def _send(self) -> None:
        if self._gathered:
            merged = _merged(self._gathered)
            self._gathered = []
            self._publish(self.number(merged))


def _merged(gathered: list[TextEvent]) -> list[TextEvent]:
    """Neighbours of one kind and one message as one event."""
    runs: list[list[TextEvent]] = []
    for event in gathered:
        last = runs[-1][0] if runs else None
        if last is not None and (type(last), last.message_id) == (type(event), event.message_id):
            runs[-1].append(event)
        else:
            runs.append([event])
    return [
        run[0] if len(run) == 1 else _joined(run[0], "".join(event.text for event in run))
        for run in runs
    ]


def _joined(first: TextEvent, text: str) -> TextEvent:
    return type(first)(message_id=first.message_id, text=text)
