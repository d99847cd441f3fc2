"""What has changed of a person's things: the durable feed behind ``/api/events/``.

Owns the entries, their order and how long they are kept. Whoever changes something records it here
in its own transaction; an entry says which thing and what kind of change, never what is in it.

Entries are numbered when they are read, not when they are written. A number taken inside the
writer's transaction would say when it began to write: a transaction that takes 5, is slow, and
commits after 6 was read would be skipped for good. Nor may writers wait for one another: they hold
other locks. So an entry is inserted without a position, and readers give positions to what is
committed, in a short transaction of their own under a lock of the owner: what is numbered later
gets higher numbers. Entries of one thing keep their order, since whoever changes it next waited
for the first to commit and then sees it.

Old entries are deleted from the lowest position up, an owner's last one never. So a position is
one to go on from exactly if it is there: where it is gone, later ones may be gone as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from web.models import OwnerEvent, OwnerEventKind

CHANNEL = "notewire_owners"
KEPT = timedelta(days=7)
PAGE = 500

_INSERT = """
WITH new AS (
    INSERT INTO web_ownerevent (owner_id, kind, object_id, parent_id, created)
    SELECT %s, kind, object_id, parent_id, now()
    FROM unnest(%s::text[], %s::uuid[], %s::uuid[])
        WITH ORDINALITY AS change(kind, object_id, parent_id, number)
    ORDER BY number
)
SELECT pg_notify(%s, %s)
"""

_NUMBER = """
UPDATE web_ownerevent AS event SET position = latest.position + new.number
FROM (SELECT coalesce(max(position), 0) AS position FROM web_ownerevent WHERE owner_id = %(owner)s)
        AS latest,
    (SELECT id, row_number() OVER (ORDER BY id) AS number FROM web_ownerevent
        WHERE owner_id = %(owner)s AND position IS NULL) AS new
WHERE event.id = new.id
"""

_EXPIRE = """
DELETE FROM web_ownerevent AS event
USING (
    SELECT owner_id, max(position) AS last, max(position) FILTER (WHERE created < %s) AS old
    FROM web_ownerevent GROUP BY owner_id
) AS kept
WHERE event.owner_id = kept.owner_id AND position <= old AND position < last
"""


@dataclass(frozen=True, slots=True)
class Change:
    """``parent_id`` is the conversation that the thing belongs to, where there is one."""

    kind: OwnerEventKind
    object_id: UUID
    parent_id: UUID | None = None


def owner_events_record(*, owner_id: int, changes: Sequence[Change]) -> None:
    """To be called in the transaction that makes the changes. Listeners hear of its commit."""
    columns = (
        [change.kind.value for change in changes],
        [change.object_id for change in changes],
        [change.parent_id for change in changes],
    )
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, (owner_id, *columns, CHANNEL, str(owner_id)))


def owner_events_after(*, owner_id: int, position: int) -> tuple[OwnerEvent, ...]:
    """What was committed after that position, in order, at most a page."""
    _number(owner_id)
    rows = OwnerEvent.objects.filter(owner_id=owner_id, position__gt=position)
    return tuple(rows.order_by("position")[:PAGE])


def position_last(*, owner_id: int) -> int:
    """Where the feed stands now; 0 where nothing was ever recorded."""
    _number(owner_id)
    rows = OwnerEvent.objects.filter(owner_id=owner_id, position__isnull=False)
    return rows.order_by("-position").values_list("position", flat=True).first() or 0


def position_is_known(*, owner_id: int, position: int) -> bool:
    """Whether a listener can go on from there without missing anything."""
    rows = OwnerEvent.objects.filter(owner_id=owner_id)
    if position == 0:
        return rows.filter(position=1).exists() or not rows.exclude(position=None).exists()
    return rows.filter(position=position).exists()


def owner_events_expire() -> int:
    """Delete what is older than it is kept, but for the last one of everybody."""
    before = timezone.now() - KEPT
    for owner_id in _owners_unnumbered(before):
        _number(owner_id)
    with connection.cursor() as cursor:
        cursor.execute(_EXPIRE, [before])
        return int(cursor.rowcount)


def _owners_unnumbered(before: object) -> Iterable[int]:
    rows = OwnerEvent.objects.filter(position=None, created__lt=before)
    return list(rows.values_list("owner_id", flat=True).distinct())


def _number(owner_id: int) -> None:
    if not OwnerEvent.objects.filter(owner_id=owner_id, position=None).exists():
        return
    with transaction.atomic(), connection.cursor() as cursor:
        # A statement of its own: the next one must see what the last holder has committed.
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{CHANNEL} {owner_id}"]
        )
        cursor.execute(_NUMBER, {"owner": owner_id})
