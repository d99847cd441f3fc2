"""A person's feed as a stream: which of their things changed, and how; never what is in them.

Owns the form of these entries. Names come from the closed set of ``OwnerEventKind`` and data are
ids: there is nothing in it that anybody wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.wire.sse import frame, one_line
from web.models import OwnerEvent, OwnerEventKind

SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the feed: its name, its data and the position to go on after."""

    name: str
    data: dict[str, Any]
    position: int


def entry(event: OwnerEvent) -> Entry:
    data = {"id": str(event.object_id)}
    if event.parent_id is not None:
        data["conversation"] = str(event.parent_id)
    return Entry(OwnerEventKind(event.kind).value, data, event.position or 0)


def snapshot(
    *,
    position: int,
    active_runs: Sequence[tuple[UUID, UUID, str]],
    approvals: Sequence[tuple[UUID, UUID]],
) -> Entry:
    """Where the feed stands: what goes on and waits now; everything else is to be read again."""
    runs = [
        {"id": str(run_id), "conversation": str(conversation_id), "status": status}
        for run_id, conversation_id, status in active_runs
    ]
    waiting = [
        {"id": str(approval_id), "conversation": str(conversation_id)}
        for approval_id, conversation_id in approvals
    ]
    data = {"covers": str(position), "runs": runs, "approvals": waiting}
    return Entry(SNAPSHOT, data, position)


def frames(entries: Iterable[Entry]) -> bytes:
    """Server-sent events."""
    return b"".join(
        frame(one_line(each.data), event_id=str(each.position), name=each.name) for each in entries
    )


def lines(entries: Iterable[Entry]) -> bytes:
    """Lines of JSON."""
    return b"".join(
        one_line({"type": each.name.upper(), **each.data, "event": str(each.position)}) + b"\n"
        for each in entries
    )
