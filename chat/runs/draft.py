"""The message that a run is writing now: its text so far and its place in the tree. No I/O."""

from __future__ import annotations

from uuid import UUID

from chat import events
from chat.runs.records import Record


class Draft:
    """``parent_id`` is the last whole message; a draft taken on after a crash starts empty."""

    def __init__(self, *, parent_id: UUID, message_id: UUID | None = None) -> None:
        self._parent_id = parent_id
        self._message_id = message_id
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._provider = ""
        self._model = ""

    def answerer(self, *, provider: str, model: str) -> None:
        self._provider, self._model = provider, model

    def add(self, event: events.TextDelta | events.ThinkingDelta) -> None:
        self._message_id = event.message_id
        target = self._text if isinstance(event, events.TextDelta) else self._thinking
        target.append(event.text)

    def record(self) -> Record | None:
        """The text so far, to be checkpointed; None where no message is open."""
        if self._message_id is None:
            return None
        return self._record(self._message_id)

    def complete(
        self, event: events.MessageCompleted, usage: events.UsageReported | None
    ) -> Record:
        """The whole message; what comes next follows it."""
        record = self._record(event.message_id, event, usage)
        self._parent_id = event.message_id
        self._message_id = None
        self._text, self._thinking = [], []
        return record

    def _record(
        self,
        message_id: UUID,
        event: events.MessageCompleted | None = None,
        usage: events.UsageReported | None = None,
    ) -> Record:
        return Record(
            message_id=message_id,
            parent_id=self._parent_id,
            text="".join(self._text),
            thinking="".join(self._thinking),
            provider=self._provider,
            model=self._model,
            event=event,
            usage=usage,
        )
