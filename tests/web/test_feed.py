"""The feed's order and memory: nothing is skipped, nothing comes twice."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone
from procrastinate.contrib.django.utils import connector_params

from web import feed
from web.models import OwnerEvent, OwnerEventKind

CHANGED = OwnerEventKind.NOTE_CHANGED


def record(user, number: int, kind=CHANGED) -> None:
    feed.owner_events_record(owner_id=user.pk, changes=[feed.Change(kind, UUID(int=number))])


def told(user, position=0) -> list[tuple[int, int]]:
    events = feed.owner_events_after(owner_id=user.pk, position=position)
    return [(event.position or 0, event.object_id.int) for event in events]


def age(user, number: int, days: int) -> None:
    created = timezone.now() - timedelta(days=days)
    OwnerEvent.objects.filter(owner=user, object_id=UUID(int=number)).update(created=created)


def test_entries_come_in_their_order_strictly_after_a_position(user):
    for number in (1, 2, 3):
        record(user, number)
    assert told(user) == [(1, 1), (2, 2), (3, 3)]
    record(user, 4)
    assert told(user, 2) == [(3, 3), (4, 4)]
    assert feed.position_last(owner_id=user.pk) == 4


def test_entries_of_others_are_not_told(user, other_user):
    record(user, 1)
    assert told(other_user) == []
    assert not feed.position_is_known(owner_id=other_user.pk, position=1)


def test_entry_of_a_change_that_was_rolled_back_is_not_told(user):
    with transaction.atomic():
        record(user, 1)
        transaction.set_rollback(True)
    record(user, 2)
    assert told(user) == [(1, 2)]


@pytest.mark.django_db(transaction=True)
def test_entry_that_is_committed_later_is_told_although_it_was_written_first(user):
    with psycopg.connect(**connector_params()) as slow:
        late_id = uuid4()
        row = (user.pk, [CHANGED.value], [late_id], [None])
        slow.execute(feed._INSERT, (*row, feed.CHANNEL, str(user.pk)))
        record(user, 2)
        assert told(user) == [(1, 2)]
        slow.commit()
    late = OwnerEvent.objects.get(object_id=late_id)
    assert late.id < OwnerEvent.objects.get(object_id=UUID(int=2)).id
    assert [position for position, _ in told(user, 1)] == [2]


@pytest.mark.django_db(transaction=True)
def test_readers_and_writers_at_once_agree_on_one_order(user):
    writers = [threading.Thread(target=_write, args=(user, n)) for n in range(3)]
    seen: list[list[tuple[int, int]]] = [[], []]
    readers = [threading.Thread(target=_read, args=(user, heard)) for heard in seen]
    for thread in (*writers, *readers):
        thread.start()
    for thread in (*writers, *readers):
        thread.join(30)
    assert seen[0] == seen[1] == told(user)
    assert [position for position, _ in seen[0]] == list(range(1, 61))
    assert {number for _, number in seen[0]} == set(range(60))


def _write(user, writer: int) -> None:
    for n in range(10):
        with transaction.atomic():
            record(user, writer * 20 + 2 * n)
            record(user, writer * 20 + 2 * n + 1)
    connection.close()


def _read(user, heard: list[tuple[int, int]]) -> None:
    while len(heard) < 60:
        heard += told(user, heard[-1][0] if heard else 0)
    connection.close()


def test_page_is_bounded_and_the_next_one_goes_on(user, monkeypatch):
    monkeypatch.setattr(feed, "PAGE", 2)
    for number in (1, 2, 3):
        record(user, number)
    assert told(user) == [(1, 1), (2, 2)]
    assert told(user, 2) == [(3, 3)]


def test_what_is_old_is_deleted_and_its_position_is_no_point_to_go_on_from(user):
    for number in (1, 2, 3):
        record(user, number)
    assert len(told(user)) == 3
    age(user, 1, days=8)
    age(user, 2, days=6)
    assert feed.owner_events_expire() == 1
    assert [feed.position_is_known(owner_id=user.pk, position=p) for p in (1, 2, 3)] == [
        False,
        True,
        True,
    ]


def test_last_entry_is_kept_so_that_its_listener_goes_on_after_a_month(user):
    record(user, 1)
    told(user)
    age(user, 1, days=30)
    assert feed.owner_events_expire() == 0
    assert feed.position_is_known(owner_id=user.pk, position=1)


def test_old_entries_that_nobody_read_are_missed_by_no_listener(user):
    record(user, 1)
    assert told(user) == [(1, 1)]
    for number in (2, 3):
        record(user, number)
        age(user, number, days=9)
    age(user, 1, days=10)
    assert feed.owner_events_expire() == 2
    assert not feed.position_is_known(owner_id=user.pk, position=1)
    assert feed.position_last(owner_id=user.pk) == 3


def test_beginning_is_a_point_to_go_on_from_until_something_is_deleted(user):
    assert feed.position_is_known(owner_id=user.pk, position=0)
    for number in (1, 2):
        record(user, number)
    assert len(told(user)) == 2
    assert feed.position_is_known(owner_id=user.pk, position=0)
    age(user, 1, days=8)
    feed.owner_events_expire()
    assert not feed.position_is_known(owner_id=user.pk, position=0)


def test_nothing_is_deleted_from_the_middle(user):
    for number in (1, 2, 3):
        record(user, number)
    told(user)
    age(user, 2, days=8)
    feed.owner_events_expire()
    assert told(user) == [(3, 3)]
