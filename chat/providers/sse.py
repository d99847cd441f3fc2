"""Bytes of a ``text/event-stream`` to events, whatever the cuts between reads.

Follows https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream but
for one thing: what is pending at the end of the stream is given out too, marked as ``cut``, because
some servers leave out the last blank line. What the data means belongs to ``assembly``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: A single event may be this big; a server that sends more without a blank line is not one of ours.
MAX_EVENT_BYTES = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n?|\n")


class EventTooLargeError(Exception):
    """One event is longer than the decoder's limit; nothing after it can be trusted."""


class ServerEvent(NamedTuple):
    """``name`` is "" for an unnamed event. ``cut``: the stream ended before its blank line."""

    data: bytes
    name: str = ""
    cut: bool = False


class EventDecoder:
    """Feed it each read; every byte is looked at a constant number of times."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.last_event_id = ""
        self._max = max_event_bytes
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._name = ""
        self._first_line = True
        self._after_cr = False

    def feed(self, read: bytes) -> list[ServerEvent]:
        """The events that ``read`` completes."""
        if self._after_cr and read:
            self._after_cr = False
            if read.startswith(b"\n"):
                read = read[1:]
        if b"\r" in read:
            self._after_cr = read.endswith(b"\r")
            *lines, rest = _LINE_END.split(read)
        else:
            *lines, rest = read.split(b"\n")
        events: list[ServerEvent] = []
        if lines and self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line.clear()
        for line in lines:
            self._take(line, events)
        if lines:
            self._line_size = 0
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
        if self._data_size + self._line_size > self._max:
            raise EventTooLargeError(f"One event is longer than {self._max} bytes.")
        return events

    def close(self) -> list[ServerEvent]:
        """What is pending when the stream ends, complete or not."""
        events: list[ServerEvent] = []
        if self._line:
            self._take(b"".join(self._line), events)
            self._line.clear()
        if self._data:
            events.append(ServerEvent(b"\n".join(self._data), self._name, cut=True))
            self._data.clear()
        return events

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(ServerEvent(b"\n".join(self._data), self._name))
                self._data.clear()
                self._data_size = 0
            self._name = ""
        elif line.startswith(b"data: "):
            self._data.append(line[6:])
            self._data_size += len(line)
        elif not line.startswith(b":"):
            self._take_field(line)

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(line)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self.last_event_id = value.decode(errors="replace")
