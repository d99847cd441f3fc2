"""The log of runs: the only module that writes and reads run events.

Owns their SQL, the fence that keeps a lost executor from writing (an event is stored only while
its attempt is the run's own), the notification that tells other processes, with ids only, and how
the log of a run that is over becomes short.
When to write is the ``Flusher``'s and the ``lifecycle``'s to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import msgspec
from django.db import connection, transaction
from django.db.models.functions import Now

from chat import events
from chat.events import Event, LoggedEvent
from chat.models import Run, RunEvent, RunStatus

#: What a reader takes at once, whatever the size of the log: so many events, and so many bytes
#: (by one event more at most).
PAGE_EVENTS = 500
PAGE_BYTES = 1024 * 1024
#: Before the first event.
START = (0, 0)

#: Runs whose logs are folded in one transaction, and how long after their end: by then nobody
#: reads them as they happened, but for a listener that is very slow, who is given a snapshot.
FOLDED_AT_ONCE = 20
FOLDED_AFTER = timedelta(minutes=1)

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


#: Neighbours that are deltas of one message and one kind become the last one of them.
_FOLD = """
WITH marked AS (
    SELECT id, run_id, attempt, seq, kind, data, (
        kind IN ('text_delta', 'thinking_delta')
        AND kind = lag(kind) OVER log
        AND data ->> 'message_id' = lag(data ->> 'message_id') OVER log
    ) IS TRUE AS goes_on
    FROM chat_runevent WHERE run_id = ANY(%s)
    WINDOW log AS (PARTITION BY run_id, attempt ORDER BY seq)
), grouped AS (
    SELECT id, run_id, attempt, seq, data,
        count(*) FILTER (WHERE NOT goes_on) OVER (PARTITION BY run_id, attempt ORDER BY seq) AS part
    FROM marked
), folded AS (
    SELECT run_id, attempt, part, max(seq) AS seq, array_agg(id ORDER BY seq) AS ids,
        string_agg(data ->> 'text', '' ORDER BY seq) AS text
    FROM grouped GROUP BY run_id, attempt, part HAVING count(*) > 1
), kept AS (
    UPDATE chat_runevent AS event SET data = jsonb_set(data, '{text}', to_jsonb(folded.text))
    FROM folded WHERE event.id = folded.ids[array_length(folded.ids, 1)]
)
DELETE FROM chat_runevent AS event USING folded
WHERE event.id = ANY(folded.ids) AND event.id <> folded.ids[array_length(folded.ids, 1)]
"""


#: From ``position`` on, itself included where it is there.
_PAGE = """
SELECT attempt, seq, kind, data,
    row_number() OVER (ORDER BY attempt, seq) = number_read AS is_last_read
FROM (
    SELECT attempt, seq, kind, data, count(*) OVER () AS number_read,
        coalesce(sum(length(data)) FILTER (
            WHERE (attempt, seq) <> (%(attempt)s, %(seq)s)
        ) OVER (
            ORDER BY attempt, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS before
    FROM (
        SELECT attempt, seq, kind, data::text AS data FROM chat_runevent
        WHERE run_id = %(run)s AND (attempt, seq) >= (%(attempt)s, %(seq)s)
        ORDER BY attempt, seq LIMIT %(limit)s
    ) AS read
) AS measured
WHERE before < %(bytes)s ORDER BY attempt, seq
"""


@dataclass(frozen=True, slots=True)
class Page:
    """Events in their order; ``more`` where the log held more when they were read."""

    events: tuple[LoggedEvent, ...]
    more: bool


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


def news_notify(*, ids: Sequence[UUID]) -> None:
    """Tell whoever follows these runs and conversations that one was started, or is gone."""
    payloads = _payloads([str(each) for each in ids], "")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload", [CHANNEL, payloads]
        )


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
    *, run_id: UUID, position: tuple[int, int], limit: int = PAGE_EVENTS
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


class RunGoneError(LookupError):
    """The run was deleted, and its log with it."""


def page_after(*, run_id: UUID, position: tuple[int, int]) -> Page | None:
    """The next page of the log; None where it does not hold ``position`` itself.

    That one was folded away, or told by an executor whose attempt was over and never stored. One
    statement reads it with what follows, so that no folding comes in between. Raises
    ``RunGoneError``.
    """
    limit = PAGE_EVENTS + (position != START)
    attempt, seq = position
    values: dict[str, int | UUID] = {
        "run": run_id,
        "attempt": attempt,
        "seq": seq,
        "limit": limit,
        "bytes": PAGE_BYTES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAGE, values)
        rows = cursor.fetchall()
    if not rows and not Run.objects.filter(id=run_id).exists():
        raise RunGoneError
    is_whole = not rows or (len(rows) < limit and rows[-1][4])
    if position != START:
        if not rows or (rows[0][0], rows[0][1]) != position:
            return None
        rows = rows[1:]
    loaded = _loaded(run_id, ((*row[:3], json.loads(row[3])) for row in rows))
    return Page(tuple(loaded), more=not is_whole)


def event_exists(*, run_id: UUID, position: tuple[int, int]) -> bool:
    attempt, seq = position
    return RunEvent.objects.filter(run_id=run_id, attempt=attempt, seq=seq).exists()


def logs_fold() -> int:
    """Fold the deltas of runs that are over into whole messages; how many runs it were.

    What a replay tells stays the same. The id of a delta that is gone is no point to resume from.
    """
    ended = Run.objects.filter(
        status=RunStatus.FINISHED, log_folded=False, finished__lt=Now() - FOLDED_AFTER
    )
    with transaction.atomic(), connection.cursor() as cursor:
        locked = ended.select_for_update(no_key=True, skip_locked=True).order_by("finished")
        run_ids = list(locked.values_list("id", flat=True)[:FOLDED_AT_ONCE])
        if run_ids:
            cursor.execute(_FOLD, [run_ids])
            Run.objects.filter(id__in=run_ids).update(log_folded=True)
    return len(run_ids)


def seq_last(*, run_id: UUID, attempt: int) -> int:
    """The highest stored seq of an attempt, 0 where there is none."""
    last = (
        RunEvent.objects.filter(run_id=run_id, attempt=attempt)
        .order_by("-seq")
        .values_list("seq", flat=True)
        .first()
    )
    return last or 0


def is_writing(*, run_id: UUID) -> bool:
    """Whether the log tells of text of a message that it does not tell the end of."""
    said = RunEvent.objects.filter(
        run_id=run_id, kind__in=["text_delta", "thinking_delta", "message_completed"]
    )
    last = said.order_by("-attempt", "-seq").values_list("kind", flat=True).first()
    return last is not None and last != "message_completed"


def _loaded(run_id: UUID, rows: Iterable[tuple[int, int, str, object]]) -> Iterable[LoggedEvent]:
    for attempt, seq, kind, data in rows:
        yield LoggedEvent(run_id, attempt, seq, events.from_data(kind, data))
