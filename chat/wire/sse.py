"""The event stream: every event of a run as one named server-sent event.

Owns the framing that all SSE formats share. Names come from the closed set of ``chat.events``, data
is JSON on one line and ids are numbers: nothing that a person, a model or a tool wrote can forge a
line of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from chat.events import LoggedEvent, TextDelta, ThinkingDelta, to_data

KEEP_ALIVE = b": keep-alive\n\n"

#: Line separators of Unicode. Valid in JSON and in SSE, but many clients split lines at them.
_SEPARATORS = {
    "\N{NEXT LINE}".encode(): b"\\u0085",
    "\N{LINE SEPARATOR}".encode(): b"\\u2028",
    "\N{PARAGRAPH SEPARATOR}".encode(): b"\\u2029",
}

_encoder = msgspec.json.Encoder()


def encode(batch: Iterable[LoggedEvent], *, full_ids: bool = False) -> bytes:
    """What one write to a listener sends for a batch of events. ``full_ids`` name the run too."""
    return b"".join(named(logged, full_id=full_ids) for logged in batch)


def named(logged: LoggedEvent, *, full_id: bool = False) -> bytes:
    """One event under its name."""
    event = logged.event
    # A delta's data is the delta itself: the two frequent events are spared the copy.
    data = event if isinstance(event, TextDelta | ThinkingDelta) else to_data(event)
    event_id = logged.full_id if full_id else logged.id
    return frame(one_line(data), event_id=event_id, name=event.name)


def frame(data: bytes, *, event_id: str, name: str = "") -> bytes:
    """One server-sent event; unnamed ones are those that ``onmessage`` gets."""
    event = b"event: %b\n" % name.encode() if name else b""
    return b"%bid: %b\ndata: %b\n\n" % (event, event_id.encode(), data)


def one_line(value: object) -> bytes:
    """``value`` as JSON without any character that somebody may take for the end of a line."""
    data = _encoder.encode(value)
    for raw, escaped in _SEPARATORS.items():
        if raw in data:
            data = data.replace(raw, escaped)
    return data
