"""The log of runs: the only module that writes and reads run events.

Owns their SQL, the fence that keeps a lost executor from writing (an event is stored only while
its attempt is the run's own) and the notification that tells other processes, with ids only.
When to write is the ``Flusher``'s and the ``lifecycle``'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec
from django.db import connection

from chat import events
from chat.events import Event, LoggedEvent
from chat.models import RunEvent

PAGE = 2_000

CHANNEL = "notewire_runs"

#: PostgreSQL refuses payloads of 8,000 bytes and more; an id with its comma takes 37.
_IDS_PER_NOTIFICATION = 200

_INSERT = """
WITH live AS (
    SELECT id, attempt FROM chat_run WHERE id = ANY(%s::uuid[]) ORDER BY id FOR KEY SHARE
), stored AS (
    INSERT INTO chat_runevent (run_id, attempt, seq, kind, data, created)
    SELECT new.run_id, new.attempt, new.seq, new.kind, new.data::jsonb, now()
    FROM unnest(%s::uuid[], %s::int[], %s::int[], %s::text[], %s::text[])
        AS new(run_id, attempt, seq, kind, data)
    JOIN live ON live.id = new.run_id AND live.attempt = new.attempt
    ON CONFLICT DO NOTHING
)
SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload
"""


def events_store(*, logged: Sequence[LoggedEvent], origin: str) -> None:
    """Insert events of any number of runs in one statement and notify once.

    Repeating it is harmless; events of deleted runs and of older attempts are left out.
    ``origin`` names the process whose listeners have them already ("" where none has).
    """
    if not logged:
        return
    rows = [
        (
            str(item.run_id),
            item.attempt,
            item.seq,
            item.event.name,
            msgspec.json.encode(events.to_data(item.event)).decode(),
        )
        for item in logged
    ]
    run_ids, attempts, seqs, kinds, data = map(list, zip(*rows, strict=True))
    payloads = _payloads(sorted(set(run_ids)), origin)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [run_ids, run_ids, attempts, seqs, kinds, data, CHANNEL, payloads])


def conversation_notify(*, conversation_id: UUID) -> None:
    """Tell whoever follows the conversation that a run of it was started, or that it is gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f":{conversation_id}"])


def events_append(
    *, run_id: UUID, attempt: int, appended: Sequence[Event], origin: str
) -> tuple[LoggedEvent, ...]:
    """Number events behind the last stored one and store them; whoever calls has locked the run."""
    first = seq_last(run_id=run_id, attempt=attempt) + 1
    logged = tuple(
        LoggedEvent(run_id, attempt, seq, event) for seq, event in enumerate(appended, first)
    )
    events_store(logged=logged, origin=origin)
    return logged


def _payloads(ids: Sequence[str], origin: str) -> list[str]:
    return [
        f"{origin}:{','.join(ids[start : start + _IDS_PER_NOTIFICATION])}"
        for start in range(0, len(ids), _IDS_PER_NOTIFICATION)
    ]


def notification_parse(payload: str) -> tuple[str, tuple[UUID, ...]]:
    """Origin of a payload, and the ids of runs and conversations that there is news of."""
    origin, _, ids = payload.partition(":")
    return origin, tuple(UUID(run_id) for run_id in ids.split(",") if run_id)


def events_after(
    *, run_id: UUID, position: tuple[int, int], limit: int = PAGE
) -> tuple[LoggedEvent, ...]:
    """The run's events strictly after ``(attempt, seq)``, in order, at most ``limit``."""
    attempt, seq = position
    rows = (
        RunEvent.objects.filter(run_id=run_id, attempt__gte=attempt)
        .exclude(attempt=attempt, seq__lte=seq)
        .order_by("attempt", "seq")
        .values_list("attempt", "seq", "kind", "data")[:limit]
    )
    return tuple(_loaded(run_id, rows))


def seq_last(*, run_id: UUID, attempt: int) -> int:
    """The highest stored seq of an attempt, 0 where there is none."""
    last = (
        RunEvent.objects.filter(run_id=run_id, attempt=attempt)
        .order_by("-seq")
        .values_list("seq", flat=True)
        .first()
    )
    return last or 0


def _loaded(run_id: UUID, rows: Iterable[tuple[int, int, str, object]]) -> Iterable[LoggedEvent]:
    for attempt, seq, kind, data in rows:
        yield LoggedEvent(run_id, attempt, seq, events.from_data(kind, data))
