from uuid import UUID, uuid4

import pytest
from django.db import connection

from chat import events
from chat.events import LoggedEvent
from chat.models import Run, RunEvent
from chat.runs import event_log, lifecycle

pytestmark = pytest.mark.django_db


def text(run_id, seq, attempt=1, value="x"):
    return LoggedEvent(run_id, attempt, seq, events.TextDelta(message_id=UUID(int=3), text=value))


@pytest.fixture
def run(user):
    run = lifecycle.run_start(owner=user, content="hello")
    lifecycle.run_begin(run_id=run.id)
    return run


def test_events_store_is_harmless_when_it_is_repeated(run):
    for _ in range(2):
        event_log.events_store(logged=[text(run.id, 1), text(run.id, 2)], origin="")

    assert [e.seq for e in event_log.events_after(run_id=run.id, position=(0, 0))] == [1, 2]


def test_events_store_keeps_the_rest_when_one_run_was_deleted(run):
    event_log.events_store(logged=[text(uuid4(), 1), text(run.id, 1)], origin="")

    assert RunEvent.objects.count() == 1


def test_events_store_leaves_out_what_an_older_attempt_says(run):
    lifecycle.run_begin(run_id=run.id)
    event_log.events_store(
        logged=[text(run.id, 1, attempt=1), text(run.id, 1, attempt=2)], origin=""
    )

    assert [e.attempt for e in event_log.events_after(run_id=run.id, position=(0, 0))] == [2]


def test_events_after_goes_on_strictly_after_a_position_across_attempts(run):
    event_log.events_store(logged=[text(run.id, n) for n in (1, 2, 3)], origin="")
    lifecycle.run_begin(run_id=run.id)
    event_log.events_store(logged=[text(run.id, n, attempt=2) for n in (1, 2)], origin="")

    found = event_log.events_after(run_id=run.id, position=(1, 2))

    assert [(e.attempt, e.seq) for e in found] == [(1, 3), (2, 1), (2, 2)]
    assert found[0].event == text(run.id, 3).event


def test_events_store_takes_the_same_few_queries_for_any_number(run, django_assert_num_queries):
    with django_assert_num_queries(1):
        event_log.events_store(logged=[text(run.id, n) for n in range(1, 200)], origin="")


def test_notification_names_many_runs_within_the_limit_of_a_payload(run):
    ids = [str(uuid4()) for _ in range(500)]
    payloads = event_log._payloads(ids, "abcd1234")

    assert all(len(payload) < 8000 for payload in payloads)
    parsed = [event_log.notification_parse(payload) for payload in payloads]
    assert {origin for origin, _ in parsed} == {"abcd1234"}
    assert [str(i) for _, found in parsed for i in found] == ids


def test_event_data_survives_the_log_whatever_its_text(run):
    awkward = 'line\nline\r\u2028 "quoted" \\u0041 🎉'
    event_log.events_store(logged=[text(run.id, 1, value=awkward)], origin="")

    (found,) = event_log.events_after(run_id=run.id, position=(0, 0))
    assert found.event == text(run.id, 1, value=awkward).event


def test_deleting_a_run_removes_its_events(run):
    event_log.events_store(logged=[text(run.id, 1)], origin="")
    Run.objects.filter(id=run.id).delete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chat_runevent")
        assert cursor.fetchone() == (0,)


def test_page_is_bounded_in_bytes_and_the_next_ones_bring_the_rest(run, monkeypatch):
    monkeypatch.setattr(event_log, "PAGE_BYTES", 1_000)
    sizes = [10, 2_000, 2_000, 10, 10, 3_000]
    written = [text(run.id, seq, value="x" * size) for seq, size in enumerate(sizes, 1)]
    event_log.events_store(logged=written, origin="")
    position, more = event_log.START, True
    pages = []
    while more:
        page = event_log.page_after(run_id=run.id, position=position)
        assert page is not None
        pages.append([item.seq for item in page.events])
        position, more = (1, page.events[-1].seq), page.more
    assert pages == [[1, 2], [3], [4, 5, 6]]


def test_page_after_a_point_that_is_not_there_is_none(run):
    event_log.events_store(logged=[text(run.id, 1)], origin="")
    assert event_log.page_after(run_id=run.id, position=(1, 7)) is None
    assert event_log.page_after(run_id=run.id, position=(1, 1)) == event_log.Page((), more=False)
