"""Events as lines of JSON, for programs that read line by line.

Owns the types of the lines. A line is one JSON object; a blank line says only that the connection
lives. ``event`` is the event's id, to resume after; of several lines that tell one event only the
last has it, so that whoever resumes after the last id seen misses none. Events that only matter to
whoever keeps rows (``usage``, ``tool_started``…) have no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from chat.events import (
    Event,
    LoggedEvent,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolResult,
    ToolUse,
    to_data,
)
from chat.wire.sse import one_line

KEEP_ALIVE = b"\n"

#: Events whose line is their data under another name.
_TYPES = {
    "notice": "NOTICE",
    "error": "ERROR",
    "approval_required": "APPROVAL",
    "approval_resolved": "APPROVAL_RESOLVED",
    "snapshot": "SNAPSHOT",
    "done": "DONE",
}

#: An answer that is taken on after an interruption writes an unfinished message anew.
RESTARTED = {
    "type": "NOTICE",
    "code": "restarted",
    "text": "The answer goes on; a message that was not finished is written anew.",
}


def encode(batch: Iterable[LoggedEvent], *, full_ids: bool = False) -> bytes:
    """What one write to a listener sends. ``full_ids`` name the run too."""
    return b"".join(
        one_line(line) + b"\n" for logged in batch for line in _numbered(logged, full_ids)
    )


def _numbered(logged: LoggedEvent, full_ids: bool) -> list[dict[str, Any]]:
    lines = list(_lines(logged.event))
    if lines:
        lines[-1]["event"] = logged.full_id if full_ids else logged.id
    return lines


def _lines(event: Event) -> Iterator[dict[str, Any]]:
    match event:
        case TextDelta(text=text):
            yield {"type": "CHAT", "text": text}
        case ThinkingDelta(text=text):
            yield {"type": "THINKING", "text": text}
        case ToolUse(calls=calls):
            for call in calls:
                arguments = _parsed(call.arguments)
                yield {"type": "TOOL_CALL", "name": call.name, "args": arguments, "id": call.id}
        case ToolResult():
            yield {
                "type": "TOOL_RESULT",
                "name": event.tool,
                "result": event.content,
                "id": event.tool_call_id,
                "is_error": event.is_error,
                "status": event.status,
            }
        case RunStarted(interrupted=True):
            yield dict(RESTARTED)
        case _ if event.name in _TYPES:
            yield {"type": _TYPES[event.name], **to_data(event)}
        case _:
            return


def _parsed(arguments: str) -> dict[str, Any] | None:
    """The arguments as an object; None where the model's text is none."""
    try:
        parsed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
