"""The pages' own stream: a run's events as pieces of HTML.

``block`` is one top-level Markdown block of an answer (the message, which block, how much of its
last version stays, HTML), ``fragment`` a rendered part with the element it replaces or goes into,
``done`` the end. The first thing sent is always the whole run so far, rendered by the very
template of a reload: whoever connects, first or again, has nothing twice and misses nothing.
Targets are made of our own ids: nothing that a model or tool wrote chooses where HTML goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.html import escape

from chat.events import (
    ApprovalRequired,
    ApprovalResolved,
    Done,
    ErrorOccurred,
    Event,
    LoggedEvent,
    MessageCompleted,
    Notice,
    RunStarted,
    Snapshot,
    TextDelta,
    ThinkingDelta,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from chat.loop.folding import Folded, FoldedMessage
from chat.wire import sse
from chat.wire.shown import UNKNOWN, UndoState, call_shown, message_shown, run_shown
from web.markdown import Block, MarkdownStream

#: Rendering takes up to 8 ms for 1 KB of a table.
HEAVY_CHARACTERS = 2_000

Frame = tuple[str, dict[str, object]]
How = Literal["replace", "append", "inner"]


class HtmlStream:
    """Feed it a run's events from the first one; it answers what the page gets."""

    def __init__(self, run_id: UUID) -> None:
        self._run_id = run_id
        self._folded = Folded()
        self._texts: dict[UUID, MarkdownStream] = {}
        self._whole_due = True
        #: What became of changes, by the model's ids of the calls; see ``shows_undo``.
        self.undo: Mapping[str, UndoState] = UNKNOWN

    def shows_undo(self, batch: Iterable[LoggedEvent]) -> bool:
        """Whether encoding renders old calls again, so that ``undo`` should be up to date."""
        anew = RunStarted | Snapshot | Done
        return self._whole_due or any(isinstance(logged.event, anew) for logged in batch)

    def encode(self, batch: Iterable[LoggedEvent]) -> bytes:
        """What one write to the page sends for a batch of events."""
        events = list(_joined(batch))
        if not events:
            return b""
        frames = [frame for event, _ in events for frame in self._taken(event)]
        last = events[-1][1]
        if self._whole_due:
            frames = list(self._whole())
            self._whole_due = False
        frames = list(_latest(frames))
        if self._folded.stop_reason is not None:
            frames.append(("done", {"reason": self._folded.stop_reason}))
        return b"".join(
            sse.frame(sse.one_line(data), event_id=last, name=name) for name, data in frames
        )

    def is_heavy(self, batch: Iterable[LoggedEvent]) -> bool:
        """Whether encoding takes so long that it must not keep an event loop from other streams."""
        fresh = sum(len(getattr(logged.event, "text", "")) for logged in batch)
        return fresh + sum(text.open_length for text in self._texts.values()) > HEAVY_CHARACTERS

    def _whole(self) -> Iterator[Frame]:
        html = {message_id: text.finished for message_id, text in self._texts.items()}
        run = run_shown(self._folded, run_id=self._run_id, html=html, undo=self.undo)
        yield _fragment(f"run-{self._run_id}", "replace", run.html())
        for message_id, text in self._texts.items():
            if block := text.opened:
                yield _block(message_id, block)

    def _taken(self, event: Event) -> Iterator[Frame]:
        known = {message.id for message in self._folded.messages}
        self._folded.apply(event)
        match event:
            case TextDelta() | ThinkingDelta() | MessageCompleted():
                message = next(m for m in self._folded.messages if m.id == event.message_id)
                yield from self._message_frames(event, message, new=message.id not in known)
            case ToolUse():
                yield self._calls_frame(self._folded.messages[-1])
            case ToolStarted() | ToolResult():
                yield self._call_frame(event.tool_call_id)
            case ApprovalRequired() | ApprovalResolved():
                yield self._calls_frame(self._call(event.tool_call_id)[0])
                yield self._end_frame()
            case Notice():
                target = f"run-{self._run_id}-notices"
                yield _rendered(target, "append", "chat/notice.html", notice=event)
            case ErrorOccurred() | Done():
                yield from self._end_frames(event)
            case RunStarted() | Snapshot() if known or self._folded.messages:
                self._begin_anew()
            case _:
                return

    def _message_frames(
        self,
        event: TextDelta | ThinkingDelta | MessageCompleted,
        message: FoldedMessage,
        *,
        new: bool,
    ) -> Iterator[Frame]:
        stream = self._texts.setdefault(message.id, MarkdownStream())
        if new:
            shown = message_shown(message, html="")
            target = f"run-{self._run_id}-messages"
            yield _rendered(target, "append", "chat/message.html", message=shown)
        match event:
            case ThinkingDelta(text=text) if not new and message.thinking != text:
                yield _fragment(f"m-{message.id}-thought", "append", escape(text))
            case ThinkingDelta() if not new:
                yield _thinking(message)
            case TextDelta(text=text):
                if message.thinking and message.text == text:
                    yield _thinking(message)
                for block in stream.feed(text):
                    yield _block(message.id, block)
            case MessageCompleted():
                if message.thinking and not message.text:
                    yield _thinking(message)
                for block in stream.feed("", end=True):
                    yield _block(message.id, block)

    def _calls_frame(self, message: FoldedMessage) -> Frame:
        shown = message_shown(message, html="", undo=self.undo)
        return _rendered(f"m-{message.id}-calls", "inner", "chat/calls.html", message=shown)

    def _call_frame(self, call_id: str) -> Frame:
        message, position = self._call(call_id)
        shown = call_shown(
            message.calls[position], message_id=message.id, position=position, undo=self.undo
        )
        return _rendered(shown.id, "replace", "chat/call.html", call=shown)

    def _call(self, call_id: str) -> tuple[FoldedMessage, int]:
        return next(
            (message, position)
            for message in reversed(self._folded.messages)
            for position, call in enumerate(message.calls)
            if call.id == call_id
        )

    def _end_frames(self, event: ErrorOccurred | Done) -> Iterator[Frame]:
        if isinstance(event, Done):
            for message_id, stream in self._texts.items():
                for block in stream.feed("", end=True):
                    yield _block(message_id, block)
            # What is not known to have taken effect may have: by now its undo says so.
            for message in self._folded.messages:
                if any(call.status == "unknown" for call in message.calls):
                    yield self._calls_frame(message)
            yield from self._undo_frames()
        yield self._end_frame()

    def _end_frame(self) -> Frame:
        run = run_shown(self._folded, run_id=self._run_id, html={}, undo=self.undo)
        return _rendered(f"run-{self._run_id}-end", "inner", "chat/end.html", run=run)

    def _undo_frames(self) -> Iterator[Frame]:
        """A call that had just been made could be undone; others of the run may stand on it now."""
        for message in self._folded.messages:
            for position, call in enumerate(message.calls):
                shown = call_shown(call, message_id=message.id, position=position, undo=self.undo)
                if shown.undo_words:
                    yield _rendered(f"{shown.id}-undo", "replace", "chat/undo.html", call=shown)

    def _begin_anew(self) -> None:
        """What a page has seen of unfinished texts no longer holds: it is told the whole again."""
        self._whole_due = True
        self._texts = {}
        for message in self._folded.messages:
            self._texts[message.id] = MarkdownStream()
            self._texts[message.id].feed(message.text, end=message.finish_reason is not None)


def _latest(frames: Sequence[Frame]) -> Iterator[Frame]:
    """Of what fills the same element several times the last: calls are asked about all at once."""
    last = {data["target"]: place for place, (_, data) in enumerate(frames) if _fills(data)}
    for place, (name, data) in enumerate(frames):
        if not _fills(data) or last[data["target"]] == place:
            yield name, data


def _fills(data: Mapping[str, object]) -> bool:
    return data.get("how") == "inner"


def _joined(batch: Iterable[LoggedEvent]) -> Iterator[tuple[Event, str]]:
    """The events with their ids, neighbouring deltas of one message as one: a replay has many."""
    for delta, group in groupby(batch, key=lambda logged: _delta_key(logged.event)):
        items = list(group)
        if delta is None:
            yield from ((item.event, item.id) for item in items)
        else:
            kind, message_id = delta
            text = "".join(getattr(item.event, "text", "") for item in items)
            yield kind(message_id=message_id, text=text), items[-1].id


def _delta_key(event: Event) -> tuple[type[TextDelta | ThinkingDelta], UUID] | None:
    return (type(event), event.message_id) if isinstance(event, TextDelta | ThinkingDelta) else None


def _thinking(message: FoldedMessage) -> Frame:
    shown = message_shown(message, html="")
    return _rendered(f"m-{message.id}-thinking", "inner", "chat/thinking.html", message=shown)


def _block(message_id: UUID, block: Block) -> Frame:
    data = {"target": f"m-{message_id}-text", "index": block.index, "keep": block.keep}
    return "block", {**data, "html": block.html}


def _rendered(target: str, how: How, template: str, **context: object) -> Frame:
    return _fragment(target, how, render_to_string(template, context))


def _fragment(target: str, how: How, html: str) -> Frame:
    # The encoder takes plain strings alone, and templates give safe ones.
    return "fragment", {"target": target, "how": how, "html": "".join([html])}
